"""Lists of tasks; one task with its events; launches of a task's workers, as receipts: what was asked for, and what came.

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
from . import chains, collisions, stored_tasks, task_roles, task_rules
from .stored_tasks import LISTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..agents.presence import ShownNames
    from ..order.task import FoldedTask, TaskEvent
    from ..records.kinds import TaskDifference
    from ..records.record_types import ShownTask, ShownTaskEvent, SignalRecord, TaskRecord
    from ..store import Store

    # Id, parent, initiative, work unit as compared and as typed, and the time.
    Node = tuple[str, str | None, str | None, str | None, str | None, int]
    Values = Mapping[str, str | None]


SHOWN_MAX = 20  # launches of a task that an answer has: the last ones


class LaunchReceipt(Outcome):
    """What was asked of a worker that was started for a task, and what it is.

    Attributes:
        launch: The event: the stable name of the attempt.
        attempt: The label that its launcher gave the attempt.
        attempt_number: Its place among the launches of the initiative, or of a task without one.
        actual_role: The role of the taker; before a take that of the launched worker, if its launcher knows it.
        role_mismatch: Whether it differs from the requested one; None if one of them is not known.
        client: As the launcher said, else the taker; so are `branch` and `worktree`.
        take: The take that followed.
        last_actual_role: Of a relaunch: the role of the last worker before it.
        relaunch_reason: Why it was launched again.
    """

    def __init__(self, task: FoldedTask, launch: TaskEvent, take: TaskEvent | None) -> None:
        asked, said = task.record, launch.record
        came: Mapping[str, Any] = take.record if take is not None else {}
        self.task_id = asked["task_id"]
        self.launch = launch.id
        self.attempt = said.get("attempt")
        self.attempt_number: int | None = None
        self.initiative_id = asked.get("initiative_id")
        self.wave = said.get("wave")
        self.wu_id = asked.get("wu_id")
        self.lane = said.get("lane") or asked.get("lane")
        self.claimed_mode = said.get("claimed_mode")
        self.client = said.get("client") or came.get("client")
        self.requested_model = said.get("requested_model") or asked.get("requested_model")
        self.branch = said.get("branch") or came.get("branch")
        self.worktree = said.get("worktree") or came.get("worktree")
        self.handoff_path = said.get("handoff_path")
        self.requested_role = asked.get("requested_role") or None
        self.actual_role = came.get("actual_role") or said.get("actual_role") or None
        self.requested_ownership_scope = asked.get("requested_ownership_scope") or None
        self.actual_ownership_scope = (
            came.get("actual_ownership_scope") or said.get("actual_ownership_scope") or None
        )
        compared = descriptors.compare(
            self.requested_role,
            self.actual_role,
            descriptors.read_scope(self.requested_ownership_scope),
            descriptors.read_scope(self.actual_ownership_scope),
        )
        self.role_mismatch = compared.role_mismatch
        self.scope_mismatch = compared.scope_mismatch
        self.take = take.id if take is not None else None
        self.relaunch_of = said.get("relaunch_of")
        self.relaunch_reason = said.get("reason")
        self.last_actual_role = _role_before(task, launch) if self.relaunch_reason else None
        self.launched_by = said.get("sender_name") or launch.sender[0]
        self.launched_at = said["at"]


def receipts(db: sqlite3.Connection, task: FoldedTask) -> list[LaunchReceipt]:
    """Return the receipts of the last launches of a task, in their order."""
    every = of_task(task)
    found = [LaunchReceipt(task, launch, take_after(task, launch, every)) for launch in every[-SHOWN_MAX:]]
    known = stored_tasks.launch_numbers(db, task)
    for each in found:
        each.attempt_number = known.get(each.launch)
    return found


def of_task(task: FoldedTask) -> Sequence[TaskEvent]:
    """Return the launches of a task in their order."""
    return by_line(each for each in task.events.values() if each.event == "launch")


def _role_before(task: FoldedTask, launch: TaskEvent) -> Mapping[str, Any] | None:
    """Return the role of the last worker that a launcher knew of, of those whose role is known."""
    known = (each for each in (*task.takes, *of_task(task)) if task.has_seen(launch, each))
    roles = [each.record["actual_role"] for each in by_line(known) if each.record.get("actual_role")]
    return roles[-1] if roles else None


def take_after(task: FoldedTask, launch: TaskEvent, every: Sequence[TaskEvent]) -> TaskEvent | None:
    """Return the last take that names a launch, else the last one whose taker had seen it and no later launch."""
    named = [each for each in task.takes if each.record.get("launch") == launch.id]
    if named:
        return named[-1]
    later = [each for each in every if task.has_seen(each, launch)]
    for take in reversed(task.takes):
        is_after = take.record.get("launch") is None and task.has_seen(take, launch)
        if is_after and not any(task.has_seen(take, each) for each in later):
            return take
    return None


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
LONG = 4_000  # bytes of an event whose texts may be cut
TEXT_MAX = 500  # characters that are left of a cut text
IDS_MAX = 20


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
        self.outcome = records.shown(found.outcome.record) if found.outcome is not None else None
        self.seal, self.close, self.holder = map(shorter_or_none, decisions)
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
        self.launches: list[LaunchReceipt] = []
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
    return {str(row[0]): TaskRow(row[:-2], _ids(row[-2]), row[-1], names) for row in found}


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
    shown.warnings = chains.notes_on_blockers(store, found)
    shown.warnings += collisions.of_answer(store, caller, found.record["task_id"])
    shown.warnings += task_signals.away(store, found)
    shown.launches = receipts(store.db(), found)
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


def _ids(array: str) -> list[str]:
    """Return the ids in a JSON array; they need no decoder: the models allow only letters and digits."""
    return [id for id in array.strip("[]").replace('"', "").split(",") if id]


class Contradiction(Outcome):
    """A signal that says something else of a task than its record, which counts."""

    def __init__(
        self, signal: SignalRecord, sender_name: str | None, contradicts: Sequence[TaskDifference]
    ) -> None:
        self.signal_id = signal["signal_id"]
        self.sender_identity = signal["sender_identity"]
        self.sender_name = sender_name
        self.contradicts = list(contradicts)


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
            found.append(Contradiction(signal, sender_name_from(names, signal), differs))
    return found


def select_events(events: Sequence[TaskEvent], first: Collection[str]) -> tuple[list[ShownTaskEvent], int]:
    """Return events in their order as answers show them, and how many are left out.

    Args:
        events: All events, in order.
        first: The ids of those that an answer must have rather than others, which are the latest.
    """
    if sum(len(each.line) for each in events) <= BYTES_MAX:
        return [records.shown(each.record) for each in events], 0
    left = BYTES_MAX
    found: dict[str, ShownTaskEvent] = {}
    for each in [*(one for one in events if one.id in first), *reversed(events)]:
        if each.id in found:
            continue
        left -= min(len(each.line), LONG)
        if left < 0:
            break
        found[each.id] = shorter(each)
    return [found[each.id] for each in events if each.id in found], len(events) - len(found)


def shorter(event: TaskEvent) -> ShownTaskEvent:
    """Return an event with its long fields cut; `cut` has the size that each of them had."""
    shown: Any = records.shown(event.record)
    if len(event.line) <= LONG:
        return shown  # type: ignore[no-any-return]
    sizes: dict[str, int] = {}
    for name, value in list(shown.items()):
        if isinstance(value, str) and len(value) > TEXT_MAX:
            sizes[name], shown[name] = len(value), value[:TEXT_MAX]
        elif isinstance(value, list) and len(value) > IDS_MAX:
            sizes[name], shown[name] = len(value), value[:IDS_MAX]
        elif isinstance(value, dict) and len(size := repr(value)) > TEXT_MAX:
            sizes[name], shown[name] = len(size), {}
    shown["cut"] = sizes
    return shown  # type: ignore[no-any-return]


def shorter_or_none(event: TaskEvent | None) -> ShownTaskEvent | None:
    """Return an event with its long fields cut; None without one."""
    return shorter(event) if event is not None else None
