"""The table of receipts: who has read which line of a signal.

A receipt, or a reply, counts once the log has a line with its `answers_digest`; a row waits for that line.
"""

from __future__ import annotations

from .content import ANY_LINE, NO_LINE, is_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..index.schema import Row

DDL = (
    # A reply has read what it answers: such a row has the state `replied`. `content` is that of the line with
    # this digest, `ANY_LINE`, or `NO_LINE` until the line arrives: the row says nothing before.
    "CREATE TABLE receipt (reader TEXT, signal_id TEXT, state TEXT, digest BLOB, at TEXT, content BLOB,"
    " PRIMARY KEY (signal_id, digest, reader, state)) WITHOUT ROWID",
    "CREATE INDEX receipt_reader ON receipt (reader, signal_id, content)",
)
ANY = f"x'{ANY_LINE.hex()}'"  # in SQL


def writers(row: Row) -> set[str]:
    """Return the names under which a signal was written: the identity, and the session."""
    return {str(row.record[key]) for key in ("sender_identity", "sender_session") if row.record.get(key)}


def _receipts_of(row: Row) -> list[tuple[object, ...]]:
    """The receipts that a line stands for: reader, signal, state, digest, time; without the content."""
    record = row.record
    given = record.get("answers_digest")
    if record["kind"] == "receipt":
        state = record.get("delivery_state") or "delivered"
        return [(record["reader_identity"], record["signal_id"], state, bytes.fromhex(str(given)), row.at)]
    parent = record.get("reply_to")
    if record.get("via"):
        return []  # another session wrote it in the sender's name, who may not have read what it answers
    if record["kind"] != "signal" or not parent or not (given or is_imported(record)):
        return []
    of = bytes.fromhex(str(given)) if given else b""
    return [(writer, parent, "replied", of, row.at) for writer in sorted(writers(row))]


def match(db: sqlite3.Connection, signals: Sequence[Row]) -> set[tuple[str, str]]:
    """Let receipts count whose line is among these new signals: (reader, signal id)."""
    if not signals:
        return set()
    found = db.execute(
        "SELECT r.reader, r.signal_id, r.state, r.digest, s.content FROM signal s CROSS JOIN receipt r"
        " ON r.signal_id = s.signal_id WHERE s.line >= ? AND r.digest = s.digest AND r.content = ?",
        (min(row.id for row in signals), NO_LINE),
    ).fetchall()
    db.executemany(
        "UPDATE receipt SET content = ? WHERE reader = ? AND signal_id = ? AND state = ? AND digest = ?",
        [(content, *key) for *key, content in found],
    )
    return {(str(reader), str(signal_id)) for reader, signal_id, *_ in found}


def add(db: sqlite3.Connection, rows: Sequence[Row]) -> set[tuple[str, str]]:
    """Add the receipts of these lines: (reader, signal id) of each."""
    receipts = [receipt for row in rows for receipt in _receipts_of(row)]
    db.executemany(
        "INSERT INTO receipt VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?4 = x'' THEN ?6 ELSE coalesce("
        "(SELECT content FROM signal WHERE signal_id = ?2 AND digest = ?4 LIMIT 1), ?7) END)"
        " ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at < receipt.at",
        [(*receipt, ANY_LINE, NO_LINE) for receipt in receipts],
    )
    return {(str(reader), str(signal_id)) for reader, signal_id, *_ in receipts}


def states(db: sqlite3.Connection, signal_id: str, content: bytes | None = None) -> dict[str, str]:
    """The recorded delivery state of a signal by reader: that of the latest receipt.

    Args:
        content: Only receipts for lines that say this.
    """
    found: dict[str, str] = {}
    rows = db.execute(
        "SELECT reader, state FROM receipt WHERE signal_id = ?1 AND content <> ?2"
        f" AND (?3 IS NULL OR content IN (?3, {ANY})) ORDER BY at, state",
        (signal_id, NO_LINE, content),
    )
    for reader, state in rows:
        found[reader] = "delivered" if state == "replied" else state
    return found


def has_read(db: sqlite3.Connection, reader: str) -> bool:
    """Whether a reader has a receipt for anything."""
    return db.execute("SELECT 1 FROM receipt WHERE reader = ? LIMIT 1", (reader,)).fetchone() is not None
