"""The SQLite module, and the limits of its work: how long to wait for another process, how many steps queries take.

It is imported without its Python wrapper, which also loads datetime and collections.abc: a third of an empty Python.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    T = TypeVar("T")
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
STEPS_AT_ONCE = 1_000  # of SQLite's virtual machine, between two looks at a `StepLimit`


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error says that another process holds a lock on the file."""
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))


class BusyWait(Struct):
    """A context with the lock timeout for work after a commit. A timeout ends the context without an error."""

    db: sqlite3.Connection

    def __enter__(self) -> None:
        self.db.execute(f"PRAGMA busy_timeout = {AFTER_COMMIT_MILLISECONDS}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.db.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
        return isinstance(error, sqlite3.DatabaseError) and is_busy(error)


class StepLimit(Struct):
    """Runs queries until a number of steps is used up. It counts steps, not time.

    A query counts as at least 1,000 steps, which is about the cost of starting it.

    Attributes:
        most: Steps in all; 20,000,000 take about a second.
    """

    _db: sqlite3.Connection
    _left: int

    def ask(self, question: Callable[..., T], *given: object) -> T | None:
        """Return the result of a query with these values; None if the budget is used up."""
        if self._left <= 0:
            return None
        self._left -= STEPS_AT_ONCE
        self._db.set_progress_handler(self._is_over, STEPS_AT_ONCE)
        try:
            return question(*given)
        except sqlite3.OperationalError:
            if self._left > 0:
                raise
            return None
        finally:
            self._db.set_progress_handler(None, 0)

    def _is_over(self) -> bool:
        self._left -= STEPS_AT_ONCE
        return self._left <= 0
