"""Who has not read what: the view's tables agree with the plain definition, in every order of arrival."""

from __future__ import annotations

import itertools
import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from gitmem import records
from gitmem.index import catch_up, schema
from gitmem.index.schema import Index
from gitmem.log.lines import digest
from gitmem.operations import mail, views

DAY = mail.BACKLOG_MICROS
START = 1_793_000_000_000_000
READERS = ("a:b:one", "a:b:two", "sess-000000000003")


def signal(number: int, at: int, sender: str, recipients: list[str], reply_to: str | None = None) -> bytes:
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": f"sig-{number:04}", "sender_identity": sender,
        "recipients": recipients, "message": "hello", "reply_to": reply_to,
        "thread_id": "thread-1" if recipients else None, "answers_digest": "0" * 64 if reply_to else None,
    }  # fmt: skip
    return records.line("signal", START + at, fields)


def receipt(line: bytes, at: int, reader: str) -> bytes:
    record = records.read(line)
    assert record
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": record["signal_id"], "reader_identity": reader,
        "delivery_state": "delivered", "answers_digest": digest(line),
    }  # fmt: skip
    return records.line("receipt", START + at, fields)


def index_of(*batches: list[bytes]) -> Index:
    """An index that these lines arrived in, batch by batch."""
    index = schema.in_memory(views.VIEWS, records.read)
    index.reshape()
    for batch in batches:
        catch_up.add_lines(index, 1, batch)
    return index


def unread(db: sqlite3.Connection, reader: str, now: int = START) -> set[str]:
    return {id for _, id in mail.unread_ids(db, reader, None, None, now)}


def plainly_unread(lines: list[bytes], reader: str, now: int) -> set[str]:
    """The definition: directed to the reader or broadcast lately, not its own, without its receipt or reply."""
    found = [record for record in map(records.read, lines) if record]
    own = [str(record["at"]) for record in found
           if reader in (record.get("sender_identity"), record.get("reader_identity"))]  # fmt: skip
    oldest = mail.day_before(min(own)) if own else mail.format_at(now - DAY)
    read = {record["signal_id"] for record in found if record.get("reader_identity") == reader}
    read |= {record.get("reply_to") for record in found if record.get("sender_identity") == reader}
    return {
        str(record["signal_id"])
        for record in found
        if record["kind"] == "signal"
        and record["sender_identity"] != reader
        and record["signal_id"] not in read
        and (reader in record["recipients"] if record["recipients"] else record["at"] >= oldest)
    }


def test_a_directed_signal_is_its_recipients_alone() -> None:
    """A sees it, B does not, its sender does not."""
    db = index_of([signal(1, 0, READERS[0], [READERS[1]])]).db

    assert [unread(db, reader) for reader in READERS] == [set(), {"sig-0001"}, set()]


def test_a_broadcast_is_everybodys_but_its_senders() -> None:
    """Every other reader has it unread."""
    db = index_of([signal(1, 0, READERS[0], [])]).db

    assert [unread(db, reader) for reader in READERS] == [set(), {"sig-0001"}, {"sig-0001"}]


def test_a_receipt_that_arrives_before_its_signal_counts() -> None:
    """Sync brings lines in any order."""
    line = signal(1, 0, READERS[0], [READERS[1]])

    assert unread(index_of([receipt(line, 5, READERS[1])], [line]).db, READERS[1]) == set()


def test_a_reply_has_read_what_it_answers() -> None:
    """No receipt is needed."""
    lines = [signal(1, 0, READERS[0], [READERS[1]]), signal(2, 1, READERS[1], [READERS[0]], "sig-0001")]

    assert unread(index_of(lines).db, READERS[1]) == set()


def test_nobodys_mail_is_read_by_anybody_else() -> None:
    """A's receipt for a shared signal leaves it unread for B."""
    line = signal(1, 0, READERS[0], [READERS[1], READERS[2]])
    db = index_of([line, receipt(line, 5, READERS[1])]).db

    assert (unread(db, READERS[1]), unread(db, READERS[2])) == (set(), {"sig-0001"})


def test_a_new_reader_gets_the_last_days_broadcasts() -> None:
    """Not the whole past; and by its own first line, once it has one."""
    old, new = signal(1, -DAY - 1, READERS[0], []), signal(2, -DAY + 1, READERS[0], [])
    index = index_of([old, new])
    assert unread(index.db, READERS[1]) == {"sig-0002"}

    catch_up.add_lines(index, 1, [signal(3, 0, READERS[1], [READERS[0]])])

    assert unread(index.db, READERS[1], START + 9 * DAY) == {"sig-0002"}


def test_an_earlier_first_line_that_arrives_late_brings_broadcasts_back() -> None:
    """The cursor that has passed them is no watermark."""
    old, new = signal(1, 0, READERS[0], []), signal(2, 3 * DAY, READERS[0], [])
    index = index_of([old, new, receipt(new, 3 * DAY + 1, READERS[1])])
    assert unread(index.db, READERS[1]) == set()

    catch_up.add_lines(index, 1, [signal(3, 1, READERS[1], [READERS[0]])])

    assert unread(index.db, READERS[1]) == {"sig-0001"}


_event = st.tuples(
    st.integers(0, 3 * DAY), st.sampled_from(READERS), st.sampled_from([(), *[(each,) for each in READERS], READERS]),
    st.sampled_from(["say", "read", "reply"]), st.integers(0, 5),
)  # fmt: skip


@given(st.lists(_event, max_size=12), st.lists(st.integers(0, 11), max_size=4), st.randoms())
def test_the_tables_agree_with_the_definition(
    events: list[tuple[int, str, tuple[str, ...], str, int]], cuts: list[int], random: object
) -> None:
    """Any lines, in any order, in any batches: the unread signals are those of the definition."""
    lines: list[bytes] = []
    said: list[bytes] = []
    for number, (at, who, to, what, pick) in enumerate(events):
        if what == "read" and said:
            lines.append(receipt(said[pick % len(said)], at, who))
            continue
        answered = records.read(said[pick % len(said)]) if what == "reply" and said else None
        said.append(signal(number, at, who, list(to), str(answered["signal_id"]) if answered else None))
        lines.append(said[-1])
    random.shuffle(lines)  # type: ignore[attr-defined]  # hypothesis's Random
    marks = sorted({0, len(lines), *(cut % (len(lines) + 1) for cut in cuts)})
    db = index_of(*(lines[a:b] for a, b in itertools.pairwise(marks))).db

    now = START + 3 * DAY
    for reader in READERS:
        assert unread(db, reader, now) == plainly_unread(lines, reader, now)
