"""The tables of `authenticity`, and what everyday commands ask of them without loading how lines are checked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from .clone_key import CloneKey

# Every kind, as in `records.KINDS`, whose import would cost a look at an empty inbox more than the look.
KINDS = ("signal", "receipt", "session", "name", "node", "patch", "relation", "access", "audit")
PREFIXES = ("sess-", "h-")
READER_KINDS = ("signal", "receipt", "session")  # the kinds of a reader's first line
# The origin of what was said elsewhere, before: its broadcasts are nobody's news, and nobody was here then.
PAST = "lumenflow"
KEY = "clone_key"  # in `meta`: the fingerprint of the key that the tables were made with

DDL = (
    # Lines that speak for somebody and have no valid code, whoever's they are: those that came together in one row, as JSON.
    "CREATE TABLE packed_claim (name TEXT, first INTEGER, lines TEXT, PRIMARY KEY (name, first)) WITHOUT ROWID",
    "CREATE VIEW claim AS SELECT c.name, j.value AS line FROM packed_claim c, json_each(c.lines) j",
    "CREATE TABLE own (name TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE forged (name TEXT, line INTEGER, PRIMARY KEY (name, line)) WITHOUT ROWID",
    "CREATE INDEX forged_line ON forged (line)",
    # What only forged lines say was read.
    "CREATE TABLE doubt (reader TEXT, signal_id TEXT, PRIMARY KEY (reader, signal_id)) WITHOUT ROWID",
    # Which session has an agent identity by any record; `since`: the first one with a valid code.
    "CREATE TABLE bearer (identity TEXT, session_id TEXT, since TEXT, PRIMARY KEY (identity, session_id)) WITHOUT ROWID",
    "CREATE INDEX bearer_session ON bearer (session_id)",
    # Identities that are ours alone, see `own_identities`.
    "CREATE TABLE own_identity (name TEXT PRIMARY KEY, since TEXT) WITHOUT ROWID",
    # A reader's first line with a valid code.
    "CREATE TABLE own_first (reader TEXT PRIMARY KEY, at TEXT, line INTEGER) WITHOUT ROWID",
    # Lines with a code that came while the key could not be read.
    "CREATE TABLE unchecked (line INTEGER PRIMARY KEY)",
)


def reader_of(record: Mapping[str, object]) -> list[str]:
    """Return the readers that a line names as present."""
    if record.get("origin") == PAST:
        return []
    names = [record.get("sender_identity"), record.get("reader_identity")]
    if record["kind"] == "session":
        names.append(record.get("agent_identity") or record.get("session_id"))
    return [str(name) for name in names if name]


def is_checked(db: sqlite3.Connection, key: CloneKey) -> bool:
    """Return whether every line of an index was checked with this key. Without a key there is nothing to check."""
    return key.mac is None or db.execute(
        f"SELECT (SELECT value FROM meta WHERE key = '{KEY}'), EXISTS (SELECT 1 FROM unchecked)"
    ).fetchone() == (key.fingerprint, 0)


def is_own(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a session was started here, or a client speaks here."""
    return db.execute("SELECT 1 FROM own WHERE name = ?", (name,)).fetchone() is not None


def is_ours(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a name is that of a session or client of this clone, or of an agent that works nowhere else."""
    query = "SELECT 1 FROM own WHERE name = ?1 UNION ALL SELECT 1 FROM own_identity WHERE name = ?1"
    return db.execute(query, (name,)).fetchone() is not None


def first_line(db: sqlite3.Connection, reader: str) -> tuple[str, int] | None:
    """Return time and number of the first line that was written here of a reader who is nowhere else."""
    row = db.execute("SELECT at, line FROM own_first WHERE reader = ?", (reader,)).fetchone()
    return (str(row[0]), int(row[1])) if row and is_ours(db, reader) else None


def is_forged(db: sqlite3.Connection, names: Iterable[str]) -> bool:
    """Return whether any line speaks for one of these names and was not written here."""
    return any(
        db.execute("SELECT 1 FROM forged WHERE name = ? LIMIT 1", (name,)).fetchone() for name in names
    )


def has_doubts(db: sqlite3.Connection) -> bool:
    """Return whether forged lines say of anything that it was read."""
    return db.execute("SELECT 1 FROM doubt LIMIT 1").fetchone() is not None
