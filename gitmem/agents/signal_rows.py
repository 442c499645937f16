"""Signals and receipts, as the index has them, for what shows, lists or compares them; everyday commands without mail need none of it."""

from __future__ import annotations

from .. import records
from ..index import entities
from ..outcome import command
from ..text import strict_json
from . import heartbeats, mailbox, presence
from .broadcasts import IMPORTED_ORIGIN
from .mailbox import IMPORTED_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping

    from ..records.record_types import SignalRecord
    from ..store import Store
    from .presence import Presence


def unread_contents(db: sqlite3.Connection, reader: str, signal_id: str) -> set[bytes]:
    """Return the contents of an id that are unread at an address."""
    rows = db.execute(
        "SELECT content FROM mail WHERE reader = :reader AND signal_id = :id UNION"
        " SELECT b.content FROM signal s JOIN broadcast b ON b.line = s.line WHERE s.signal_id = :id AND NOT EXISTS (SELECT 1 FROM receipt r"
        f" WHERE r.signal_id = :id AND r.reader = :reader AND {mailbox.is_receipt_for('b.content')})",
        {"reader": reader, "id": signal_id},
    )
    return {content for (content,) in rows}


def readers_of_missing(db: sqlite3.Connection, signal_id: str, most: int) -> list[str]:
    """Return readers with a receipt for a line of a signal that is not in the log, at most so many."""
    query = (
        "SELECT DISTINCT reader FROM receipt r WHERE signal_id = ? AND state <> 'replied'"
        f" AND NOT {mailbox.RECEIPT_HAS_LINE} ORDER BY reader LIMIT ?"
    )
    return [str(reader) for (reader,) in db.execute(query, (signal_id, most))]


def last_of_people(db: sqlite3.Connection, most: int) -> list[SignalRecord]:
    """Return the last signal of each person, of so many who wrote last."""
    query = (
        "SELECT l.body FROM (SELECT max(line) AS last FROM signal WHERE sender LIKE 'human:%'"
        " GROUP BY sender ORDER BY last DESC LIMIT ?) s JOIN line l ON l.id = s.last"
    )
    read = (records.read_kind("signal", str(body).encode()) for (body,) in db.execute(query, (most,)))
    return [record for record in read if record is not None]


# The condition on a row `s` of `signal` with its line `l` that it is from or for one of `:readers`.
OF_READERS = (
    "(s.sender IN (SELECT value FROM json_each(:readers)) OR s.sender_session IN (SELECT value FROM json_each(:readers))"
    " OR EXISTS (SELECT 1 FROM json_each(coalesce(json_extract(l.body, '$.recipients'), json_array(json_extract(l.body, '$.target_agent')))) j"
    " WHERE j.value IN (SELECT value FROM json_each(:readers))))"
)


def of_readers(table: str, *columns: str) -> str:
    """Return the condition that one of the columns of a table is one of the `readers` of a selection."""
    found = (f"{table}.{each} IN (SELECT value FROM json_each(:readers))" for each in columns)
    return f"({' OR '.join(found)})"


def threads_of_unit(db: sqlite3.Connection, unit: str, until: str, most: int) -> list[str]:
    """Return the threads with a proposal on a work unit up to a time, the last one first."""
    rows = db.execute(
        "SELECT s.thread, max(l.at) FROM signal s JOIN line l ON l.id = s.line WHERE s.wu_id = ? AND s.intent = 'PROPOSE'"
        " AND s.wu_id <> '' AND l.at <= ? GROUP BY s.thread ORDER BY 2 DESC LIMIT ?",
        (unit, until, most),
    )
    return [str(thread) for thread, _ in rows.fetchall()]


def in_threads_with(condition: str) -> str:
    """Return the condition on a row `s` of `signal` that a signal of its thread fulfils a condition."""
    return f"s.thread IN (SELECT s.thread FROM signal s JOIN line l ON l.id = s.line WHERE {condition})"


def newest(
    db: sqlite3.Connection, condition: str, values: Mapping[str, str | int], most: int
) -> tuple[list[tuple[str, str]], int]:
    """Return the newest signals that fulfil a condition, each with its thread, and how many more there are."""
    query = (
        "SELECT s.signal_id, min(s.thread) FROM signal s JOIN line l ON l.id = s.line"
        f" WHERE {condition} GROUP BY s.signal_id"
    )
    return entities.select(db, query, values, order="min(l.at) DESC, s.signal_id", limit=most)


def newest_threads(db: sqlite3.Connection, most: int) -> tuple[list[tuple[str, str, int]], int]:
    """Return the threads with the newest signals, each with the time of that and the number of all, and how many more there are."""
    query = (
        "SELECT s.thread, max(l.at) AS last, count(DISTINCT s.signal_id) FROM signal s JOIN line l ON l.id = s.line"
        " GROUP BY s.thread"
    )
    return entities.select(db, query, (), order="last DESC, s.thread", limit=most)


def threads_of(db: sqlite3.Connection, ids: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return the threads of signals, each with the signal."""
    query = f"SELECT DISTINCT thread, signal_id FROM signal WHERE signal_id {entities.AMONG}"
    return db.execute(query, (entities.json_list(ids),))


def asked(db: sqlite3.Connection, ids: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return who may owe an answer to which of these signals."""
    among = "IN (SELECT value FROM json_each(?1))"
    # All authors at once: one id may have many lines, and many readers. One text: for a pair that is not in it SQLite reads all of a list.
    authors = f"SELECT signal_id || ' ' || sender FROM signal WHERE signal_id {among}"
    is_author = f"asked.signal_id || ' ' || asked.reader IN ({authors})"
    query = f"SELECT DISTINCT reader, signal_id FROM asked WHERE signal_id {among}{mailbox.owed(is_author)}"
    return db.execute(query, (entities.json_list(ids),)).fetchall()


_NEWEST_ASKED = (
    "SELECT asked.signal_id AS id, min(s.thread), json_group_array(DISTINCT asked.reader), min(asked.at) AS first FROM asked"
    " CROSS JOIN signal s ON s.signal_id = asked.signal_id WHERE asked.at > ?"
    f" AND NOT EXISTS (SELECT 1 FROM task t WHERE t.task_id = asked.task){mailbox.OWED} GROUP BY asked.signal_id ORDER BY first DESC, id LIMIT ?"
)


def newest_asked(db: sqlite3.Connection, since: str, most: int) -> list[tuple[str, str, list[str]]]:
    """Return the newest signals that ask somebody for an answer, each with its thread and who may owe one; not those about tasks.

    Args:
        since: Only those from this time on, as lines have it.
    """
    rows = db.execute(_NEWEST_ASKED, (since, most)).fetchall()
    return [(id, thread, sorted(strict_json.read(readers))) for id, thread, readers, _ in rows]


# A reply counts for a recipient of an answered line, and for a reader of a broadcast. There, the reply of a session
# counts for its agent identity alone. A reply without a digest answers every line of the id: any one counts.
_ANSWERED = (
    "EXISTS (SELECT 1 FROM signal k JOIN line l ON l.id = k.line"
    " WHERE k.signal_id = r.signal_id AND (k.digest = r.digest OR r.digest = x'')"
    " AND CASE WHEN k.broadcast THEN k.sender <> r.reader AND NOT EXISTS"
    " (SELECT 1 FROM session s WHERE s.session_id = r.reader AND s.agent_identity IS NOT NULL)"
    " ELSE r.reader IN (SELECT value FROM json_each(coalesce(json_extract(l.body, '$.recipients'),"
    " json_array(json_extract(l.body, '$.target_agent'))))) END)"
)
RECEIPT_COUNTS = f"{mailbox.RECEIPT_HAS_LINE} AND (r.state <> 'replied' OR {_ANSWERED})"
# The first line of each signal and reader that counts: its time, which has 27 characters, and the digest in it.
_FIRST_RECEIPT = (
    "SELECT * FROM (SELECT r.signal_id AS id, r.reader AS reader, min(r.at || lower(hex(r.digest))) AS first"
    " FROM receipt r WHERE {where} GROUP BY r.signal_id, r.reader) WHERE first >= :since"
)


def receipts(
    db: sqlite3.Connection, signal_id: str | None, readers: Collection[str] | None, since: str, limit: int
) -> tuple[list[tuple[str, str, str]], int]:
    """Return the newest receipts that count, each of the first line that does, and the number of all.

    Args:
        signal_id: Only those of this signal.
        readers: Only those of these readers.
        since: Only from this time on, as lines have it.

    Returns:
        Signal, reader, and time and digest in one text, of which the time has 27 characters.
    """
    where = [RECEIPT_COUNTS]
    where += ["r.signal_id = :signal"] if signal_id is not None else []
    where += ["r.reader IN (SELECT value FROM json_each(:readers))"] if readers is not None else []
    values = {"since": since, "signal": signal_id, "readers": entities.json_list(sorted(readers or ()))}
    query, order = _FIRST_RECEIPT.format(where=" AND ".join(where)), "first DESC, id DESC, reader DESC"
    rows, more = entities.select(db, query, values, order=order, limit=limit)
    return rows, len(rows) + more


def keyed_receipts(db: sqlite3.Connection, ids: Iterable[str], times: Iterable[str]) -> Iterable[bytes]:
    """Return the lines of receipts for these signals, of these times, that have an idempotency key."""
    condition = (
        f"l.kind = 'receipt' AND l.at {entities.AMONG} AND json_extract(l.body, '$.signal_id') {entities.AMONG}"
        " AND json_extract(l.body, '$.idempotency_key') IS NOT NULL"
    )
    values = (entities.json_list(times), entities.json_list(ids))
    return entities.bodies(db, condition, values, order="l.body DESC")


LEFT_MAX = 50


_LEFT_BEHIND = (
    "SELECT s.session_id FROM session s JOIN tenure t ON t.session_id = s.session_id AND t.last"
    " WHERE s.session_id IN (SELECT name FROM own) AND (s.session_id IN (SELECT reader FROM mail)"
    " OR s.agent_identity IN (SELECT reader FROM mail)) ORDER BY t.until DESC LIMIT ?"
)


def left_behind(store: Store) -> list[Presence]:
    """Return the sessions of this clone that are not at work, that have unread directed signals, and whose signals nobody at work reads.

    Last seen first, at most `LEFT_MAX`, none that was not seen for a month.
    """
    found: dict[str, Presence] = {}
    for (session_id,) in store.db().execute(_LEFT_BEHIND, (LEFT_MAX,)).fetchall():
        one = presence.get(store, str(session_id))
        if one is None or one.is_current or one.age > heartbeats.INACTIVE_MICROS:
            continue
        if one.agent_identity and any(
            each.is_current for each in presence.of_identity(store, one.agent_identity)
        ):
            continue
        if one.harness_session and presence.of_published_client(store, one.harness_session) is not None:
            continue
        waiting = mailbox.directed_to(
            store.db(), one.reader, one.session_id, one.record.get("workspace_id"), unread=True
        )
        if store.db().execute(*waiting).fetchone() is not None:
            found.setdefault(one.reader, one)
    return sorted(found.values(), key=lambda one: (-one.last_seen, one.session_id))


_ALL_IMPORTED = (
    "SELECT DISTINCT s.signal_id FROM signal s JOIN line l ON l.id = s.line WHERE NOT s.broadcast"
    " AND json_extract(l.body, '$.origin') = :origin AND EXISTS"
    " (SELECT 1 FROM json_each(json_extract(l.body, '$.recipients')) j WHERE j.value = :address)"
)


_UNREAD_IMPORTED = (
    "SELECT DISTINCT m.signal_id FROM mail m JOIN signal s ON s.signal_id = m.signal_id JOIN line l ON l.id = s.line"
    " WHERE m.reader = :address AND json_extract(l.body, '$.origin') = :origin"
)


def imported_ids(db: sqlite3.Connection, address: str, *, all: bool = False) -> set[str]:
    """Return the ids of the imported signals that were sent to an address.

    Args:
        all: Include those with a receipt of that address.
    """
    values = {"address": address, "origin": IMPORTED_ORIGIN}
    found = db.execute(_UNREAD_IMPORTED, values).fetchall()
    if all:
        found += db.execute(_ALL_IMPORTED, values).fetchall()
    return {str(signal_id) for (signal_id,) in found}


def imported_inbox(address: str) -> str:
    """Return the command that shows the imported signals to an address."""
    return command("gitmem", "inbox", "--for", IMPORTED_PREFIX + address)
