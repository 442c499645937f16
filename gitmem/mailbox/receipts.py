"""The table of receipts: which line of a signal each reader has read.

A receipt or a reply counts once the log has a line with its `answers_digest`. Until then its row has no effect.
"""

from __future__ import annotations

from .content import is_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ..index.rows import LineRow, Rows
    from ..records.record_types import SignalRecord

    # Signal, reader, digest, state, time.
    Receipt = tuple[str, str, bytes, str, str]

DDL = (
    # The author of a reply has read the signal that it answers: such a row has the state `replied`. An empty `digest`
    # matches any line: in an imported reply without a digest.
    "CREATE TABLE receipt (signal_id TEXT, reader TEXT, digest BLOB, state TEXT, at TEXT,"
    " PRIMARY KEY (signal_id, reader, digest, state)) WITHOUT ROWID",
)
# The condition that the log has the line of a receipt `r`.
HAS_LINE = "(r.digest = x'' OR EXISTS (SELECT 1 FROM signal k WHERE k.signal_id = r.signal_id AND k.digest = r.digest))"

# (address, signal id) of the signals sent to addresses in particular, among rows that name a reader and a signal.
DIRECTED = (
    "SELECT DISTINCT f.reader, f.signal_id FROM {found} f JOIN signal s ON s.signal_id = f.signal_id"
    " JOIN line l ON l.id = s.line WHERE f.reader IN {own} AND NOT s.broadcast"
    " AND f.reader NOT IN (s.sender, coalesce(s.sender_session, ''))"
    " AND EXISTS (SELECT 1 FROM json_each(coalesce(json_extract(l.body, '$.recipients'),"
    " json_array(json_extract(l.body, '$.target_agent')))) j WHERE j.value = f.reader)"
)


def is_for(content: str) -> str:
    """Return the SQL condition that a receipt `r` is for a line with a content; see `content_of`."""
    return (
        f"(r.digest IN ({content}, x'') OR EXISTS (SELECT 1 FROM signal k WHERE k.signal_id = r.signal_id"
        f" AND k.digest = r.digest AND k.content = {content}))"
    )


def of(rows: Rows) -> list[Receipt]:
    """Return the receipts in lines of receipts and replies."""
    found: list[Receipt] = []
    given = rows.of("receipt")
    if given:
        names = ("signal_id", "reader_identity", "answers_digest", "delivery_state", "at")
        ids, readers, digests, states, times = map(given.column, names)
        read = [bytes.fromhex(digest) for digest in digests]
        found += zip(ids, readers, read, [each or "delivered" for each in states], times, strict=True)
    signals = rows.of("signal")
    if any(signals.column("reply_to")):
        found += [
            receipt for row in signals if (to := row.record.get("reply_to")) for receipt in _of_reply(row, to)
        ]
    return found


def _of_reply(row: LineRow, answered: str) -> list[Receipt]:
    record: SignalRecord = row.record
    given = record.get("answers_digest")
    if record.get("via"):
        return []  # another session wrote it in the sender's name; the sender may not have read the answered signal
    if not (given or is_imported(record)):
        return []
    digest = bytes.fromhex(given) if given else b""
    writers = {record["sender_identity"], record.get("sender_session")}
    return [(answered, writer, digest, "replied", row.at) for writer in sorted(filter(None, writers))]


def add(db: sqlite3.Connection, receipts: list[Receipt]) -> None:
    """Add receipts, and remove their signals from the unread rows."""
    values = [(id, reader, bytearray(digest), state, at) for id, reader, digest, state, at in receipts]
    db.executemany(
        "INSERT INTO receipt VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at < receipt.at",
        values,
    )
    has_mail = "SELECT 1 FROM mail WHERE reader = ? LIMIT 1"
    behind = {reader for reader in {row[1] for row in values} if db.execute(has_mail, (reader,)).fetchone()}
    db.executemany(
        "DELETE FROM mail WHERE signal_id = ?1 AND reader = ?2 AND (content = ?3 OR ?3 = x'' OR content IN"
        " (SELECT content FROM signal WHERE signal_id = ?1 AND digest = ?3))",
        [row[:3] for row in values if row[1] in behind],
    )


def states(db: sqlite3.Connection, signal_id: str, content: bytes | None = None) -> dict[str, str]:
    """Return the recorded delivery state of a signal by reader: that of the latest receipt.

    Args:
        content: Count only receipts for lines with this content.
    """
    found: dict[str, str] = {}
    rows = db.execute(
        f"SELECT reader, state FROM receipt r WHERE signal_id = ?1 AND"
        f" CASE WHEN ?2 IS NULL THEN {HAS_LINE} ELSE {is_for('?2')} END ORDER BY at, state",
        (signal_id, content),
    )
    for reader, state in rows:
        found[reader] = "delivered" if state == "replied" else state
    return found


def of_signals(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the receipts of many signals: by signal and reader the time of the first and the state of the latest."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    wanted = ",".join(f'"{id}"' for id in ids)  # ids are letters, digits and dashes
    rows = db.execute(
        "SELECT r.signal_id, r.reader, r.state, r.at FROM json_each(?) j CROSS JOIN receipt r ON r.signal_id = j.value"
        f" WHERE {HAS_LINE} ORDER BY r.at, r.state",
        (f"[{wanted}]",),
    )
    for signal_id, reader, last, at in rows:
        of = found.setdefault(signal_id, {})
        first = of[reader][0] if reader in of else at
        of[reader] = first, "delivered" if last == "replied" else last
    return found


def state(db: sqlite3.Connection, signal_id: str, reader: str, *, counts: str = HAS_LINE) -> str | None:
    """Return the recorded delivery state of a signal for one reader, or None.

    Args:
        counts: The condition that a receipt `r` counts.
    """
    row = db.execute(
        f"SELECT state FROM receipt r WHERE signal_id = ? AND reader = ? AND {counts} ORDER BY at DESC, state DESC LIMIT 1",
        (signal_id, reader),
    ).fetchone()
    if row is None:
        return None
    return "delivered" if row[0] == "replied" else str(row[0])


def has_read(db: sqlite3.Connection, reader: str) -> bool:
    """Return whether a reader has a receipt for anything."""
    return db.execute("SELECT 1 FROM receipt WHERE reader = ? LIMIT 1", (reader,)).fetchone() is not None
