"""Count the nodes of a context that others than their authors have hidden.

Everybody can archive, summarize or supersede every node. A context does not show what was hidden so, but says how much.
"""

from __future__ import annotations

from ..records.ids import unit_key
from . import load
from .authors import STATUS, SUMMARY
from .candidate_rows import SEEN
from .node_tables import HIDDEN, IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_FIELDS = ("archived", "deleted", "summarized_into")
_SELECTED = "(n.wu_id IS :wu OR n.lifecycle = 'project')"
_CHANGED = (
    f"SELECT count(*) FROM node n WHERE n.hidden_by_other AND {_SELECTED} AND ((n.state >= {HIDDEN}"
    f" AND n.hidden_by_other & {STATUS}) OR (n.hidden_by_other & {SUMMARY} AND {IS_SUMMARIZED}))"
)
_CHANGED_BY_FORGED = (
    "SELECT DISTINCT n.id FROM forged f JOIN patch_of p ON p.line = f.line JOIN node n ON n.id = p.id"
    f" WHERE NOT n.hidden_by_other AND {_SELECTED} AND (n.state >= {HIDDEN} OR {IS_SUMMARIZED})"
)
# Not superseded by its author: the writer of the relation counts, not that of the node that supersedes.
_SUPERSEDED = (
    f"SELECT count(*) FROM superseded u CROSS JOIN node n ON n.id = u.id WHERE {_SELECTED} AND {SEEN} AND NOT EXISTS"
    " (SELECT 1 FROM relation r JOIN node o ON o.id = r.from_id AND o.state = 0"
    " JOIN relation_event v ON v.from_id = r.from_id AND v.to_id = r.to_id AND v.type = r.type"
    " JOIN line l ON l.id = v.line WHERE r.to_id = n.id AND r.type = 'supersedes'"
    " AND json_extract(l.body, '$.sender_identity') = n.sender AND json_extract(l.body, '$.removed') IS NOT 1"
    " AND NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = v.line))"
)


def count_hidden(db: sqlite3.Connection, wu: str | None) -> int:
    """Count the nodes of a work unit and of the project that others than their authors have hidden."""
    values = {"wu": unit_key(wu) or None}
    (changed,) = db.execute(_CHANGED, values).fetchone()
    (replaced,) = db.execute(_SUPERSEDED, values).fetchone()
    # Forged patches in the author's name are by others, too.
    rows = db.execute(_CHANGED_BY_FORGED, values).fetchall()
    forged = [node for node in load.load(db, [id for (id,) in rows]) if set(node.unverified) & set(_FIELDS)]
    return int(changed) + int(replaced) + len(forged)


def format_hidden(count: int) -> str:
    """Return the words about hidden nodes for the head of a context; "" if there are none."""
    return f"; others have hidden {count} node{'' if count == 1 else 's'} of it" if count else ""
