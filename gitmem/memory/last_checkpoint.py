"""The last checkpoint of a session, as other agents see it in the headline of its messages.

Apart from `own_checkpoints`: a signal whose headline names a checkpoint folds no nodes.
"""

from __future__ import annotations

from ..trust import sender_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from .versioned_node import VersionedNode

PREFIX = "Checkpoint: "  # of the content of a checkpoint
_LAST = (
    "SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE n.session_id = ?1 AND n.type = 'checkpoint'"
    " AND n.state < 2 AND NOT n.sensitive AND json_extract(l.body, '$.sender_session') = ?1"
    " ORDER BY n.created DESC, n.id LIMIT 1"
)


def first_line(db: sqlite3.Connection, session_id: str) -> str:
    """Return the first line of a session's last checkpoint that is not sensitive; "" if there is none."""
    if sender_tables.is_forged(db, (session_id,)):
        from .own_checkpoints import own_checkpoints

        own = own_checkpoints(db, session_id)
        nodes = sorted((node for node in own if not node.sensitive), key=lambda node: -node.created)
    else:
        nodes = _last(db, session_id)
    text = nodes[0].content.strip() if nodes else ""
    return text.removeprefix(PREFIX).split("\n", 1)[0]


def _last(db: sqlite3.Connection, session_id: str) -> list[VersionedNode]:
    row = db.execute(_LAST, (session_id,)).fetchone()
    if row is None:
        return []
    from . import load

    return load.load(db, [row[0]])
