"""The checkpoints of a session of this clone, without forged lines in its name."""

from __future__ import annotations

from ..trust import sender_tables
from . import load, node_fold, unverified_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from .versioned_node import VersionedNode, WinningPatches

AT_ONCE = 300
_CHECKPOINTS = (
    "SELECT id FROM node WHERE session_id = ?1 AND type = 'checkpoint' UNION SELECT id FROM node"
    " WHERE line IN (SELECT line FROM forged WHERE name = ?1) UNION SELECT id FROM node_again"
    " WHERE line IN (SELECT line FROM forged WHERE name = ?1) UNION SELECT id FROM patch_of"
    " WHERE line IN (SELECT line FROM forged WHERE name = ?1)"
)


def own_checkpoints(db: sqlite3.Connection, session_id: str) -> list[VersionedNode]:
    """Return the checkpoints that a session of this clone wrote itself, folded without forged lines, last first."""
    ids = [str(id) for (id,) in db.execute(_CHECKPOINTS, (session_id,))]
    found = [
        node
        for node in _without_forged(db, ids)
        if node.type == "checkpoint"
        and node.session_id == node.sender_session == session_id
        and not node.is_hidden
    ]
    return sorted(found, key=lambda node: (node.touched, node.id), reverse=True)


def has_forged_lines(db: sqlite3.Connection, session_id: str | None) -> bool:
    """Return whether there are forged lines in the name of a session of this clone."""
    return session_id is not None and sender_tables.is_forged(db, (session_id,))


def _without_forged(db: sqlite3.Connection, ids: Sequence[str]) -> Iterator[VersionedNode]:
    """Yield nodes folded without forged lines; skip nodes that only forged lines create.

    The patches are read once for all nodes: one patch may name thousands.
    """
    forged = unverified_nodes.forged_lines(db, ids)
    patches = {
        id: [each for each in of if each.line not in forged] for id, of in load.patches_of(db, ids).items()
    }
    order = load.order_of(patches)
    sets: dict[tuple[bytes, ...], WinningPatches] = {}
    for start in range(0, len(ids), AT_ONCE):
        for id, lines in load.lines_of(db, ids[start : start + AT_ONCE]).items():
            made = [each for each in lines if each[1] not in forged]
            if made:
                yield node_fold.of_changes(made, patches.get(id, ()), sets, order)
