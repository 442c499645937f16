"""Broadcasts, and which of them precede a reader: the field `seen`.

A broadcast, and the first line that a clone writes for a reader, list in `seen` the broadcasts that their writer had
and that no other broadcast lists. An old broadcast that a reader's first line does not reach through these references
was not there when the reader came. It is new, whatever its timestamp.

They are listed by the hashes of their lines: what a line reaches is fixed with its bytes. An id may get further lines, and
some ids are known before their signals.
"""

from __future__ import annotations

from ..log.lines import format_at, line_hash, parse_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..index.entities import LineRow, NewLines, Rows
    from ..records.record_types import AnyFields, SignalRecord


BACKLOG_MICROS = 24 * 3600 * 1_000_000
NEWEST = 50  # broadcasts for a reader unknown to the log, however old they are
# The origin of imported records: their broadcasts are not news for anybody, and their readers were not present.
IMPORTED_ORIGIN = "lumenflow"
READER_KINDS = ("signal", "receipt", "session")  # the kinds of a reader's first line
SEEN_MAX = 16  # hashes in `seen`; more are neither written nor read

DDL = (
    # `line` increases in the order of arrival. Imported broadcasts (`IMPORTED_ORIGIN`) have no time here: they precede every
    # reader's first day. `tracked`: it has the field `seen`. `head`: no other broadcast lists it.
    "CREATE TABLE broadcast (line INTEGER PRIMARY KEY, hash TEXT, signal_id TEXT, at TEXT, sender TEXT,"
    " sender_session TEXT, workspace TEXT, content BLOB, tracked INTEGER, head INTEGER)",
    "CREATE INDEX broadcast_hash ON broadcast (hash)",
    "CREATE INDEX broadcast_at ON broadcast (at)",
    "CREATE INDEX broadcast_head ON broadcast (at) WHERE head",
    "CREATE TABLE seen (hash TEXT, named TEXT, PRIMARY KEY (hash, named)) WITHOUT ROWID",
    "CREATE INDEX seen_named ON seen (named)",
    # `line` is the reader's first line, `at` its time.
    "CREATE TABLE reader (reader TEXT PRIMARY KEY, at TEXT, line INTEGER, cursor INTEGER) WITHOUT ROWID",
)

# The broadcasts that a first line reaches. SQLite evaluates this once, and only if an old broadcast needs it.
_REACHED = (
    f"WITH RECURSIVE reached (hash) AS (SELECT value FROM json_each(:seen) WHERE key < {SEEN_MAX}"
    " UNION SELECT s.named FROM reached r JOIN seen s ON s.hash = r.hash) SELECT hash FROM reached"
)
# The condition that a broadcast `b` does not precede a reader; `BroadcastStart` has the values.
NEW_TO_READER = f"(b.at >= :oldest OR (b.tracked AND :seen IS NOT NULL AND b.hash NOT IN ({_REACHED})))"
NEW_TO_UNKNOWN_READER = (
    "(b.at >= :oldest OR b.line IN"
    f" (SELECT line FROM broadcast WHERE at <> '' ORDER BY at DESC, line DESC LIMIT {NEWEST}))"
)


class BroadcastStart:
    """The time and line from which broadcasts are new to a reader.

    Args:
        now: Microseconds since the epoch, for readers unknown to the log.

    Attributes:
        condition: On a broadcast `b`, with the values `oldest` and `seen`.
        line: The reader's first line, by its number in the index; None if the log does not know the reader.
        cursor: All broadcasts up to this line of the index precede the reader, or it has read or written them.
    """

    def __init__(self, db: sqlite3.Connection, reader: str, now: int | None) -> None:
        found = db.execute(
            "SELECT r.at, r.line, r.cursor, json_extract(l.body, '$.seen') FROM reader r JOIN line l ON l.id = r.line"
            " WHERE r.reader = ?",
            (reader,),
        ).fetchone()
        self.condition = NEW_TO_READER if found else NEW_TO_UNKNOWN_READER
        self.line: int | None = found[1] if found else None
        self.cursor: int = found[2] if found else 0
        self.seen: str | None = found[3] if found else None
        since = max(0, (now or 0) - BACKLOG_MICROS)
        self.oldest = day_before(found[0]) if found else format_at(since)

    @property
    def values(self) -> dict[str, str | None]:
        """The values of `condition`."""
        return {"oldest": self.oldest, "seen": self.seen}


def day_before(at: str) -> str:
    """Return the time 24 hours before `at`."""
    return format_at(max(0, parse_at(at) - BACKLOG_MICROS))


def reader_of(record: Mapping[str, Any]) -> list[str]:
    """Return the readers that a line names as present."""
    if record.get("origin") == IMPORTED_ORIGIN:
        return []
    names = [record.get("sender_identity"), record.get("reader_identity")]
    if record["kind"] == "session":
        names.append(record.get("agent_identity") or record.get("session_id"))
    return [name for name in names if name]


def readers_in(rows: Rows) -> Iterator[tuple[NewLines, list[Any]]]:
    """Yield the readers that lines name as present, as `reader_of` does: some lines, and for each a name or None."""
    for kind in READER_KINDS:
        lines = rows.of(kind)
        columns = [lines.column("sender_identity"), lines.column("reader_identity")]
        if kind == "session":
            agents, ids = lines.column("agent_identity"), lines.column("session_id")
            columns.append([agent or id for agent, id in zip(agents, ids, strict=True)])
        origins = lines.column("origin")
        for names in columns:
            if IMPORTED_ORIGIN in origins:
                names = [
                    None if of == IMPORTED_ORIGIN else name for of, name in zip(origins, names, strict=True)
                ]
            yield lines, names


def add_readers(db: sqlite3.Connection, rows: Rows) -> set[str]:
    """Record the first line of each reader; return the readers for whom it is new or earlier."""
    first: dict[str, tuple[bytes, int]] = {}
    for lines, names in readers_in(rows):
        for name, line, id in zip(names, lines.lines, lines.ids, strict=True):
            if name and (name not in first or line < first[name][0]):
                first[name] = (line, id)
    found = [(name, line[7:34].decode(), line, id) for name, (line, id) in first.items()]
    changed = [(name, at, id) for name, at, line, id in found if _is_first(db, name, at, line)]
    db.executemany("INSERT OR REPLACE INTO reader VALUES (?, ?, ?, 0)", changed)
    return {name for name, *_ in changed}


def _is_first(db: sqlite3.Connection, name: str, at: str, line: bytes) -> bool:
    found = db.execute("SELECT at, line FROM reader WHERE reader = ?", (name,)).fetchone()
    if found is None or at != found[0]:
        return found is None or at < found[0]
    (body,) = db.execute("SELECT body FROM line WHERE id = ?", (found[1],)).fetchone()
    return line < str(body).encode()


def add(db: sqlite3.Connection, broadcasts: Sequence[tuple[LineRow, bytes]]) -> None:
    """Add broadcasts, each with the key of its content."""
    edges: set[tuple[str, str]] = set()
    values = []
    for row, content in broadcasts:
        record: SignalRecord = row.record
        hash, past, seen = line_hash(row.line).hex(), record["origin"] == IMPORTED_ORIGIN, record.get("seen")
        tracked = not past and seen is not None
        if tracked and seen:
            edges.update((hash, named) for named in seen[:SEEN_MAX])
        values.append(
            (row.id, hash, record["signal_id"], "" if past else row.at, record["sender_identity"],
             record.get("sender_session"), record.get("workspace_id") or "", content, tracked, not past)
        )  # fmt: skip
    db.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?)", sorted(edges))
    db.executemany(
        "INSERT INTO broadcast VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 AND NOT EXISTS"
        " (SELECT 1 FROM seen WHERE named = ?2))",
        values,
    )
    named = sorted({(named,) for _, named in edges})
    db.executemany("UPDATE broadcast SET head = 0 WHERE hash = ? AND head", named)


def latest_broadcasts(db: sqlite3.Connection) -> list[str]:
    """Return the hashes for the field `seen` of a new line: the greatest `(at, bytes)` first."""
    rows = db.execute(
        "SELECT b.hash FROM broadcast b JOIN line l ON l.id = b.line WHERE b.head"
        " ORDER BY b.at DESC, l.body DESC LIMIT ?",
        (SEEN_MAX,),
    )
    return [str(hash) for (hash,) in rows]


def with_seen(db: sqlite3.Connection, kind: str, fields: AnyFields) -> Mapping[str, object]:
    """Return the fields of a new line, with `seen` if it is a broadcast or its reader's first line here."""
    if kind not in READER_KINDS or "seen" in fields:
        return fields
    is_broadcast = kind == "signal" and not fields.get("recipients") and not fields.get("target_agent")
    readers = reader_of({**fields, "kind": kind})
    known = "SELECT 1 FROM reader WHERE reader = ?"
    if is_broadcast or any(db.execute(known, (reader,)).fetchone() is None for reader in readers):
        return {**fields, "seen": latest_broadcasts(db)}
    return fields
