"""What tasks look like together: trees of tasks, counts, and those that a session may take now."""

from __future__ import annotations

from ..index import entities
from ..memory import listing
from ..outcome import Outcome, command
from ..records.ids import unit_key
from . import task_roles, task_rules, task_state
from .stored_tasks import BLOCKERS
from .task_list import TaskRow, rows_of, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..memory.listing import Ready
    from ..store import Store

    # Id, parent, initiative, work unit as compared and as typed, and the time.
    Node = tuple[str, str | None, str | None, str | None, str | None, int]
    Values = Mapping[str, str | None]


TREE_LISTED = 200
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

    task: TaskRow
    parent: str | None
    depth: int
    in_cycle: bool
    launches: int


class TreeGroup(Outcome):
    """The tasks of a work unit and initiative, each before those that were written within it."""

    initiative_id: str | None
    wu_id: str | None
    tasks: list[TreeRow] = []


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
    limit: int = TREE_LISTED,
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
    top = task_rules.resolve(db, task_id) if task_id is not None else None
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
    rows = rows_of(db, ids)
    launches = dict(db.execute(_LAUNCHES, (entities.json_list(ids),)).fetchall())
    groups: dict[tuple[object, ...], TreeGroup] = {}
    for node, root, depth, in_cycle in placed:
        group = groups.setdefault(_group(root), TreeGroup(root[2], root[4]))
        group.tasks.append(TreeRow(rows[node[0]], node[1], depth, in_cycle, launches.get(node[0], 0)))
    return list(groups.values())


GROUPS_MAX = 20  # of each kind; the rest is counted together
OTHERS = "(others)"
NO_ROLE = "(no role)"
# What clocks of several machines make negative counts as nothing.
_DONE = "(t.state <> 'canceled' OR t.first_take IS NOT NULL)"
_DURATION = "max(0, t.{end} - t.created)"


class Durations(Outcome):
    """Times in seconds; all but `count` are None without any."""

    def __init__(self, count: int, values: Sequence[float]) -> None:
        self.count = count
        found: Sequence[float | None] = values or (None, None, None)
        self.median, self.p90, self.longest = found


class RoleCount(Outcome):
    """The tasks for a role: all, those without an outcome, and those whose outcome is `completed`."""

    role: str
    tasks: int
    open: int
    completed: int


class TaskStats(Outcome):
    """Counts of tasks.

    Attributes:
        open: Those without an outcome that no other task replaces.
        states: The number of tasks in each state.
        outcomes: Of tasks with an outcome: how many their callers have sealed, others have closed, and nobody has confirmed.
        roles: The most frequent requested roles.
        to_first_take: From its writing to the first valid take.
        to_end: From its writing to its outcome; without tasks that were canceled before anybody took them.
    """

    def __init__(self) -> None:
        self.tasks = self.open = self.replaced = self.conflicts = self.launches = 0
        self.states: dict[str, int] = {}
        self.outcomes: dict[str, int] = {}
        self.roles: list[RoleCount] = []
        self.to_first_take = self.to_end = Durations(0, ())
        self.next = ["gitmem task list --open"]


def stats(store: Store, *, wu: str | None = None, initiative: str | None = None) -> TaskStats:
    """Return counts of all tasks.

    Args:
        wu: Only of tasks on this work unit.
        initiative: Only of tasks of this initiative.
    """
    conditions = {"t.wu_id = :wu": unit_key(wu), "t.initiative_id = :initiative": initiative}
    where = " AND ".join(text for text, value in conditions.items() if value) or "1"
    values = {"wu": unit_key(wu), "initiative": initiative}
    db = store.db()
    found = TaskStats()
    found.tasks, found.open, found.replaced, found.conflicts = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE decided_by IS NULL AND replaced <> 1), count(*) FILTER (WHERE replaced <> 0),"
        f" count(*) FILTER (WHERE conflict) FROM task t WHERE {where}",
        values,
    ).fetchone()
    query = f"SELECT count(*) FROM task t JOIN task_launch a ON a.task_id = t.task_id WHERE {where}"
    (found.launches,) = db.execute(query, values).fetchone()
    found.states = _grouped(db, "t.state", where, values)
    decided = f"{where} AND t.decided_by IS NOT NULL"
    found.outcomes = _grouped(
        db,
        "CASE t.decided_by WHEN 'seal' THEN 'sealed' WHEN 'close' THEN 'closed' ELSE 'unconfirmed' END",
        decided,
        values,
    )
    found.roles = _roles(db, where, values)
    found.to_first_take = _durations(db, "first_take", where, values)
    found.to_end = _durations(db, "ended", f"{where} AND {_DONE}", values)
    return found


def _grouped(db: sqlite3.Connection, what: str, where: str, values: Values) -> dict[str, int]:
    query = f"SELECT {what}, count(*) FROM task t WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most"
    return dict(db.execute(query, {**values, "most": GROUPS_MAX}).fetchall())


def _roles(db: sqlite3.Connection, where: str, values: Values) -> list[RoleCount]:
    """Return the most frequent roles, and the others together."""
    rows = db.execute(
        "SELECT coalesce(asked, :none), count(*), count(*) FILTER (WHERE decided_by IS NULL AND replaced <> 1),"
        f" count(*) FILTER (WHERE decided_by IS NOT NULL AND state = 'completed') FROM task t WHERE {where}"
        " GROUP BY 1 ORDER BY 2 DESC, 1",
        {**values, "none": NO_ROLE},
    ).fetchall()
    others = rows[GROUPS_MAX:]
    if others:
        rows[GROUPS_MAX:] = [(OTHERS, *(sum(row[at] for row in others) for at in (1, 2, 3)))]
    return [RoleCount(*row) for row in rows]


def _durations(db: sqlite3.Connection, end: str, where: str, values: Values) -> Durations:
    source = f"FROM task t WHERE {where} AND t.{end} IS NOT NULL"
    (count,) = db.execute(f"SELECT count(*) {source}", values).fetchone()
    if not count:
        return Durations(0, ())
    query = f"SELECT {_DURATION.format(end=end)} {source} ORDER BY 1 LIMIT 1 OFFSET :at"
    places = ((count - 1) // 2, (count * 9 - 1) // 10, count - 1)
    found = [db.execute(query, {**values, "at": at}).fetchone()[0] for at in places]
    return Durations(count, [round(each / 1e6, 3) for each in found])


READY_LISTED = 20
FOLDED_MAX = 50  # tasks that are folded for one answer
_OPEN = (
    "t.decided_by IS NULL AND t.replaced <> 1 AND t.cancels = 0 AND t.purpose <> 'handoff' AND (t.holder IS NULL OR t.until <= :now)"
    " AND (t.agent IN (:reader, :session) OR (t.agent IS NULL AND t.target_role IN (:role, :lifecycle)"
    f" AND t.caller_session IS NOT :session)) AND {BLOCKERS} = '[]'"
    " AND (t.deadline IS NULL OR t.deadline > :now)"
)


def takeable(store: Store, caller: Caller, *, wu: str | None = None) -> list[TaskRow]:
    """Return tasks that the caller may take now, the most urgent ones: for it or its role, free, not blocked and not refused by it.

    Args:
        wu: Only tasks on this work unit.
    """
    now = store.now()
    role, lifecycle = task_roles.addressed_by(caller)
    values: dict[str, str | int | None] = {
        "reader": caller.reader, "session": caller.session_id or "", "now": now, "lifecycle": lifecycle,
        "role": role, "wu": unit_key(wu),
    }  # fmt: skip
    condition = f"{_OPEN} AND t.wu_id = :wu" if wu else _OPEN
    db, sender = store.db(), (caller.reader, caller.session_id)
    found = []
    for row in select(db, condition, values, FOLDED_MAX)[0]:
        task = task_state.load_task(db, str(row.task_id))
        if task is None or task_rules.take(task, sender, caller.ids, now) is not None:
            continue
        if task.rejection_by(sender) is None:
            found.append(row)
    return found[:READY_LISTED]


def ready_work(store: Store, caller: Caller | None, wu: str | None = None, **options: Any) -> Ready:
    """Return the open nodes of a work unit, and the tasks that the caller may take.

    Args:
        wu: The work unit; by default that of the caller's session with tasks on others, too, and without one all.
        options: Those of `memory.ready.ready`.

    Raises:
        UsageError: See `memory.ready.ready`.
    """
    tasks = takeable(store, caller, wu=wu) if caller is not None else []
    found = listing.ready(store, wu if wu is not None or caller is None else caller.wu_id, **options)
    found.tasks = list(tasks)
    if tasks:
        found.next = [command("gitmem", "task", "take", str(tasks[0].task_id)), *found.next]
    return found
