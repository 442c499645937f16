"""Nodes that lines in the name of this clone's sessions made or changed, which were not written here.

The fold of a node counts every line, on every clone alike. Here such a node is shown as unverified; and what a session of
this clone has noted itself is folded without those lines.
"""

from __future__ import annotations

from ..trust import sender_tables
from . import node_fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from .node_fold import Node, Winners

MADE = "node"  # in `Node.unverified`: the line that made it; else the field that a line changed
AT_ONCE = 300
_LINES = (
    "SELECT DISTINCT l.body FROM forged f JOIN line l ON l.id = f.line WHERE f.line IN (SELECT line FROM node WHERE id"
    " IN ({ids}) UNION SELECT line FROM node_again WHERE id IN ({ids}) UNION SELECT line FROM patch_of WHERE id IN ({ids}))"
)
_CHECKPOINTS = (
    "SELECT id FROM node WHERE session_id = ?1 AND type = 'checkpoint' UNION SELECT id FROM node"
    " WHERE line IN (SELECT line FROM forged WHERE name = ?1) UNION SELECT id FROM node_again"
    " WHERE line IN (SELECT line FROM forged WHERE name = ?1) UNION SELECT id FROM patch_of"
    " WHERE line IN (SELECT line FROM forged WHERE name = ?1)"
)


def note(db: sqlite3.Connection, nodes: Mapping[str, Node]) -> None:
    """Fill in what of these nodes, by their ids, is not verified."""
    if db.execute("SELECT 1 FROM forged LIMIT 1").fetchone() is None:
        return
    forged = _lines(db, list(nodes))
    if not forged:
        return
    for node in nodes.values():
        found = {MADE} if node.line in forged else set()
        if node.winners is not None:
            found.update(field for field, last in node.winners.by_field.items() if last.line in forged)
            found.update("metadata" for last in node.winners.by_key.values() if last.line in forged)
        node.unverified = sorted(found)


def own_checkpoints(db: sqlite3.Connection, session_id: str) -> list[Node]:
    """Return the checkpoints that a session of this clone wrote of itself, by its own lines, the last first."""
    ids = [str(id) for (id,) in db.execute(_CHECKPOINTS, (session_id,))]
    found = [
        node
        for node in _own(db, ids)
        if node.type == "checkpoint"
        and node.session_id == node.sender_session == session_id
        and not node.is_hidden
    ]
    return sorted(found, key=lambda node: (node.touched, node.id), reverse=True)


def has_forged_lines(db: sqlite3.Connection, session_id: str | None) -> bool:
    """Return whether lines that were not written here speak for a session of this clone."""
    return session_id is not None and sender_tables.is_forged(db, (session_id,))


def _own(db: sqlite3.Connection, ids: Sequence[str]) -> Iterator[Node]:
    """Give nodes without forged lines; not those that nothing else made.

    The patches are read once for all nodes: one of them may name thousands.
    """
    from . import load

    forged = _lines(db, ids)
    patches = {
        id: [each for each in of if each.line not in forged] for id, of in load.patches_of(db, ids).items()
    }
    order = load.order_of(patches)
    sets: dict[tuple[bytes, ...], Winners] = {}
    for start in range(0, len(ids), AT_ONCE):
        for id, lines in load.lines_of(db, ids[start : start + AT_ONCE]).items():
            made = [each for each in lines if each[1] not in forged]
            if made:
                yield node_fold.of_changes(made, patches.get(id, ()), sets, order)


def _lines(db: sqlite3.Connection, ids: Sequence[str]) -> set[bytes]:
    """Return the forged lines that make or change these nodes."""
    found: set[bytes] = set()
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        query = _LINES.format(ids=", ".join("?" * len(some)))
        found.update(body.encode() for (body,) in db.execute(query, [*some, *some, *some]))
    return found
