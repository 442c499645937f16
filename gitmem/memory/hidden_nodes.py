"""Nodes that others than their authors archived, deleted or put under a summary."""

from __future__ import annotations

from . import load
from .authors import STATUS, SUMMARY
from .node_tables import HIDDEN, covered

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_HIDDEN = ("archived", "deleted", "summarized_into")


def hidden(db: sqlite3.Connection, wu: str | None) -> int:
    """Count the nodes of a work unit, and of the project, that others than their authors have hidden."""
    (count,) = db.execute(
        "SELECT count(*) FROM node n WHERE n.hidden_by_other AND (n.wu_id IS ? OR n.lifecycle = 'project')"
        f" AND ((n.state >= {HIDDEN} AND n.hidden_by_other & {STATUS}) OR (n.hidden_by_other & {SUMMARY}"
        f" AND {covered('n')}))",
        (wu,),
    ).fetchone()
    # What only says that it is the author's was hidden by others too.
    rows = db.execute(
        "SELECT DISTINCT n.id FROM forged f JOIN patch_of p ON p.line = f.line JOIN node n ON n.id = p.id"
        " WHERE NOT n.hidden_by_other AND (n.wu_id IS ? OR n.lifecycle = 'project')"
        f" AND (n.state >= {HIDDEN} OR {covered('n')})",
        (wu,),
    ).fetchall()
    forged = [node for node in load.load(db, [id for (id,) in rows]) if set(node.unverified) & set(_HIDDEN)]
    return int(count) + len(forged)


def told(count: int) -> str:
    """Return what the head of a block says of nodes that others have hidden; "" where there are none."""
    return f"; others have hidden {count} node{'' if count == 1 else 's'} of it" if count else ""
