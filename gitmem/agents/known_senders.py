"""The tables of `authenticity`, and what everyday commands ask of them without loading how lines are checked."""

from __future__ import annotations

from ..index.schema import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from ..index.schema import Row
    from .clone_key import CloneKey

# Every kind, as in `records.KINDS`, whose import would cost a look at an empty inbox more than the look.
KINDS = ("signal", "receipt", "session", "name", "node", "patch", "relation", "access", "audit")
PREFIXES = ("sess-", "h-")

DDL = (
    # Lines that speak for somebody and have no valid code, whoever's they are.
    "CREATE TABLE claim (name TEXT, line INTEGER, PRIMARY KEY (name, line)) WITHOUT ROWID",
    "CREATE TABLE own (name TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE forged (name TEXT, line INTEGER, PRIMARY KEY (name, line)) WITHOUT ROWID",
    "CREATE INDEX forged_line ON forged (line)",
    # What only forged lines say was read.
    "CREATE TABLE doubt (reader TEXT, signal_id TEXT, PRIMARY KEY (reader, signal_id)) WITHOUT ROWID",
    # Lines with a code that came while the key could not be read.
    "CREATE TABLE unchecked (line INTEGER PRIMARY KEY)",
)


def view(key: Callable[[], CloneKey | None]) -> View:
    """Return the view of an index whose lines are checked with a key; None stands for a key that nobody has now."""

    def add(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
        from . import authenticity

        authenticity.add(db, rows, key())

    return View(KINDS, DDL, add, version=2)


VIEW = view(lambda: None)


def is_own(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a session was started here, or a client speaks here."""
    return db.execute("SELECT 1 FROM own WHERE name = ?", (name,)).fetchone() is not None


def is_forged(db: sqlite3.Connection, names: Iterable[str]) -> bool:
    """Return whether any line speaks for one of these names and was not written here."""
    return any(
        db.execute("SELECT 1 FROM forged WHERE name = ? LIMIT 1", (name,)).fetchone() for name in names
    )


def has_doubts(db: sqlite3.Connection) -> bool:
    """Return whether forged lines say of anything that it was read."""
    return db.execute("SELECT 1 FROM doubt LIMIT 1").fetchone() is not None
