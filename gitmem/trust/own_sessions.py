"""Which sessions were started in this clone by this user, noted in the index.

A session's id is bound to its writer, and so are the addresses of agents, people and clients: nobody else's line names them as its own.
What is left to know is which clone a session was started in.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..index.entities import Rows
    from ..index.index_file import Index
    from ..log.local_log import LocalLog
    from ..outcome import Progress

OWN = "own writers"  # in `meta`: the text of the `Own` with which the table was filled

DDL = ("CREATE TABLE own (name TEXT PRIMARY KEY) WITHOUT ROWID",)


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


def is_checked(db: sqlite3.Connection, own: Own) -> bool:
    """Return whether an index was filled for these writers."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (OWN,)).fetchone()
    return row is None or row[0] == str(own)


def is_own(db: sqlite3.Connection, session_id: str) -> bool:
    """Return whether a session was started here."""
    return db.execute("SELECT 1 FROM own WHERE name = ?", (session_id,)).fetchone() is not None


def add(db: sqlite3.Connection, rows: Rows, own: Own) -> None:
    """Note the sessions that began here."""
    _note_writers(db, own, min(row.id for row in rows))
    lines = rows.of("session")
    columns = map(lines.column, ("writer", "clone_id", "event", "session_id"))
    found = [
        (session_id,)
        for writer, clone, event, session_id in zip(*columns, strict=True)
        if writer in own.writers and clone == own.clone and event == "start"
    ]
    db.executemany("INSERT OR IGNORE INTO own VALUES (?)", sorted(set(found)))


def _note_writers(db: sqlite3.Connection, own: Own, first: float = float("inf")) -> bool:
    """Note for which writers the table is filled.

    Args:
        first: The number of the first line that is read for them.

    Returns:
        False if lines were read for other writers: the index must be filled again.
    """
    row = db.execute("SELECT value FROM meta WHERE key = ?", (OWN,)).fetchone()
    clone, *before = row[0].split(" ") if row else (own.clone,)
    if row and row[0] == str(own):
        return True
    added = own.writers.difference(before)
    query = "SELECT 1 FROM line WHERE id < ? AND instr(body, ?) LIMIT 1"
    if clone not in ("", own.clone) or not own.writers.issuperset(before):
        return False
    if any(db.execute(query, (first, f'"writer":"{writer}"')).fetchone() for writer in sorted(added)):
        return False
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (OWN, str(own)))
    return True


def catch_up(index: Index, log: LocalLog, own: Own, progress: Progress | None = None) -> None:
    """Update the index to the log as `index.catch_up` does, and note every session that began here.

    Raises:
        sqlite3.DatabaseError: The index can't be used.
    """
    from ..index import catch_up as lines

    lines.catch_up(index, log, progress=progress)
    if not _note_writers(index.db, own):
        index.db.execute("PRAGMA user_version = 0")
        lines.catch_up(index, log, progress=progress)
