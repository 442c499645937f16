"""The view of senders. Commands without new lines need not import the checks of lines."""

from __future__ import annotations

from ..index.index_file import View
from .sender_tables import DDL, KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from ..index.rows import Rows
    from .clone_key import CloneKey


def view(key: Callable[[], CloneKey | None]) -> View:
    """Return the view of an index whose lines are checked with a key; None if no key is available now."""

    def add(db: sqlite3.Connection, rows: Rows) -> None:
        from . import line_checks

        line_checks.add(db, rows, key())

    return View(KINDS, DDL, add, version=4)


VIEW = view(lambda: None)
