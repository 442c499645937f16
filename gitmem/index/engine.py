"""SQLite without the outer module, which also loads datetime and collections.abc: a third of an empty Python.

And how long to wait for another process that writes the index: it may have been stopped, or have crashed.
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

READER_MILLISECONDS = 3_000  # then a reader goes on with an index of its own in memory
AFTER_COMMIT_MILLISECONDS = 1_000  # then the index is left as it is, for the next reader
COPY_SECONDS = 0.5
TIDY_MILLISECONDS = 100  # for readers to end; else the next committer tidies up
LOOK_SECONDS = 0.1  # a look at the index as it is, which is not needed
UNUSABLE: set[str] = set()  # damaged files that this process could not remove


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error says that another process keeps the file locked."""
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))


class BusyWait:
    """A context in which statements wait as long as is right after a commit. One that waits in vain ends it quietly."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __enter__(self) -> None:
        self.db.execute(f"PRAGMA busy_timeout = {AFTER_COMMIT_MILLISECONDS}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.db.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
        return isinstance(error, sqlite3.DatabaseError) and is_busy(error)
