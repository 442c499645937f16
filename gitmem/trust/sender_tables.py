"""The tables of `line_checks`, and the queries of everyday commands, which need not import the checks."""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

PREFIXES = ("sess-", "h-")
READER_KINDS = ("signal", "receipt", "session")  # the kinds of a reader's first line
# The origin of imported records: their broadcasts are not news for anybody, and their readers were not present.
IMPORTED_ORIGIN = "lumenflow"
OWN = "own writers"  # in `meta`: the text of the `Own` with which the tables were filled

DDL = (
    # Lines of others that speak for any session, client or agent; those of one update in one row, as JSON.
    "CREATE TABLE packed_claim (name TEXT, first INTEGER, lines TEXT, PRIMARY KEY (name, first)) WITHOUT ROWID",
    "CREATE VIEW claim AS SELECT c.name, j.value AS line FROM packed_claim c, json_each(c.lines) j",
    "CREATE TABLE own (name TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE forged (name TEXT, line INTEGER, PRIMARY KEY (name, line)) WITHOUT ROWID",
    "CREATE INDEX forged_line ON forged (line)",
    # Signals that only forged lines mark as read.
    "CREATE TABLE doubt (reader TEXT, signal_id TEXT, PRIMARY KEY (reader, signal_id)) WITHOUT ROWID",
    # Which session has an agent identity according to any record; `since`: the first own one.
    "CREATE TABLE bearer (identity TEXT, session_id TEXT, since TEXT, PRIMARY KEY (identity, session_id)) WITHOUT ROWID",
    "CREATE INDEX bearer_session ON bearer (session_id)",
    # Identities that are ours alone, see `line_checks`.
    "CREATE TABLE own_identity (name TEXT PRIMARY KEY, since TEXT) WITHOUT ROWID",
    # A reader's first own line.
    "CREATE TABLE own_first (reader TEXT PRIMARY KEY, at TEXT, line INTEGER) WITHOUT ROWID",
)


class Own(Struct):
    """Who writes here.

    Attributes:
        writers: The ids of this user's writers that are noted in this clone.
        clone: The id of this clone.
    """

    writers: frozenset[str]
    clone: str

    def __str__(self) -> str:
        return " ".join([self.clone, *sorted(self.writers)])


def reader_of(record: Mapping[str, Any]) -> list[str]:
    """Return the readers that a line names as present."""
    if record.get("origin") == IMPORTED_ORIGIN:
        return []
    names = [record.get("sender_identity"), record.get("reader_identity")]
    if record["kind"] == "session":
        names.append(record.get("agent_identity") or record.get("session_id"))
    return [name for name in names if name]


def is_checked(db: sqlite3.Connection, own: Own) -> bool:
    """Return whether every line of an index was checked for these writers."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (OWN,)).fetchone()
    return row is None or row[0] == str(own)


def is_own(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a session was started here, or a client writes here."""
    return db.execute("SELECT 1 FROM own WHERE name = ?", (name,)).fetchone() is not None


def is_ours(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a name is a session or client of this clone, or an agent that works nowhere else."""
    query = "SELECT 1 FROM own WHERE name = ?1 UNION ALL SELECT 1 FROM own_identity WHERE name = ?1"
    return db.execute(query, (name,)).fetchone() is not None


def first_line(db: sqlite3.Connection, reader: str) -> tuple[str, int] | None:
    """Return time and number of the first line that a reader wrote here; None if the reader is not ours."""
    row = db.execute("SELECT at, line FROM own_first WHERE reader = ?", (reader,)).fetchone()
    return (str(row[0]), int(row[1])) if row and is_ours(db, reader) else None


def is_forged(db: sqlite3.Connection, names: Iterable[str]) -> bool:
    """Return whether any forged line speaks for one of these names."""
    return any(
        db.execute("SELECT 1 FROM forged WHERE name = ? LIMIT 1", (name,)).fetchone() for name in names
    )


def has_forged(db: sqlite3.Connection) -> bool:
    """Return whether any line is forged."""
    return db.execute("SELECT 1 FROM forged LIMIT 1").fetchone() is not None


def forged_names(db: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the names with a prefix, such as those of sessions, for which forged lines speak."""
    query = "SELECT DISTINCT name FROM forged WHERE name > ? AND name < ?"
    return [str(name) for (name,) in db.execute(query, (prefix, prefix + "\x7f"))]


def count_forged(db: sqlite3.Connection, names: Sequence[str]) -> int:
    """Return how many forged lines speak for one of these names."""
    marks = ", ".join("?" * len(names))
    query = f"SELECT count(DISTINCT line) FROM forged WHERE name IN ({marks})"
    return int(db.execute(query, names).fetchone()[0])


def forged_lines(db: sqlite3.Connection) -> list[tuple[str, str, str, bytes, str]]:
    """Return every forged line, in the order of `(at, bytes)`: a name that it speaks for, its kind, time, bytes and file."""
    if not has_forged(db):
        return []
    rows = db.execute(
        "SELECT min(f.name), l.kind, l.at, l.body, coalesce(i.parent || i.name, '') FROM forged f"
        " JOIN line l ON l.id = f.line LEFT JOIN file i ON i.id = l.file GROUP BY f.line ORDER BY l.at, l.body"
    )
    return [(name, kind, at, body.encode(), where) for name, kind, at, body, where in rows]


def has_doubts(db: sqlite3.Connection) -> bool:
    """Return whether only forged lines mark some signal as read."""
    return db.execute("SELECT 1 FROM doubt LIMIT 1").fetchone() is not None
