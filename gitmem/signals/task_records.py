"""What the record of a task says where a signal or a node about it says something else: the record counts.

Only fields are compared, never texts, and only those that mean the same on both sides. A signal names its task by `task_id` or
`delegation_id`, a node in its metadata. What one side does not say does not differ.
"""

from __future__ import annotations

from ..agents import descriptors, presence
from ..agents.descriptors import listed, role_text
from ..commit_message import sanitize
from ..order.content import is_notice
from ..outcome import quote
from ..records.ids import is_id, unit_key
from ..text import strict_json
from ..text.name_matching import fold
from ..text.sanitize import sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..records.kinds import TaskDifference
    from ..records.record_types import ShownSignal, SignalRecord

DONE_MAX = 3  # open tasks that are named beside a signal that says that their work unit is done
STATES = (
    "submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected",
)  # fmt: skip
NAMES = ("task_id", "delegation_id")  # fields, and keys of metadata, that name a task
NOBODY = "nobody"
_LABELS = {
    "wu_id": "the work unit", "initiative_id": "the initiative", "lane": "the lane", "target_role": "the requested role",
    "sender_role": "the role of its holder", "state": "the state", "holder": "the holder",
}  # fmt: skip


class TaskRecord:
    """What is compared of a task."""

    def __init__(self, row: Sequence[Any], name: str | None) -> None:
        (
            self.task_id, self.caller, self.agent, unit, initiative, self.state, self.is_open, self.holder, self.session, actual, body,
        ) = row  # fmt: skip
        self.thread_id, lane, self.target_role, self.requested, covered = strict_json.read(body)
        self.actual: Mapping[str, Any] = strict_json.read(actual) if actual else {}
        area = descriptors.read_scope(covered) or descriptors.OwnershipScope()
        self.units = [each for each in (unit, *area.wu_ids) if each]
        self.initiatives = [each for each in (initiative, area.initiative_id) if each]
        self.lanes = [each for each in (lane, area.lane) if each]
        self.holder_name = name or self.holder

    @property
    def requested_role(self) -> str | None:
        """The role that was requested, as text."""
        return role_text(self.requested) or self.target_role

    def is_worker(self, identity: str, session: str | None) -> bool:
        """Return whether somebody is its holder."""
        return (identity, session or None) == (self.holder, self.session)


class TaskRecords:
    """Compares signals and nodes with the tasks that they name, each of which is read once.

    Args:
        db: The index.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._names = presence.names_by_reader(db)
        self._known: dict[str, TaskRecord | None] = {}

    def put(self, fields: ShownSignal, record: SignalRecord) -> None:
        """Set `contradicts` in a signal for an answer, if the record of a task says something else."""
        found = self.of_signal(record)
        if found:
            fields["contradicts"] = found

    def of_signal(self, record: SignalRecord) -> list[TaskDifference]:
        """Return how a signal differs from the tasks that it is about."""
        unit = record.get("wu_id")
        if unit and not record["recipients"] and is_notice(record):
            return self._done(unit, record)
        found = []
        for task in self._tasks(record):
            found += _axes(task, record) + _roles(task, record) + self._decision(task, record)
        return found

    def of_node(self, wu: str | None, lane: str | None, metadata: Mapping[str, Any]) -> list[TaskDifference]:
        """Return how a node differs from the tasks that its metadata names.

        Args:
            wu: Its work unit.
            lane: Its lane.
            metadata: May also have `initiative_id`, `target_role`, and `state` or `status`, if that is the state of a task.
        """
        found = []
        for task in self._tasks(metadata):
            found += _axes(task, {**_texts(metadata), "wu_id": wu, "lane": lane})
            said = _texts(metadata)
            found += _role(task, "target_role", said.get("target_role"), task.requested_role)
            states = {said.get(name) for name in ("state", "status")} & {*STATES}
            found += [
                _one(task, "state", state, task.state)
                for state in sorted(filter(None, states))
                if state != task.state
            ]
        return found

    def _tasks(self, named: Mapping[str, Any]) -> list[TaskRecord]:
        ids = dict.fromkeys(
            id for name in NAMES if isinstance(id := named.get(name), str) and is_id("task", id)
        )
        return [task for id in ids if (task := self._task(id)) is not None]

    def _task(self, id: str) -> TaskRecord | None:
        if id not in self._known:
            from ..agents import waiting_work

            row = waiting_work.task_row(self._db, id)
            if row is None:
                self._known[id] = None
            else:
                holder, session = row[7:9]
                name = self._names.get(session or holder) if holder else None
                self._known[id] = TaskRecord(row, name)
        return self._known[id]

    def _done(self, unit: str, record: SignalRecord) -> list[TaskDifference]:
        """Return the open tasks on a work unit that a notice says is done."""
        if (record.get("idempotency_key") or "").partition(" ")[0] != "completion":
            return []
        from ..agents import waiting_work

        ids = waiting_work.open_tasks_on(self._db, unit_key(unit), DONE_MAX)
        tasks = [task for id in ids if (task := self._task(id)) is not None]
        return [_one(task, "state", f"{unit} is done", task.state) for task in tasks]

    def _decision(self, task: TaskRecord, record: SignalRecord) -> list[TaskDifference]:
        """Return what an AGREE or REJECT to a task seems to say, and its record does not.

        Only those to the task's own proposal count: they have its thread, and answer its proposal if anything.
        """
        intent, sender = record["intent"], record["sender_identity"]
        is_answer = intent in ("AGREE", "REJECT") and record.get("thread_id") == task.thread_id
        if not (is_answer and task.is_open) or sender == task.caller:
            return []
        answered = record.get("reply_to")
        from ..agents import waiting_work

        if answered and not waiting_work.is_proposal_of(self._db, answered, task.thread_id, task.caller):
            return []
        has_it, session = sender == task.holder, record.get("sender_session")
        if intent == "REJECT":
            return (
                [_one(task, "state", intent, task.state)] if has_it or task.agent in (sender, session) else []
            )
        if has_it or task.agent not in (None, sender, session):
            return []
        return [_one(task, "holder", intent, task.holder_name)]


def lines(found: Sequence[TaskDifference], via: str = "gitmem") -> list[str]:
    """Return a line of text for each task that something differs from."""
    by_task: dict[str, list[str]] = {}
    for each in found:
        said, recorded = (_shown(each[side]) for side in ("said", "recorded"))
        by_task.setdefault(each["task_id"], []).append(
            f"{_LABELS[each['field']]} is {recorded} (here: {said})"
        )
    return [
        f"note: in the record of {sanitize(id)} {', '.join(parts)}. The record counts: {via} task show {quote(id)}"
        for id, parts in by_task.items()
    ]


def _shown(value: str | None) -> str:
    return sanitize_for_model(listed(value)) if value else NOBODY


def _one(task: TaskRecord, field: str, said: str, recorded: str | None) -> TaskDifference:
    return {"task_id": task.task_id, "field": field, "said": said, "recorded": recorded}


def _axes(task: TaskRecord, said: Mapping[str, Any]) -> list[TaskDifference]:
    """Return the work unit, initiative and lane that are not those of a task."""
    found = []
    for field, recorded, form in (
        ("wu_id", task.units, unit_key),
        ("initiative_id", task.initiatives, fold),
        ("lane", task.lanes, fold),
    ):
        value, known = said.get(field), {form(each): each for each in reversed(recorded)}
        if value and known and form(value) not in known:
            found.append(_one(task, field, value, listed(list(reversed(known.values())))))
    return found


def _roles(task: TaskRecord, record: SignalRecord) -> list[TaskDifference]:
    """Return the role for which a signal to whoever does a task is, and that of its holder, if the record has others."""
    sender, to = record["sender_identity"], record["recipients"]
    found = []
    if sender == task.caller or any(each in to for each in (task.agent, task.holder, task.session) if each):
        now = role_text(task.actual.get("actual_role"))
        if not _is_role(record.get("target_role"), now):
            found += _role(task, "target_role", record.get("target_role"), task.requested_role)
    if task.is_open and task.is_worker(sender, record.get("sender_session")):
        taken_as = role_text(task.actual.get("actual_role"))
        found += _role(task, "sender_role", record.get("sender_role"), taken_as)
    return found


def _role(task: TaskRecord, field: str, said: str | None, recorded: str | None) -> list[TaskDifference]:
    """Return a role that is not the recorded one. A word without a slash may be an alias, which is not compared."""
    is_clear = said and "/" in said and recorded
    return [_one(task, field, said or "", recorded)] if is_clear and not _is_role(said, recorded) else []


def _is_role(said: str | None, recorded: str | None) -> bool:
    """Return whether two roles are the same; one without a profile is the same as any with it."""
    if not said or not recorded:
        return False
    one, other = ([fold(part) for part in role.split("/", 1)] for role in (said, recorded))
    return all(a == b for a, b in zip(one, other, strict=False))


def _texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that are texts: anybody may have written them."""
    return {name: value for name, value in metadata.items() if isinstance(value, str)}
