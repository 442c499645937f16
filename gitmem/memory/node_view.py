"""The view of the memory. Commands that bring no lines of it do not import how rows are made."""

from __future__ import annotations

from ..index.schema import View
from .node_tables import DDL

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..index.rows import Rows


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add lines of the memory, in whatever order they arrive."""
    from . import node_rows

    node_rows.add(db, rows)


VIEW = View(("node", "patch", "relation", "access"), DDL, add, version=3)
