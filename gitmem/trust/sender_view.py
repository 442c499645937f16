"""The view of senders. Commands that bring no lines do not import how lines are checked."""

from __future__ import annotations

from ..index.schema import View
from .sender_tables import DDL, KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from ..index.rows import Rows
    from .clone_key import CloneKey


def view(key: Callable[[], CloneKey | None]) -> View:
    """Return the view of an index whose lines are checked with a key; None stands for a key that nobody has now."""

    def add(db: sqlite3.Connection, rows: Rows) -> None:
        from . import line_checks

        line_checks.add(db, rows, key())

    return View(KINDS, DDL, add, version=4)


VIEW = view(lambda: None)
