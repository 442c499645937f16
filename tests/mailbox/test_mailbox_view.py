"""Who has not read what: the view's tables agree with the plain definition, in every order of arrival."""

from __future__ import annotations

import itertools
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem import records, views
from gitmem.agents import broadcasts, mailbox
from gitmem.index import catch_up
from gitmem.log.lines import digest, line_hash, reduced
from gitmem.order import content
from gitmem.records import ids

from ..empty_index import index_of
from ..signing import ANNA, addressed, forget, salted

DAY = broadcasts.BACKLOG_MICROS
START = 1_793_000_000_000_000
READERS = ("a:b:one", "a:b:two", "sess-000000000003")


def signal(
    number: int, at: int, sender: str, recipients: list[str], answered: bytes | None = None, **more: object
) -> bytes:
    reply_to = (records.read(answered) or {})["signal_id"] if answered else None
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": f"sig-{number:04}", "sender_identity": sender,
        "recipients": recipients, "message": "hello", "reply_to": reply_to,
        "thread_id": "thread-1" if recipients else None, "answers_digest": digest(answered) if answered else None,
        **more,
    }  # fmt: skip
    return records.line("signal", START + at, fields)


def receipt(line: bytes, at: int, reader: str, **more: object) -> bytes:
    record = records.read(line)
    assert record
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": record["signal_id"], "reader_identity": reader,
        "delivery_state": "delivered", "answers_digest": digest(line), **more,
    }  # fmt: skip
    return records.line("receipt", START + at, fields)


def unread(db: sqlite3.Connection, reader: str, now: int = START) -> set[str]:
    return {id for _, id in mailbox.unread_ids(db, reader, None, None, now)}


def plainly_unread(lines: list[bytes], reader: str, now: int) -> set[str]:
    """The definition: directed to the reader or not before it, not its own, without its receipt or reply."""
    found = [(line, record) for line in lines if (record := records.read(line))]
    read = {(record["signal_id"], record["answers_digest"]) for _, record in found
            if record.get("reader_identity") == reader}  # fmt: skip
    read |= {(record.get("reply_to"), record.get("answers_digest")) for _, record in found
             if record.get("sender_identity") == reader}  # fmt: skip
    news = plain_news(lines, reader, now)
    return {
        str(record["signal_id"])
        for line, record in found
        if record["kind"] == "signal"
        and record["sender_identity"] != reader
        and (record["signal_id"], digest(line)) not in read
        and (reader in record["recipients"] or line in news)
    }


def plain_news(lines: list[bytes], reader: str, now: int) -> set[bytes]:
    """The broadcasts that are not before a reader, by the words of the format."""
    found = {line: record for line in sorted(lines) if (record := records.read(line))}
    said = {
        line: record
        for line, record in found.items()
        if record["kind"] == "signal" and not record["recipients"]
    }
    by_hash = {line_hash(line).hex(): record for line, record in said.items()}
    first = next((record for record in found.values()
                  if reader in (record.get("sender_identity"), record.get("reader_identity"))), None)  # fmt: skip
    if first is None:
        since = mailbox.broadcasts.format_at(now - DAY)
        return {line for line, record in said.items() if record["at"] >= since} | set(sorted(said)[-50:])
    reached: set[str] = set()
    todo = list((first.get("seen") or [])[:16])
    while todo:
        hash = todo.pop()
        if hash in by_hash and hash not in reached:
            reached.add(hash)
            todo += (by_hash[hash].get("seen") or [])[:16]
    since = broadcasts.day_before(str(first["at"]))
    return {
        line
        for line, record in said.items()
        if record["at"] >= since
        or not (record.get("seen") is None or first.get("seen") is None or line_hash(line).hex() in reached)
    }


def test_a_new_reader_gets_the_last_days_broadcasts() -> None:
    """And the newest fifty; and by its own first line, once it has one."""
    old, new = signal(1, -DAY - 1, READERS[0], []), signal(2, -DAY + 1, READERS[0], [])
    index = index_of([old, new])
    assert unread(index.db, READERS[1]) == {"sig-0001", "sig-0002"}
    many = [signal(10 + number, number - 2 * DAY, READERS[0], []) for number in range(50)]
    assert unread(index_of(many, [old, new]).db, READERS[1]) == {f"sig-{10 + number:04}" for number in range(2, 50)} | {
        "sig-0001", "sig-0002"
    }  # fmt: skip

    catch_up.insert_lines(index, catch_up.OWN_FILE, [signal(3, 0, READERS[1], [READERS[0]])])

    assert unread(index.db, READERS[1], START + 9 * DAY) == {"sig-0002"}


def test_an_earlier_first_line_that_arrives_late_brings_broadcasts_back() -> None:
    """The cursor that has passed them is no watermark."""
    old, new = signal(1, 0, READERS[0], []), signal(2, 3 * DAY, READERS[0], [])
    index = index_of([old, new, receipt(new, 3 * DAY + 1, READERS[1])])
    assert unread(index.db, READERS[1]) == set()

    catch_up.insert_lines(index, catch_up.OWN_FILE, [signal(3, 1, READERS[1], [READERS[0]])])

    assert unread(index.db, READERS[1]) == {"sig-0001"}


def test_a_forgotten_broadcast_keeps_its_place_in_seen() -> None:
    """The reduced form, which then counts, has the hash of the whole line."""
    line = salted(addressed(signal(1, 0, READERS[0], []), ANNA))
    index = index_of([line])
    assert broadcasts.latest_broadcasts(index.db) == [line_hash(line).hex()]

    catch_up.insert_lines(index, catch_up.OWN_FILE, [forget([line], ANNA)])

    assert index.db.execute("SELECT body FROM line WHERE kind = 'signal'").fetchall() == [
        (reduced(line).decode(),)
    ]
    assert broadcasts.latest_broadcasts(index.db) == [line_hash(line).hex()]


# When, who, to whom, what, on which of the signals so far, with which of them in `seen`.
_event = st.tuples(
    st.integers(0, 3 * DAY), st.sampled_from(READERS), st.sampled_from([(), *[(each,) for each in READERS], READERS]),
    st.sampled_from(["say", "read", "reply", "forge", "misread"]), st.integers(0, 5),
    st.none() | st.lists(st.integers(0, 12), max_size=3),
)  # fmt: skip


@given(st.lists(_event, max_size=12), st.lists(st.integers(0, 11), max_size=4), st.randoms())
def test_the_tables_agree_with_the_definition(
    events: list[tuple[int, str, tuple[str, ...], str, int, list[int] | None]],
    cuts: list[int],
    random: object,
) -> None:
    """Any lines, in any order, in any batches: the unread signals are those of the definition."""
    lines: list[bytes] = []
    said: list[bytes] = []
    for number, (at, who, to, what, pick, named) in enumerate(events):
        seen = (
            None
            if named is None
            else [line_hash(line).hex() for each in named for line in said[each : each + 1]]
        )
        answered = said[pick % len(said)] if said else None
        if answered and what in ("read", "misread"):
            line = answered if what == "read" else answered.replace(b"hello", b"other")
            lines.append(receipt(line, at, who, seen=seen))
            continue
        if answered and what == "forge":
            forged = int(str((records.read(answered) or {})["signal_id"])[4:])
            said.append(signal(forged, at, who, list(to), message="other", seen=seen))
        else:
            said.append(signal(number, at, who, list(to), answered if what == "reply" else None, seen=seen))
        lines.append(said[-1])
    random.shuffle(lines)  # type: ignore[attr-defined]  # hypothesis's Random
    marks = sorted({0, len(lines), *(cut % (len(lines) + 1) for cut in cuts)})
    db = index_of(*(lines[a:b] for a, b in itertools.pairwise(marks))).db

    now = START + 3 * DAY
    for reader in READERS:
        assert unread(db, reader, now) == plainly_unread(lines, reader, now)
    assert tables(db) == tables(index_of(sorted(lines)).db)


def tables(db: sqlite3.Connection) -> dict[str, list[object]]:
    """What the view keeps, without the numbers of lines."""
    wanted = {
        "signal": "signal_id, sender, digest, content",
        "asked": "*",
        "mail": "*",
        "receipt": "*",
        "broadcast": "hash, signal_id, at, sender, content, tracked, head",
        "seen": "*",
    }
    return {name: sorted(db.execute(f"SELECT {columns} FROM {name}")) for name, columns in wanted.items()}


def test_a_receipt_for_no_line_of_the_signal_marks_nothing_until_the_line_comes() -> None:
    """Whoever may push can write a receipt in another's name, but not one for what the other never got."""
    line = signal(1, 0, READERS[0], [READERS[1]])
    other = line.replace(b"hello", b"other")
    index = index_of([line, receipt(other, 5, READERS[1])])
    assert unread(index.db, READERS[1]) == {"sig-0001"}

    catch_up.insert_lines(index, catch_up.OWN_FILE, [receipt(line, 6, READERS[1])])
    assert unread(index.db, READERS[1]) == set()

    catch_up.insert_lines(index, catch_up.OWN_FILE, [other])
    assert unread(index.db, READERS[1]) == set()


def test_another_line_of_an_id_is_unread_by_itself() -> None:
    """Who has read one of two texts has not read the other; clones that share a key wrote one text."""
    line = signal(1, 0, READERS[0], [READERS[1]])
    seen = receipt(line, 5, READERS[1])
    assert unread(index_of([line, seen, line.replace(b"hello", b"other")]).db, READERS[1]) == {"sig-0001"}

    made = {"idempotency_key": "k", "signal_id": ids.keyed_id("sig", READERS[0], "k")}
    keyed = [signal(1, 0, READERS[0], [READERS[1]], sender_name=name, **made) for name in ("one", "two")]
    assert unread(index_of(keyed, [receipt(keyed[1], 5, READERS[1])]).db, READERS[1]) == set()

    unmade = {**made, "signal_id": "sig-0001"}  # a key that has not made the id means nothing
    keyed = [signal(1, 0, READERS[0], [READERS[1]], sender_name=name, **unmade) for name in ("one", "two")]
    assert unread(index_of(keyed, [receipt(keyed[1], 5, READERS[1])]).db, READERS[1]) == {"sig-0001"}


@pytest.mark.parametrize(
    "fields",
    [{"requires_ack": True}, {"workspace_id": "w"}, {"via": "sess-0001"}, {"origin": "bridge"}, {"wu_id": "WU-1"},
     {"artifact_path": "a"}, {"lane": "l"}, {"message": "m"}, {"intent": "PROPOSE"}, {"thread_id": "thread-x"}],
    ids=str,
)  # fmt: skip
def test_lines_of_one_key_that_say_or_ask_something_else_are_read_by_themselves(
    fields: dict[str, object],
) -> None:
    """What the sender's own retry from another session or clone leaves the same is the content."""
    made = {"idempotency_key": "k", "signal_id": ids.keyed_id("sig", READERS[0], "k")}
    line = signal(1, 0, READERS[0], [READERS[1]], **made)
    again = {
        "sender_session": "sess-0002",
        "sender_name": "n",
        "interrupt_class": "advisory",
        "after": ["sig-0009"],
    }
    seen = receipt(line, 5, READERS[1])
    retried = signal(1, 1, READERS[0], [READERS[1]], **made, **again)
    assert unread(index_of([line, seen, retried]).db, READERS[1]) == set()
    other = signal(1, 1, READERS[0], [READERS[1]], **{**made, **fields})
    assert unread(index_of([line, seen, other]).db, READERS[1]) == {made["signal_id"]}


def test_a_reply_without_a_digest_counts_where_an_adapter_wrote_it() -> None:
    """gitmem always writes the digest."""
    line = signal(1, 0, READERS[0], [READERS[1]])
    for origin, expected in (("local", {"sig-0001"}), ("bridge", set())):
        bare = signal(2, 1, READERS[1], [READERS[0]], reply_to="sig-0001", origin=origin)
        assert unread(index_of([bare], [line]).db, READERS[1]) == expected


def test_what_asks_for_a_decision_is_told_by_the_record_and_not_by_its_bytes() -> None:
    """Another program may write white space; a wish for an answer counts as a proposal does, and a plain message does not."""
    asks = signal(1, 0, READERS[0], [READERS[1]], requires_ack=True)
    spaced = asks.replace(b'"requires_ack":true', b'"requires_ack": true').replace(b"sig-0001", b"sig-0002")
    lines = [
        asks,
        spaced,
        signal(3, 0, READERS[0], [READERS[1]], intent="PROPOSE"),
        signal(4, 0, READERS[0], [READERS[1]]),
    ]
    found = mailbox.asking(index_of(lines).db, READERS[1], None, None)

    assert spaced != asks and {id for id, _ in found} == {"sig-0001", "sig-0002", "sig-0003"}


def test_many_lines_of_one_id_cost_no_square() -> None:
    """Whoever may push can write thousands of them; what may interrupt a reader is asked once for each id."""

    def steps(count: int) -> int:
        lines = [
            signal(1, at, "e:v:il", [READERS[0]], message=f"no {at}", interrupt_class="priority")
            for at in range(count)
        ]
        db = index_of(lines).db
        done = 0

        def step() -> int:
            nonlocal done
            done += 1
            return 0

        db.set_progress_handler(step, 10)
        found = mailbox.unread_ids(db, READERS[0], None, None, START, directed=True)
        db.set_progress_handler(None, 0)
        assert found == [(READERS[0], "sig-0001")]
        return done

    assert steps(2_000) < 3 * steps(1_000)


def test_receipts_that_are_indexed_before_their_broadcasts_leave_no_reader_behind() -> None:
    """A large log comes in portions, receipts first: else each look would read all broadcasts again."""
    lines = [signal(number, number, "a:b:else", []) for number in range(mailbox.ADVANCE_ROWS)]
    receipts = [receipt(line, 1_000, READERS[0]) for line in lines]
    index = index_of(receipts, lines)

    ((cursor, last),) = index.db.execute(
        "SELECT cursor, (SELECT max(line) FROM broadcast) FROM reader WHERE reader = ?", (READERS[0],)
    )
    assert cursor == last
    assert unread(index.db, READERS[0]) == set()


def test_readers_of_other_clones_keep_no_cursor_of_this_clone_from_moving() -> None:
    """Whoever may push can write receipts with the latest times, as many as are moved at once."""
    most = mailbox.ADVANCED_ROWS // (2 * mailbox.ADVANCE_ROWS)
    lines = [signal(number, number, "a:b:else", []) for number in range(mailbox.ADVANCE_ROWS)]
    index = index_of()
    index.db.execute("INSERT INTO own VALUES ('sess-0001')")
    index.db.execute(
        "INSERT INTO session (session_id, agent_identity) VALUES ('sess-0001', ?)", (READERS[0],)
    )
    peers = [f"z:b:{number}" for number in range(most + 9)]
    receipts = [receipt(lines[0], 1_000 + at, reader) for at, reader in enumerate([READERS[0], *peers])]
    catch_up.insert_lines(index, catch_up.OWN_FILE, receipts)

    catch_up.insert_lines(index, catch_up.OWN_FILE, lines)

    moved = {reader for (reader,) in index.db.execute("SELECT reader FROM reader WHERE cursor > 0")}
    assert READERS[0] in moved and len(moved) == most


def test_an_index_with_other_contents_is_not_used() -> None:
    """Stored contents depend on the keyed fields, which are part of the view's version, and on this computation.

    If the second assertion fails, raise the number in the version of `views.MAIL`: otherwise an old index
    compares contents of two kinds.
    """
    assert records.KEYED["signal"] in views.MAIL.version  # type: ignore[operator]
    key = {"idempotency_key": "deploy-1", "signal_id": ids.keyed_id("sig", "a:b:one", "deploy-1")}
    record = records.read_kind("signal", signal(1, 0, "a:b:one", ["a:b:two"], **key))
    assert record is not None
    assert content.is_keyed(record)
    assert content.content_of(record, b"").hex()[:16] == "122f27cc61ab5e52"
