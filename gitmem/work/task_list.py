"""Lists, trees and counts of tasks, and those that a session may take now; one task with its events; launches of a task's workers, as receipts: what was asked for, and what came.

A launch is an event of the task. Its id is the stable name of the attempt; its number is its place among the launches of the initiative
(without one, of the task) and may rise while launches of other clones arrive.
"""

from __future__ import annotations

from .. import records
from ..agents import descriptors, presence, waiting_work
from ..log.lines import format_at
from ..order.causal import by_line
from ..order.content import may_contradict
from ..outcome import Outcome, command
from ..records.ids import unit_key
from ..text import strict_json
from ..text.strict_json import json_list
from . import collisions, stored_tasks, task_roles, task_rules, task_state
from .stored_tasks import BLOCKERS, LISTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..agents.presence import ShownNames
    from ..memory.listing import Ready
    from ..order.task import FoldedTask, TaskEvent
    from ..records.kinds import TaskDifference
    from ..records.record_types import ShownTask, ShownTaskEvent, TaskRecord
    from ..store import Store

    # Id, parent, initiative, work unit as compared and as typed, and the time.
    Node = tuple[str, str | None, str | None, str | None, str | None, int]
    Values = Mapping[str, str | None]


TITLE_SHOWN = 60  # characters, where a task is named beside others
# Tasks that a caller wrote, holds, or is asked to do, itself or as one who has the role; `waiting_work.values_for` has the values.
OF_CALLER = (
    "(t.caller = :reader OR t.holder = :reader OR t.agent IN (:reader, :session)"
    f" OR t.task_id IN ({waiting_work.OFFERED}))"
)
_ASKED = (*descriptors.REQUESTED, "target_role", "deadline")
_COLUMNS = (
    "task_id", "title", "state", "decided_by", "purpose", "priority", "agent", "target_role", "unit", "initiative_id", "caller",
    "holder", "until", "conflict", "cancels", "late", "replaced", "created", "touched", "holder_session", "actual", "deadline",
)  # fmt: skip

READ_MAX = 100  # the latest signals of a thread, which are compared

BYTES_MAX = 96 * 1024  # of all events in one answer


class TaskRow(Outcome):
    """A task in a list.

    Attributes:
        confirmed: Whether its caller has sealed its outcome.
        until: The end of the holder's lease, in ISO 8601.
        conflict: Whether several hold it without knowing of each other.
        cancel_requested: Whether somebody wants to cancel it.
        late: The number of results that did not become the outcome.
        replaced: Whether another task replaces it.
        blocked_by: The open tasks that must be finished first.
        agent_name: The name of whom it is for, if that agent has one.
        caller_name: The name of whoever wrote it, for people; so `holder_name`.
        role_mismatch: Whether whoever works on it has another role than requested; None if one of them is not stated. So for
            scope and model.
        mismatch: A sentence about these differences.
    """

    __slots__ = (
        "task_id", "title", "state", "state_text", "confirmed", "purpose", "priority", "agent", "target_role", "wu_id", "initiative_id",
        "caller", "holder", "holder_session", "until", "conflict", "cancel_requested", "late", "replaced", "blocked_by", "agent_name", "caller_name", "holder_name", *descriptors.COMPARED, "mismatch", "deadline", "created_at", "touched_at",
    )  # fmt: skip
    actual_role: Mapping[str, Any] | None
    role_mismatch: bool | None
    scope_mismatch: bool | None
    model_mismatch: bool | None

    def __init__(
        self, values: Sequence[str | int | None], blocked_by: Sequence[str], requested: str, names: ShownNames
    ) -> None:
        (
            self.task_id, self.title, self.state, decided_by, self.purpose, self.priority, self.agent, self.target_role,
            self.wu_id, self.initiative_id, self.caller, self.holder, until, conflict, cancels, self.late, replaced, created, touched,
            self.holder_session, actual, deadline,
        ) = values  # fmt: skip
        asked = dict(zip(descriptors.REQUESTED, strict_json.read(requested), strict=True))
        compared = descriptors.fields_of(asked, strict_json.read(str(actual)) if actual else {})
        descriptors.set_fields(self, compared)
        session, holder = self.holder_session, self.holder
        self.agent_name = names.get(str(self.agent)) if self.agent else None
        self.caller_name = names.get(str(self.caller)) or str(self.caller)
        self.holder_name = (
            (session and names.get(str(session))) or (holder and names.get(str(holder))) or holder
        )
        worker = str(self.holder_name or self.whom or "it")
        is_other = holder and self.agent and self.agent not in (holder, session) and self.whom != worker
        self.mismatch = descriptors.mismatch_sentence(worker, compared, self.whom if is_other else None)
        self.state_text = task_rules.text_of(
            str(self.purpose), str(self.state), str(decided_by), held=self.holder is not None
        )
        self.deadline = format_at(int(deadline)) if deadline else None
        self.confirmed = decided_by == "seal"
        self.until = format_at(int(until)) if until and decided_by is None else None
        self.conflict = bool(conflict)
        self.cancel_requested = bool(cancels) and decided_by is None
        self.replaced = bool(replaced)
        self.blocked_by = list(blocked_by)
        self.created_at = format_at(int(created or 0))
        self.touched_at = format_at(int(touched or 0))

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it has an outcome that waits for its caller's decision."""
        return self.state_text.endswith(task_rules.UNCONFIRMED)

    @property
    def whom(self) -> str:
        """Whom it is for: a name, else an identity, else a role."""
        return str(self.agent_name or self.agent or self.target_role or "")

    @property
    def worker(self) -> str:
        """The name of whoever has it, for people."""
        return str(self.holder_name or "nobody")

    @property
    def asked(self) -> str:
        """The role, model and scope that it asks for, and until when it may begin; "" if it asks for nothing."""
        return task_roles.asked({name: getattr(self, name) for name in _ASKED}) or ""

    @property
    def about(self) -> str:
        """Its id, its title, and what it is on, in one line with a peer's text."""
        on = f" ({self.wu_id})" if self.wu_id else ""
        title = str(self.title or "")
        return f"{self.task_id}{on} {title if len(title) <= TITLE_SHOWN else title[: TITLE_SHOWN - 1] + '…'}"


class TaskPage(Outcome):
    """Listed tasks, and how many more there are."""

    def __init__(self, tasks: Sequence[TaskRow], more: int) -> None:
        self.tasks = list(tasks)
        self.more = more
        self.next = [command("gitmem", "task", "show", str(tasks[0].task_id))] if tasks else []


class TaskDetail(Outcome):
    """A task, its state, and its events in their order.

    Attributes:
        state_text: The state for people, such as `done, not yet accepted`.
        outcome: The event with the result.
        seal: The caller's decision.
        close: The decision of somebody in the caller's place, shown beside a seal, too.
        holder: The take that holds it.
        conflict: Whether several hold it without knowing of each other.
        void: Ids of the takes that do not count.
        late: Ids of the results that did not become the outcome.
        left_out: The number of events that were not read: there are too many.
        more_events: The number of events that were read and are not in `events`.
        agent_name: The name of whom it is for, if that agent has one.
        asked: The role, model, scope and deadline that it asks for, in one line.
        brief: The path of its brief, and whether it is in this work tree as attested.
        mismatches: How its takers differ from the role, scope and model that were requested.
        launches: The receipts of its last launches.
        handoff, received: What a handoff that waits or was accepted has; what a call hands over; None for another task.
        contradicted_by: Signals of its thread that say something else than its record.
        answered_by: The command of `gitmem task` by which the caller answers in its own words, `done` or `message`; or None.
        warnings: Events that claim to be from this clone and are not: they count here as everywhere, and nobody here acts on them.
    """

    def __init__(self, found: FoldedTask) -> None:
        self.task: ShownTask = records.shown(found.record)
        self.state = found.state
        self.state_text = task_rules.state_text(found)
        decisions = (found.seal, found.close, found.holder)
        self.outcome, self.seal, self.close, self.holder = (
            records.shown(each.record) if each is not None else None for each in (found.outcome, *decisions)
        )
        self.conflict = found.conflict
        some = (found.void, found.late, found.cancels, found.rejections)
        self.void, self.late, self.cancels, self.rejections = ([each.id for each in one] for one in some)
        self.replaced_by = found.replaced_by
        self.stands_beside = found.stands_beside
        self.left_out = found.left_out
        self.agent_name: str | None = None
        self.asked = task_roles.asked(found.record)
        self.brief: str | None = None
        self.mismatches = task_roles.mismatches(found)
        self.launches: list[task_roles.LaunchReceipt] = []
        self.handoff: Any = None  # an outcome of a package above; so `received`
        self.received: Any = None
        first = {each.id for each in (found.outcome, *decisions, *found.held) if each is not None}
        self.events, self.more_events = select_events(by_line(found.events.values()), first)
        self.contradicted_by: list[Contradiction] = []
        self.warnings: list[str] = []
        self.answered_by: str | None = None
        self.next: list[str] = []


def list_tasks(
    store: Store,
    caller: Caller | None = None,
    *,
    open: bool = False,
    blocked: bool = False,
    wu: str | None = None,
    limit: int = LISTED,
) -> TaskPage:
    """Return tasks, open ones first, then by priority, the latest first.

    Args:
        caller: Only tasks that it wrote, holds, or is asked to do; also as one who has the role, while nobody has taken them.
        open: Only tasks without an outcome that no other task replaces.
        blocked: Only tasks that wait for others.
        wu: Only tasks on this work unit.
        limit: The number of tasks to return.
    """
    where = ["1"]
    values: dict[str, str | int | None] = {"wu": unit_key(wu)}
    if caller is not None:
        where.append(OF_CALLER)
        values |= waiting_work.values_for(caller, store.now())
    if open:
        where.append(stored_tasks.IS_OPEN)
    if blocked:
        where.append(f"t.decided_by IS NULL AND {stored_tasks.BLOCKERS} <> '[]'")
    if wu:
        where.append("t.wu_id = :wu")
    return TaskPage(*select(store.db(), " AND ".join(where), values, limit))


def select(
    db: sqlite3.Connection,
    condition: str,
    values: Mapping[str, str | int | None],
    limit: int,
    order: str = stored_tasks.FIRST_OPEN,
) -> tuple[list[TaskRow], int]:
    """Return the first tasks that fulfil a condition on the row `t` and its line `l`, and how many more there are."""
    ids, more = stored_tasks.select_ids(db, condition, values, limit, order)
    return [*rows_of(db, ids).values()], more


def rows_of(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, TaskRow]:
    """Return the rows of tasks by their ids, in the same order."""
    found = stored_tasks.columns_of(db, ids, _COLUMNS, descriptors.REQUESTED)
    names = presence.names_by_reader(db)
    return {str(row[0]): TaskRow(row[:-2], strict_json.read(row[-2]), row[-1], names) for row in found}


def show(store: Store, task_id: str, caller: Caller | None = None) -> TaskDetail:
    """Return a task with its events, and what the caller may do with it.

    Raises:
        UsageError: No task, or several tasks, have this id.
    """
    from . import task_records as task_signals  # a list of tasks does without what sends signals

    found = task_rules.require(store, task_id)
    shown = TaskDetail(found)
    agent = found.record.get("agent")
    shown.agent_name = presence.names_by_reader(store.db()).get(agent) if agent else None
    shown.contradicted_by = contradictions(store.db(), found.record)
    shown.warnings = task_rules.notes_on_blockers(store, found)
    shown.warnings += collisions.of_answer(store, caller, found.record["task_id"])
    shown.warnings += task_signals.away(store, found)
    shown.launches = task_roles.receipts(store.db(), found)
    shown.brief = task_roles.brief_text(store.repo.worktree, found.record)
    checked = task_roles.check_brief(store.repo.worktree, found.record)
    if checked is not None and checked.sentence:
        shown.warnings.append(checked.sentence)
    shown.answered_by = task_rules.answered_by(found, caller) if caller is not None else None
    if caller is not None:
        shown.next = task_rules.steps(
            found, caller, store.now(), is_left=task_rules.is_left(store, caller, found)
        )
    return shown


class Contradiction(Outcome):
    """A signal that says something else of a task than its record, which counts."""

    signal_id: str
    sender_identity: str
    sender_name: str | None
    contradicts: Sequence[TaskDifference]


def contradictions(db: sqlite3.Connection, task: TaskRecord, *, most: int = READ_MAX) -> list[Contradiction]:
    """Return the signals of a task's thread that differ from its record, oldest first.

    Args:
        most: The number of signals to compare, the latest ones.
    """
    from ..agents import mailbox  # a list of tasks does without them, and so does a take
    from ..agents.descriptions import sender_name_from
    from ..signals import task_records

    tasks, names = task_records.TaskRecords(db), presence.names_by_session(db)
    found = []
    for signal, _ in reversed(mailbox.signals(db, "s.thread = ?", (task["thread_id"],), "l.body DESC", most)):
        if not may_contradict(signal):
            continue
        differs = [each for each in tasks.of_signal(signal) if each["task_id"] == task["task_id"]]
        if differs:
            name = sender_name_from(names, signal)
            found.append(Contradiction(signal["signal_id"], signal["sender_identity"], name, differs))
    return found


def select_events(events: Sequence[TaskEvent], first: Collection[str]) -> tuple[list[ShownTaskEvent], int]:
    """Return events in their order as answers show them, and how many are left out.

    Args:
        events: All events, in order.
        first: The ids of those that an answer must have rather than others, which are the latest.
    """
    left = BYTES_MAX
    found: set[str] = set()
    for each in [*(one for one in events if one.id in first), *reversed(events)]:
        if each.id not in found:
            left -= len(each.line)
            if left < 0:
                break
            found.add(each.id)
    return [records.shown(each.record) for each in events if each.id in found], len(events) - len(found)


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
    placed = _placed(nodes, top)
    shown = placed[:limit]
    return TaskTree(_groups(db, shown), len(placed) - len(shown), len(nodes) == NODES_MAX)


def _placed(nodes: Iterable[Node], top: str | None) -> list[tuple[Node, Node, int, bool]]:
    """Return each task before those below it, with the root that it is below, its depth, and whether it is in a cycle.

    Of tasks in a cycle the task that was asked for is the root, else the earliest one.
    """
    known = {node[0]: node for node in sorted(nodes, key=_time)}
    below: dict[str | None, list[str]] = {}
    for id, (_, parent, *_rest) in known.items():
        below.setdefault(parent, []).append(id)
    seen: set[str] = set()

    def walk(root: str, ring: Collection[str]) -> Iterator[tuple[Node, Node, int, bool]]:
        todo = [(root, 0)]
        while todo:
            id, depth = todo.pop()
            if id not in seen:
                seen.add(id)
                yield known[id], known[root], depth, id in ring
                todo += [(each, depth + 1) for each in reversed(below.get(id, ()))]

    if top is not None:
        return list(walk(top, _ring(top, known)))
    trees = [list(walk(id, ())) for id, node in known.items() if node[1] not in known]
    for id in known:
        if id not in seen:
            ring = _ring(id, known)
            trees.append(list(walk(min(ring, key=lambda id: _time(known[id])), ring)))
    trees.sort(key=lambda tree: (_group(tree[0][0]), _time(tree[0][0])))
    return [row for tree in trees for row in tree]


def _time(node: Node) -> tuple[int, str]:
    return node[5], node[0]


def _ring(start: str, known: Mapping[str, Node]) -> list[str]:
    """Return the cycle that a task is in or below; empty without one: each task has at most one parent."""
    path: dict[str, None] = {}
    id: str | None = start
    while id is not None and id in known and id not in path:
        path[id] = None
        id = known[id][1]
    return list(path)[list(path).index(id) :] if id in path else []


def _group(node: Node) -> tuple[bool, str, bool, str]:
    """Return the place of a root's group: without an initiative or a work unit last."""
    return node[2] is None, node[2] or "", node[3] is None, node[3] or ""


def _groups(db: sqlite3.Connection, placed: Sequence[tuple[Node, Node, int, bool]]) -> list[TreeGroup]:
    ids = [node[0] for node, *_ in placed]
    rows = rows_of(db, ids)
    launches = dict(db.execute(_LAUNCHES, (json_list(ids),)).fetchall())
    groups: dict[tuple[object, ...], TreeGroup] = {}
    for node, root, depth, in_cycle in placed:
        group = groups.setdefault(_group(root), TreeGroup(root[2], root[4]))
        group.tasks.append(TreeRow(rows[node[0]], node[1], depth, in_cycle, launches.get(node[0], 0)))
    return list(groups.values())


GROUPS_MAX = 20  # of each kind
NO_ROLE = "(no role)"
_DONE = "(t.state <> 'canceled' OR t.first_take IS NOT NULL)"


class Durations(Outcome):
    """Times in seconds; all but `count` are None without any."""

    count: int
    median: float | None = None
    p90: float | None = None
    longest: float | None = None


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
        self.to_first_take = self.to_end = Durations(0)
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
    rows = db.execute(
        "SELECT coalesce(asked, :none), count(*), count(*) FILTER (WHERE decided_by IS NULL AND replaced <> 1),"
        f" count(*) FILTER (WHERE decided_by IS NOT NULL AND state = 'completed') FROM task t WHERE {where}"
        " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most",
        {**values, "none": NO_ROLE, "most": GROUPS_MAX},
    )
    return [RoleCount(*row) for row in rows]


def _durations(db: sqlite3.Connection, end: str, where: str, values: Values) -> Durations:
    # What clocks of several machines make negative counts as nothing.
    query = f"SELECT max(0, t.{end} - t.created) FROM task t WHERE {where} AND t.{end} IS NOT NULL ORDER BY 1"
    found = [micros / 1e6 for (micros,) in db.execute(query, values)]
    count = len(found)
    places = ((count - 1) // 2, (count * 9 - 1) // 10, count - 1) if found else ()
    return Durations(count, *(round(found[at], 3) for at in places))


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
    from ..memory import listing  # lists of tasks do without the memory

    tasks = takeable(store, caller, wu=wu) if caller is not None else []
    found = listing.ready(store, wu if wu is not None or caller is None else caller.wu_id, **options)
    found.tasks = list(tasks)
    if tasks:
        found.next = [command("gitmem", "task", "take", str(tasks[0].task_id)), *found.next]
    return found
