"""List the nodes of a work unit that are ready, by priority, and the blocked nodes with their blockers."""

from __future__ import annotations

from ..outcome import Outcome
from ..text.shell_quote import command
from . import load, node_fields
from .cycles import find_cycles
from .node_tables import DELETED, HIDDEN, IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..store import Store
    from .versioned_node import VersionedNode

LAST = len(node_fields.PRIORITIES)  # the sort key of nodes without a priority


class Blocked(Outcome):
    """A blocked node, and the ids of the open nodes that block it."""

    __slots__ = ("node", "blocked_by")

    def __init__(self, node: VersionedNode, blocked_by: Sequence[str]) -> None:
        self.node = node
        self.blocked_by = list(blocked_by)


class Ready(Outcome):
    """The open nodes of a work unit.

    Attributes:
        nodes: Nodes that are not blocked: P0 first, no priority last, then oldest first.
        blocked: The other open nodes, in the same order.
        circles: Cycles of ids that block each other; the first id is repeated at the end.
    """

    __slots__ = ("wu_id", "nodes", "blocked", "circles", "next")

    def __init__(self, wu: str, nodes: Sequence[VersionedNode], blocked: Sequence[Blocked]) -> None:
        self.wu_id = wu
        self.nodes = list(nodes)
        self.blocked = list(blocked)
        self.circles: list[list[str]] = []
        self.next: list[str] = []


def ready(store: Store, wu: str, *, include_archived: bool = False) -> Ready:
    """Return the open nodes of a work unit.

    Closed, deleted, ephemeral and summarized nodes are left out, and archived nodes unless requested. Only an open
    node in this log blocks others: by a relation, or by `blocked_by` in the metadata of an imported node.

    Raises:
        UsageError: The work unit is invalid.
    """
    wu = node_fields.work_unit(wu)
    db = store.db()
    hidden = DELETED if include_archived else HIDDEN
    rows = db.execute(
        f"SELECT id FROM node n WHERE wu_id = ? AND state < ? AND NOT {IS_SUMMARIZED}", (wu, hidden)
    )
    nodes = [node for node in load.load(db, [id for (id,) in rows]) if _is_open(node, include_archived)]
    nodes.sort(key=_order)
    by = blockers(db, nodes)
    found = Ready(
        wu,
        [node for node in nodes if node.id not in by],
        [Blocked(node, by[node.id]) for node in nodes if node.id in by],
    )
    found.circles = cycles_of(db, by)
    found.next = _next(found)
    return found


def _is_open(node: VersionedNode, include_archived: bool) -> bool:
    if node.closed or node.deleted or node.lifecycle == "ephemeral":
        return False
    return include_archived or not node.archived


def _order(node: VersionedNode) -> tuple[int, int, str]:
    priority = (
        node_fields.PRIORITIES.index(node.priority) if node.priority in node_fields.PRIORITIES else LAST
    )
    return priority, node.created, node.id


def blockers(db: sqlite3.Connection, nodes: Iterable[VersionedNode]) -> dict[str, list[str]]:
    """Return the open nodes that block a node, by the id of each blocked node."""
    named: dict[str, set[str]] = {}
    for node in nodes:
        rows = db.execute("SELECT from_id FROM relation WHERE to_id = ? AND type = 'blocks'", (node.id,))
        by = {id for (id,) in rows}
        imported = node.metadata.get("blocked_by")
        if isinstance(imported, list):
            by.update(id for id in imported if isinstance(id, str))
        if by:
            named[node.id] = by
    standing = {id: blocks(db, id) for id in sorted(set().union(*named.values()))}
    found = {id: sorted(each for each in by if standing[each]) for id, by in named.items()}
    return {id: by for id, by in found.items() if by}


def blocks(db: sqlite3.Connection, id: str) -> bool:
    """Return whether a node can block others: it is known, neither closed nor hidden, and not summarized."""
    row = db.execute(
        f"SELECT 1 FROM node n WHERE id = ? AND state = 0 AND NOT {IS_SUMMARIZED}", (id,)
    ).fetchone()
    return row is not None


def cycles_of(db: sqlite3.Connection, by: dict[str, list[str]]) -> list[list[str]]:
    """Return the cycles that blocked nodes depend on, also outside this work unit."""
    leads = dict(by)
    todo = sorted({id for ids in by.values() for id in ids} - leads.keys())
    while todo:
        more = blockers(db, load.load(db, todo))
        leads.update({id: more.get(id, []) for id in todo})
        todo = sorted({id for ids in more.values() for id in ids} - leads.keys())
    return [[*each, each[0]] for each in find_cycles(leads)]


def _next(found: Ready) -> list[str]:
    if found.nodes:
        first = found.nodes[0].id
        return [
            command("gitmem", "mem", "show", first),
            command("gitmem", "mem", "context", "--wu", found.wu_id),
        ]
    if found.circles:
        from_id, to_id = found.circles[0][1], found.circles[0][0]
        return [command("gitmem", "mem", "relate", from_id, "blocks", to_id, "--remove")]
    if found.blocked:
        return [command("gitmem", "mem", "show", found.blocked[0].blocked_by[0])]
    return [command("gitmem", "mem", "list", "--wu", found.wu_id)]
