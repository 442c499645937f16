"""Make a task and its events line by line, as writers on several clones would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitmem import records
from gitmem.log.lines import digest, format_at
from gitmem.order.causal import by_line
from gitmem.order.task import FoldedTask, TaskEvent, sender_of
from gitmem.records.record_types import TaskRecord
from gitmem.text.addresses import writer_of
from gitmem.work import READ_MAX, task_state

BEGINNING = 1_795_000_000_000_000  # microseconds
SECOND = 1_000_000
LEASE = 60
CALLER = "codex:planner:one"
TASK = "task-0001"


def session_of(identity: str) -> str:
    return f"sess-{''.join(char for char in identity if char.isalnum())[:12]:0<4}"


class Task:
    """A task and the events that were written so far, each at its second."""

    def __init__(
        self, task_id: str = TASK, caller: str = CALLER, *, writer: str = "", **fields: object
    ) -> None:
        self.events: dict[str, TaskEvent] = {}
        self.line = records.line("task", BEGINNING, {
            "task_id": task_id, "thread_id": "thread-0001", "message": "Write the tests", "purpose": "delegation",
            "sender_identity": caller, "sender_session": session_of(caller), **fields,
        }, writer=writer or writer_of(caller))  # fmt: skip
        record = records.read_kind("task", self.line)
        assert record is not None
        self.record: TaskRecord = record

    def add(
        self,
        event: str,
        who: str,
        second: float,
        *,
        seen: Sequence[TaskEvent] | None = None,
        **fields: object,
    ) -> TaskEvent:
        """Write an event; `seen` are the last events that its writer knows, all of them by default."""
        known = self.heads() if seen is None else seen
        made = write(
            event, who, second, **{"event_id": f"tev-{len(self.events):04}", "task_id": self.record["task_id"],
                                   "after": [each.id for each in known], **fields},
        )  # fmt: skip
        self.events[made.id] = made
        return made

    def take(self, who: str, second: float, *, lease: float = LEASE, **fields: object) -> TaskEvent:
        return self.add("take", who, second, **{"until": at(second + lease), **fields})  # type: ignore[arg-type]

    def status(self, who: str, second: float, state: str, take: TaskEvent, **fields: object) -> TaskEvent:
        return self.add("status", who, second, **{"state": state, "take": take.id, **fields})  # type: ignore[arg-type]

    def seal(self, second: float, outcome: TaskEvent, **fields: object) -> TaskEvent:
        given = {"state": outcome.state, "outcome": outcome.id, "answers_digest": digest(outcome.line)}
        return self.add("seal", self.record["sender_identity"], second, **{**given, **fields})  # type: ignore[arg-type]

    def heads(self) -> list[TaskEvent]:
        named = {id for each in self.events.values() for id in each.named}
        return [each for id, each in self.events.items() if id not in named]

    def fold(self, more: Iterable[TaskEvent] = (), **options: object) -> FoldedTask:
        return FoldedTask(self.record, [*self.events.values(), *more], **options)  # type: ignore[arg-type]

    def flooded(self, flood: Iterable[TaskEvent], most: int = READ_MAX) -> FoldedTask:
        """The task with a flood of events, of which it reads a part."""
        every = by_line([*self.events.values(), *flood])
        read = task_state.choose(every, sender_of(self.record), self.record.get("agent"), most=most)
        return FoldedTask(self.record, read, left_out=len(every) - len(read))

    def accepted(self, take: TaskEvent, replaces: TaskEvent) -> TaskEvent:
        """The take of this handoff as an event of a task whose take it replaces."""
        return take.accepting(replaces.id, sender_of(self.record))


def at(second: float) -> str:
    return format_at(BEGINNING + round(second * SECOND))


def write(event: str, who: str, second: float, **fields: object) -> TaskEvent:
    """Return an event as it is read."""
    line = records.line("task_event", BEGINNING + round(second * SECOND), {
        "event": event, "sender_identity": who,
        "sender_session": None if who.startswith("human:") else session_of(who), **fields,
    }, writer=writer_of(who))  # fmt: skip
    record = records.read_kind("task_event", line)
    assert record is not None
    return TaskEvent(record, line)


def described(task: FoldedTask) -> dict[str, object]:
    """Everything that a fold says, to compare folds."""
    return {
        "state": task.state, "decided_by": task.decided_by, "outcome": task.outcome and task.outcome.line,
        "seal": task.seal and task.seal.line, "close": task.close and task.close.line,
        "takes": [each.line for each in task.takes], "void": [each.line for each in task.void],
        "holder": task.holder and task.holder.line, "conflict": task.conflict, "late": [each.line for each in task.late],
        "cancels": [each.line for each in task.cancels], "rejections": [each.line for each in task.rejections],
        "heads": [each.line for each in task.heads()], "left_out": task.left_out, "replaced": task.is_replaced,
        "beside": task.stands_beside,
    }  # fmt: skip
