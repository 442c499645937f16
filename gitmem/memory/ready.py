"""List the nodes of a work unit or of all that are ready, by priority, and the blocked nodes with their blockers."""

from __future__ import annotations

from ..errors import check_limit
from ..order.cycles import find_cycles
from ..outcome import Outcome
from ..records.ids import is_id, unit_key
from ..text.shell_quote import command
from . import load, node_fields, superseded
from .listing import first_line
from .node_tables import DELETED, HIDDEN, IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..store import Store
    from .versioned_node import VersionedNode

LAST = len(node_fields.PRIORITIES)  # the sort key of nodes without a priority
LIMIT = 20
BLOCKERS_MAX = 5  # of one node with their titles
ACTIONABLE = ("discovery",)  # the types of nodes that somebody can take up


class Blocker(Outcome):
    """An open node that blocks others, with its first line."""

    def __init__(self, node: VersionedNode) -> None:
        self.id = node.id
        self.title = first_line(node)
        self.priority = node.priority
        self.wu_id = node.wu_id


class Blocked(Outcome):
    """A blocked node, the ids of the open nodes that block it, and what the first of these are."""

    def __init__(self, node: VersionedNode, blocked_by: Sequence[str]) -> None:
        self.node = node
        self.blocked_by = list(blocked_by)
        self.blockers: list[Blocker] = []


class Ready(Outcome):
    """The open nodes of a work unit, or of all and without one.

    Attributes:
        wu_id: The work unit; None for all nodes.
        nodes: Nodes that are not blocked: P0 first, no priority last, then oldest first.
        blocked: The other open nodes, in the same order.
        more: The number of further nodes that are ready.
        more_blocked: The number of further nodes that are blocked.
        circles: Cycles of ids that block each other; the first id is repeated at the end.
        tasks: The tasks that the caller may take, see `tasks.ready_tasks`.
    """

    def __init__(
        self, wu: str | None, nodes: Sequence[VersionedNode], blocked: Sequence[Blocked], limit: int
    ) -> None:
        self.wu_id = wu
        self.nodes = list(nodes[:limit])
        self.blocked = list(blocked[:limit])
        self.more = len(nodes) - len(self.nodes)
        self.more_blocked = len(blocked) - len(self.blocked)
        self.circles: list[list[str]] = []
        self.tasks: list[Any] = []
        self.next: list[str] = []


def ready(
    store: Store,
    wu: str | None,
    *,
    type: str | None = None,
    limit: int = LIMIT,
    include_archived: bool = False,
) -> Ready:
    """Return the open nodes of a work unit that somebody can take up, or all of them.

    Closed, deleted, ephemeral, summarized and superseded nodes are left out, and archived nodes unless requested; also
    discoveries that are tagged as knowledge (`node_fields.TAXONOMY`, `fact` and the like) and neither as work nor with a
    priority, unless a type is requested. Only
    an open node in this log blocks others: by a relation, or by `blocked_by` in the metadata of an imported node. What an
    open node that is superseded blocks, the live end of its chain blocks.

    Args:
        type: Only nodes of this type, or discoveries with the tag of an alias; by default those of `ACTIONABLE`.
        limit: The maximum number of nodes that are ready, and of those that are blocked.

    Raises:
        UsageError: The work unit, the type or the limit is invalid.
    """
    in_unit = "wu_id = ? AND" if wu is not None else ""
    unit = (unit_key(node_fields.work_unit(wu)),) if wu is not None else ()
    check_limit(limit)
    types: tuple[str, ...] = ACTIONABLE
    tags: tuple[str, ...] = ()
    if type is not None:
        word, tags = node_fields.node_type(type)
        types = (word,)
    db = store.db()
    hidden = DELETED if include_archived else HIDDEN
    among = ", ".join(f"'{each}'" for each in types)
    rows = db.execute(
        f"SELECT id FROM node n WHERE {in_unit} state < ? AND type IN ({among}) AND NOT {IS_SUMMARIZED}"
        f"{superseded.and_live(db)}",
        (*unit, hidden),
    )
    nodes = [
        node
        for node in load.load(db, [id for (id,) in rows])
        if _is_open(node, include_archived) and set(tags) <= set(node.tags) and (type or _is_work(node))
    ]
    nodes.sort(key=_order)
    by = blockers(db, nodes)
    blocked = [Blocked(node, by[node.id]) for node in nodes if node.id in by]
    found = Ready(wu, [node for node in nodes if node.id not in by], blocked, limit)
    named = {id for each in found.blocked for id in each.blocked_by[:BLOCKERS_MAX]}
    known = {node.id: Blocker(node) for node in load.load(db, sorted(named))}
    for each in found.blocked:
        each.blockers = [known[id] for id in each.blocked_by[:BLOCKERS_MAX]]
    found.circles = cycles_of(db, by)
    found.next = _next(found, limit, type)
    return found


def _is_open(node: VersionedNode, include_archived: bool) -> bool:
    if node.closed or node.deleted or node.lifecycle == "ephemeral":
        return False
    return include_archived or not node.archived


def _is_work(node: VersionedNode) -> bool:
    tags = set(node.tags)
    return bool(node.priority or tags.isdisjoint(node_fields.KNOWLEDGE) or tags & set(node_fields.WORK))


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
    every = sorted(set().union(*named.values()))
    ends = superseded.ends_of(db, (id for id in every if is_id("mem", id)))
    # A closed or deleted node doesn't block again because another one supersedes it.
    standing = {
        id: blocks(db, ends.get(id, id)) and (id not in ends or blocks(db, id) or not _is_known(db, id))
        for id in every
    }
    found = {
        id: sorted({ends.get(each, each) for each in by if standing[each]} - {id}) for id, by in named.items()
    }
    return {id: by for id, by in found.items() if by}


def blocks(db: sqlite3.Connection, id: str) -> bool:
    """Return whether a node can block others: it is known, neither closed nor hidden, and not summarized."""
    row = db.execute(
        f"SELECT 1 FROM node n WHERE id = ? AND state = 0 AND NOT {IS_SUMMARIZED}", (id,)
    ).fetchone()
    return row is not None


def _is_known(db: sqlite3.Connection, id: str) -> bool:
    return db.execute("SELECT 1 FROM node WHERE id = ?", (id,)).fetchone() is not None


def cycles_of(db: sqlite3.Connection, by: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the cycles that blocked nodes depend on, also outside this work unit."""
    leads = dict(by)
    todo = sorted({id for ids in by.values() for id in ids} - leads.keys())
    while todo:
        more = blockers(db, load.load(db, todo))
        leads.update({id: more.get(id, []) for id in todo})
        todo = sorted({id for ids in more.values() for id in ids} - leads.keys())
    return [[*each, each[0]] for each in find_cycles(leads)]


def _next(found: Ready, limit: int, type: str | None) -> list[str]:
    more = []
    unit = ["--wu", found.wu_id] if found.wu_id is not None else []
    if found.more or found.more_blocked:
        of_type = ["--type", type] if type else []
        more = [command("gitmem", "mem", "ready", *unit, *of_type, "--limit", str(5 * limit))]
    if found.nodes:
        first = found.nodes[0].id
        return [
            command("gitmem", "mem", "show", first),
            *more,
            *([command("gitmem", "mem", "context", *unit)] if unit else []),
        ]
    if found.circles:
        from_id, to_id = found.circles[0][1], found.circles[0][0]
        return [command("gitmem", "mem", "relate", from_id, "blocks", to_id, "--remove")]
    if found.blocked:
        return [command("gitmem", "mem", "show", found.blocked[0].blocked_by[0]), *more]
    return [command("gitmem", "mem", "list", *unit)] if unit else []
