"""A budget for queries of the index, in steps of SQLite's virtual machine."""

from __future__ import annotations

from .engine import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

AT_ONCE = 1_000


class StepLimit:
    """Runs queries until a number of steps is used up. It counts steps, not time.

    A query counts as at least 1,000 steps, which is about the cost of starting it.

    Args:
        most: Steps in all; 20,000,000 take about a second.
    """

    def __init__(self, db: sqlite3.Connection, most: int) -> None:
        self._db = db
        self._left = most

    def ask(self, question: Callable[..., T], *given: object) -> T | None:
        """Return the result of a query with these values; None if the budget is used up."""
        if self._left <= 0:
            return None
        self._left -= AT_ONCE
        self._db.set_progress_handler(self._is_over, AT_ONCE)
        try:
            return question(*given)
        except sqlite3.OperationalError:
            if self._left > 0:
                raise
            return None
        finally:
            self._db.set_progress_handler(None, 0)

    def _is_over(self) -> bool:
        self._left -= AT_ONCE
        return self._left <= 0
