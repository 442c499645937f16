"""Whatever the order and the portions in which lines come, the index has the same rows."""

from __future__ import annotations

import random
import sqlite3

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitmem import records, views
from gitmem.agents import mailbox
from gitmem.doctor import clone_files
from gitmem.index import catch_up, entities, index_file
from gitmem.index.index_file import Index
from gitmem.log.lines import reduced
from gitmem.text.addresses import of_writer
from gitmem.trust import own_sessions
from tests import hostile_logs
from tests.hostile_logs import FAMILIES, Victim
from tests.mailbox.test_mailbox_view import receipt, signal
from tests.profiles import up_to
from tests.signing import ANNA, AT, BOB, MALLORY, addressed, attest, forget, salted

NOW = 1_793_000_000_000_000
ME = Victim("sess-000000000001", "me:coder:x", NOW, "victim0000")
BYTES = 12_000  # of each family: some dozens of lines
OWN = own_sessions.Own(frozenset((ANNA.writer,)), "victim0000")


def empty() -> Index:
    index = index_file.in_memory((*views.VIEWS[:-1], views.own_view(lambda: OWN)), records.read)
    index.reshape()
    return index


def held(index: Index) -> list[tuple[str, bytes]]:
    """What is held, and what is awaited."""
    query = "SELECT writer, key FROM held UNION ALL SELECT writer, digest FROM awaited ORDER BY 1, 2"
    return index.db.execute(query).fetchall()


def keyed(number: int, at: int) -> bytes:
    """A signal whose id two clones make from one key."""
    from gitmem.records.ids import keyed_id

    id = keyed_id("sig", "a:b:one", str(number))
    more = {"signal_id": id, "idempotency_key": str(number), "intent": "PROPOSE"}
    return signal(0, at, "a:b:one", [ME.identity, "a:b:two"], **more)


def lines_of(families: list[str], draw: random.Random) -> list[bytes]:
    """Lines of these families, own lines among them, and signals that are read before or after they come."""
    found = [line for name in families for _, line in hostile_logs.lines(FAMILIES[name], ME, BYTES)]
    for number in range(8):
        said = [keyed(number, number), keyed(number, number + 100)]
        found += [*said, receipt(draw.choice(said), 200 + number, draw.choice(("a:b:two", ME.identity)))]
    return [*dict.fromkeys(of_writers(found, draw))]


def of_writers(lines: list[bytes], draw: random.Random) -> list[bytes]:
    """The lines, some of them in the name of a writer, who has attested or forgotten some of these, or somebody else has; some twice."""
    found = []
    for number, line in enumerate(lines):
        writer = draw.choice((None, None, ANNA, BOB))
        found.append(addressed(salted(line), writer) if writer else line)
        if writer and draw.random() < 0.2:
            record = forget([found[-1]], draw.choice((writer, writer, MALLORY)), AT + number)
            found += draw.sample([record, attest([record], writer), reduced(found[-1])], draw.choice((2, 3)))
            found.append(addressed(salted(line), writer))
        for signer in draw.sample((writer or ANNA, MALLORY, BOB), draw.choice((0, 1, 1, 2))):
            found.append(
                attest(draw.sample(found, min(len(found), draw.choice((1, 3)))) + found[-1:], signer)
            )
    return found


@settings(max_examples=up_to(40), deadline=None)
@given(
    families=st.lists(st.sampled_from(sorted(FAMILIES)), min_size=1, max_size=3, unique=True),
    cuts=st.lists(st.integers(1, 200), max_size=12),
    seed=st.integers(0, 1 << 32),
)
@example(
    families=["sessions_of_one_harness", "accesses", "numbered_names"], cuts=[], seed=0
)  # lines of one time
def test_any_order_gives_the_same_rows(families: list[str], cuts: list[int], seed: int) -> None:
    """One by one, some together, or all at once as in an index that is built anew."""
    draw = random.Random(seed)
    every = lines_of(families, draw)
    anew, other = empty(), empty()
    catch_up.insert_lines(anew, 1, sorted(every))
    draw.shuffle(every)
    for size in cuts:
        catch_up.insert_lines(other, 1, every[:size])
        every = every[size:]
    catch_up.insert_lines(other, 1, every)

    assert clone_files.differing(anew, other, but=clone_files.ARRIVAL) == []
    assert anew.skipped() == 0
    assert held(anew) == held(other)
    for reader, session in (
        (of_writer(ME.identity, ANNA.writer), ME.session),
        (of_writer("a:b:two", BOB.writer), None),
    ):
        answers = [
            (sorted(mailbox.unread_ids(index.db, reader, session, None, NOW)), sorted(mailbox.all_ids(index.db, reader, session, None)))
            for index in (anew, other)
        ]  # fmt: skip
        assert answers[0] == answers[1]


@pytest.mark.parametrize("text", ['x"y', "x\\", '"', "x'y", '"]', "\\u0041", "%_", "é"])
def test_a_session_may_have_any_name(text: str) -> None:
    """A client gives its own id, and a peer writes what it likes: in a signal, a node and a session."""
    by = {"sender_identity": "a:b:one", "sender_session": text}
    node = {"id": "mem-0000", "type": "note", "lifecycle": "wu", "content": "c", "session_id": text}
    session = {"session_id": "sess-0000", "event": "start", "display_name": "Bohr", "clone_id": "c000"}
    every = [
        signal(0, 1, "a:b:one", [ME.identity], sender_session=text),
        records.line("node", NOW, {**node, **by}),
        records.line("session", NOW, {**session, "harness_session": text}),
    ]
    for some in (every, every[::-1], every[:1]):
        index = empty()
        for line in some:
            catch_up.insert_lines(index, catch_up.OWN_FILE, [line])
        assert index.skipped() == 0
        assert index.db.execute("SELECT count(*) FROM alive WHERE session_id = ?", (text,)).fetchone() == (1,)


def test_a_value_that_sqlite_cannot_read_costs_one_line() -> None:
    """An error about it is no damage of the file, for which the index would be made again and again."""

    def add(db: sqlite3.Connection, rows: entities.Rows) -> None:
        for row in rows:
            db.execute("SELECT value FROM json_each(?)", (row.record["message"],)).fetchall()

    index = index_file.in_memory([entities.View(("signal",), (), add)], records.read)
    index.reshape()
    every = [
        signal(number, number, "a:b:one", [ME.identity], message=text)
        for number, text in enumerate(("[1]", "[", "[2]"))
    ]
    catch_up.insert_lines(index, catch_up.OWN_FILE, every)
    assert index.skipped() == 1
