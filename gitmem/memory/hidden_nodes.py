"""Count nodes archived, deleted or summarized by others than their authors."""

from __future__ import annotations

from . import load
from .authors import STATUS, SUMMARY
from .node_tables import HIDDEN, is_summarized_sql

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_HIDDEN = ("archived", "deleted", "summarized_into")


def count_hidden(db: sqlite3.Connection, wu: str | None) -> int:
    """Count the nodes of a work unit and of the project that others than their authors have hidden."""
    (count,) = db.execute(
        "SELECT count(*) FROM node n WHERE n.hidden_by_other AND (n.wu_id IS ? OR n.lifecycle = 'project')"
        f" AND ((n.state >= {HIDDEN} AND n.hidden_by_other & {STATUS}) OR (n.hidden_by_other & {SUMMARY}"
        f" AND {is_summarized_sql('n')}))",
        (wu,),
    ).fetchone()
    # Forged patches in the author's name are by others, too.
    rows = db.execute(
        "SELECT DISTINCT n.id FROM forged f JOIN patch_of p ON p.line = f.line JOIN node n ON n.id = p.id"
        " WHERE NOT n.hidden_by_other AND (n.wu_id IS ? OR n.lifecycle = 'project')"
        f" AND (n.state >= {HIDDEN} OR {is_summarized_sql('n')})",
        (wu,),
    ).fetchall()
    forged = [node for node in load.load(db, [id for (id,) in rows]) if set(node.unverified) & set(_HIDDEN)]
    return int(count) + len(forged)


def format_hidden(count: int) -> str:
    """Return the words about hidden nodes for the head of a context; "" if there are none."""
    return f"; others have hidden {count} node{'' if count == 1 else 's'} of it" if count else ""
