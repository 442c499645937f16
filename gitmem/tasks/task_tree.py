"""Trees of tasks: which task was written within which, by initiative and work unit.

The parent of a task is the last one of its `chain`. Chains come from peers too: they may name unknown tasks, form cycles, and be of any depth.
"""

from __future__ import annotations

from ..outcome import Outcome, command
from ..records.ids import unit_key
from . import find_task, task_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..store import Store
    from .task_list import TaskRow

    # Id, parent, initiative, work unit as compared and as typed, and the time.
    Node = tuple[str, str | None, str | None, str | None, str | None, int]

LISTED = 200
NODES_MAX = 5_000  # tasks that are read: the latest, and those within them
_NODE = "t.task_id, t.parent, t.initiative_id, t.wu_id, t.unit, t.created"
# UNION leaves out what is there already: a cycle ends.
_BELOW = (
    "WITH RECURSIVE found (id) AS (SELECT task_id FROM (SELECT task_id FROM task t WHERE {where} ORDER BY t.created DESC, t.task_id"
    " LIMIT :most) UNION SELECT t.task_id FROM found CROSS JOIN task t ON t.parent = found.id LIMIT :most)"
    f" SELECT {_NODE} FROM found JOIN task t ON t.task_id = found.id"
)
_LAUNCHES = (
    "SELECT task_id, count(*) FROM task_launch WHERE task_id IN (SELECT value FROM json_each(?)) GROUP BY 1"
)


class TreeRow(Outcome):
    """A task in a tree.

    Attributes:
        parent: The task that it was written within, shown or not.
        depth: How many of the shown tasks it is within.
        in_cycle: Whether it is, by what peers wrote, within itself.
        launches: How often a worker was launched for it.
    """

    def __init__(self, task: TaskRow, parent: str | None, depth: int, in_cycle: bool, launches: int) -> None:
        self.task = task
        self.parent = parent
        self.depth = depth
        self.in_cycle = in_cycle
        self.launches = launches


class TreeGroup(Outcome):
    """The tasks of a work unit and initiative, each before those that were written within it."""

    def __init__(self, initiative_id: str | None, wu_id: str | None) -> None:
        self.initiative_id = initiative_id
        self.wu_id = wu_id
        self.tasks: list[TreeRow] = []


class TaskTree(Outcome):
    """Tasks by initiative and work unit; `more` is how many were found and not listed, `cut` whether there are even more."""

    def __init__(self, groups: Sequence[TreeGroup], more: int, cut: bool) -> None:
        self.groups = list(groups)
        self.more = more
        self.cut = cut
        first = groups[0].tasks[0].task.task_id if groups else None
        self.next = [command("gitmem", "task", "show", str(first))] if first else []


def tree(
    store: Store,
    task_id: str | None = None,
    *,
    wu: str | None = None,
    initiative: str | None = None,
    limit: int = LISTED,
) -> TaskTree:
    """Return tasks with those that were written within them.

    Args:
        task_id: Only this task, or the one that this beginning of an id names, and those within it.
        wu: Only tasks on this work unit, and those within them.
        initiative: Only tasks of this initiative, and those within them.
        limit: The number of tasks to return.

    Raises:
        UsageError: No task, or several tasks, have this id.
    """
    db = store.db()
    top = find_task.resolve(db, task_id) if task_id is not None else None
    conditions = {
        "t.task_id = :task": top,
        "t.wu_id = :wu": unit_key(wu),
        "t.initiative_id = :initiative": initiative,
    }
    where = " AND ".join(text for text, value in conditions.items() if value) or "1"
    values = {"task": top, "wu": unit_key(wu), "initiative": initiative, "most": NODES_MAX}
    nodes: list[Node] = db.execute(_BELOW.format(where=where), values).fetchall()
    placed = list(_Forest(nodes, top).walk())
    shown = placed[:limit]
    return TaskTree(_groups(db, shown), len(placed) - len(shown), len(nodes) == NODES_MAX)


class _Forest:
    """Tasks and what is below each. Of tasks in a cycle the earliest one is a root."""

    def __init__(self, nodes: Iterable[Node], top: str | None) -> None:
        self._nodes = {node[0]: node for node in sorted(nodes, key=lambda node: (node[5], node[0]))}
        self._parent = {id: node[1] if node[1] in self._nodes else None for id, node in self._nodes.items()}
        self._cyclic = _cyclic(self._parent)
        seen: set[str] = set()
        for id in self._nodes:  # the first one of each cycle
            if id in self._cyclic and id not in seen:
                seen |= set(_ring(id, self._parent))
                self._parent[id] = None
        if top is not None:
            self._reroot(top)
        self._below: dict[str, list[str]] = {}
        for id, parent in self._parent.items():
            if parent is not None:
                self._below.setdefault(parent, []).append(id)

    def _reroot(self, top: str) -> None:
        """Make the task that was asked for a root, also if it is in a cycle that begins with another one."""
        if top in self._cyclic:
            for id in self._cyclic:
                self._parent[id] = self._nodes[id][1]
        if top in self._parent:
            self._parent[top] = None

    def walk(self) -> Iterator[tuple[Node, Node, int, bool]]:
        """Return each task before those below it, with the root that it is below, its depth, and whether it is in a cycle."""
        roots = [id for id, parent in self._parent.items() if parent is None]
        for root in sorted(roots, key=lambda id: _group(self._nodes[id])):
            todo = [(root, 0)]
            while todo:
                id, depth = todo.pop()
                yield self._nodes[id], self._nodes[root], depth, id in self._cyclic
                todo += [(below, depth + 1) for below in reversed(self._below.get(id, ()))]


def _cyclic(parent: Mapping[str, str | None]) -> set[str]:
    """Return the tasks that are within themselves: each has at most one parent, so following these finds every cycle."""
    found: set[str] = set()
    done: set[str] = set()
    for start in parent:
        path: dict[str, None] = {}
        id: str | None = start
        while id is not None and id not in done and id not in path:
            path[id] = None
            id = parent[id]
        if id is not None and id in path:
            found |= set(_ring(id, parent))
        done |= path.keys()
    return found


def _ring(id: str, parent: Mapping[str, str | None]) -> list[str]:
    """Return a cycle, of one of its tasks."""
    ring = [id]
    while (above := parent[ring[-1]]) is not None and above != id:
        ring.append(above)
    return ring


def _group(node: Node) -> tuple[bool, str, bool, str]:
    """Return the place of a root's group: without an initiative or a work unit last."""
    return node[2] is None, node[2] or "", node[3] is None, node[3] or ""


def _groups(db: sqlite3.Connection, placed: Sequence[tuple[Node, Node, int, bool]]) -> list[TreeGroup]:
    ids = [node[0] for node, *_ in placed]
    rows = task_list.rows_of(db, ids)
    launches = dict(db.execute(_LAUNCHES, (task_list.array(ids),)).fetchall())
    groups: dict[tuple[object, ...], TreeGroup] = {}
    for node, root, depth, in_cycle in placed:
        group = groups.setdefault(_group(root), TreeGroup(root[2], root[4]))
        group.tasks.append(TreeRow(rows[node[0]], node[1], depth, in_cycle, launches.get(node[0], 0)))
    return list(groups.values())
