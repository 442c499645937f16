"""The view of the memory. It imports `node_rows` only if there are lines to add."""

from __future__ import annotations

from ..index.index_file import View
from .node_tables import DDL

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..index.rows import Rows


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add lines of the memory, in any order of arrival."""
    from . import node_rows

    node_rows.add(db, rows)


VIEW = View(("node", "patch", "relation", "access"), DDL, add, version=3)
