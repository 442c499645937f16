"""The SQLite module, and how long to wait for another process that writes the index and may be stopped or have crashed.

It is imported without its Python wrapper, which also loads datetime and collections.abc: a third of an empty Python.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3
    from types import TracebackType
else:
    try:
        import _sqlite3 as sqlite3
    except ImportError:  # not CPython
        import sqlite3

READER_MILLISECONDS = 3_000  # then a reader continues with an index of its own in memory
AFTER_COMMIT_MILLISECONDS = 1_000  # then the next reader updates the index
COPY_SECONDS = 0.5
TIDY_MILLISECONDS = 100  # timeout for readers to end; else the next committer checkpoints SQLite's log
OPTIONAL_READ_SECONDS = 0.1  # for an optional read of the present index
UNUSABLE: set[str] = set()  # damaged files that this process could not remove


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error says that another process holds a lock on the file."""
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))


class BusyWait:
    """A context with the lock timeout for work after a commit. A timeout ends the context without an error."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __enter__(self) -> None:
        self.db.execute(f"PRAGMA busy_timeout = {AFTER_COMMIT_MILLISECONDS}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.db.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
        return isinstance(error, sqlite3.DatabaseError) and is_busy(error)
