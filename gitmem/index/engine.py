"""SQLite without the outer module, which also loads datetime and collections.abc: a third of an empty Python."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import _sqlite3 as sqlite3
    except ImportError:  # not CPython
        import sqlite3

__all__ = ["sqlite3"]
