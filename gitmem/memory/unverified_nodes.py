"""Find nodes that forged lines in the name of this clone's sessions created or changed.

On every clone, the fold of a node counts all its lines alike. This clone shows such a node as unverified, and folds
its own sessions' checkpoints without these lines (`own_checkpoints`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from .versioned_node import VersionedNode

MADE = "node"  # in `Node.unverified`: the line that created it is forged; other entries are changed fields
AT_ONCE = 300
_LINES = (
    "SELECT DISTINCT l.body FROM forged f JOIN line l ON l.id = f.line WHERE f.line IN (SELECT line FROM node WHERE id"
    " IN ({ids}) UNION SELECT line FROM node_again WHERE id IN ({ids}) UNION SELECT line FROM patch_of WHERE id IN ({ids}))"
)


def set_unverified(db: sqlite3.Connection, nodes: Mapping[str, VersionedNode]) -> None:
    """Set `unverified` of these nodes, given by id."""
    if db.execute("SELECT 1 FROM forged LIMIT 1").fetchone() is None:
        return
    forged = forged_lines(db, list(nodes))
    if not forged:
        return
    for node in nodes.values():
        found = {MADE} if node.line in forged else set()
        if node.winners is not None:
            found.update(field for field, last in node.winners.by_field.items() if last.line in forged)
            found.update("metadata" for last in node.winners.by_key.values() if last.line in forged)
        node.unverified = sorted(found)


def forged_lines(db: sqlite3.Connection, ids: Sequence[str]) -> set[bytes]:
    """Return the forged lines that create or change these nodes."""
    found: set[bytes] = set()
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        query = _LINES.format(ids=", ".join("?" * len(some)))
        found.update(body.encode() for (body,) in db.execute(query, [*some, *some, *some]))
    return found
