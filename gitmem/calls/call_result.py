"""What callers get: the progress of each task, the result of each agent, and that of the call as a whole."""

from __future__ import annotations

from ..errors import GitmemError
from ..log.lines import format_at
from ..order.task import TERMINAL, WAITING, WORKING
from ..outcome import Outcome, command
from ..work import task_decisions, task_records, task_rules
from ..work.task_work import sender_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store
    from .bundle import Transfer


ALL, ANY = "all", "any"
_ERROR_TEXTS = ("code", "type", "message")


class TaskProgress(Outcome):
    """A report of a task's holder, or its beginning.

    Attributes:
        state: `working` for progress, a question's or an end's state.
        message: Its text.
        at: When it was written, in ISO 8601.
    """

    def __init__(self, task: FoldedTask, event: TaskEvent) -> None:
        self.task_id = task.record["task_id"]
        self.event_id = event.id
        self.agent = event.sender[0]
        self.state = event.state or "working"
        self.message: str | None = event.record.get("message")
        self.at = format_at(event.at)


def progress_of(task: FoldedTask, shown: set[str]) -> list[TaskProgress]:
    """Return the takes and reports of a task that count and are not among those shown, in order, and add them to these."""
    new = [
        each
        for each in task.events.values()
        if each.event in ("take", "status") and each.id not in shown and task.counts(each)
    ]
    shown.update(each.id for each in new)
    return [TaskProgress(task, each) for each in sorted(new, key=lambda each: each.line)]


class CallError(GitmemError):
    """A call that did not end with a result.

    Attributes:
        type: The type of the worker's error, such as `ValueError`.
        text: Its text, unchanged.
    """

    status = 1
    code = "call-failed"

    def __init__(self, result: AgentResult) -> None:
        error = result.error or {}
        self.type = str(error.get("type") or "")
        self.text = str(error.get("message") or result.message or "")
        said = ": ".join(filter(None, (self.type, self.text)))
        super().__init__(
            f"{result.agent}: {result.state}{f': {said}' if said else ''}.",
            code=str(error.get("code") or "") or None,
            next=[command("gitmem", "task", "show", result.task_id)],
        )


class AgentResult(Outcome, kw_only=True):
    """The result of one agent.

    Attributes:
        agent: Its address; of a task for a role that of whoever has taken it, and "" until then.
        resolved_by: How its name was found: `exact`, `folded`, `alias`, `role` or `prefix`.
        state: The state of its task.
        is_held: Whether somebody has it.
        confirmed: Whether its caller has sealed that: then nothing changes it.
        message: The text of the result, or of its question.
        error: `code`, `type`, `message` and `retryable` of its error, as the worker reported them; None without one.
        payload: What the result has beyond its text.
        timed_out: Whether the caller has stopped waiting; the task goes on.
    """

    task_id: str
    agent: str
    name: str
    resolved_by: str
    state: str = "submitted"
    is_held: bool = False
    confirmed: bool = False
    message: str | None = None
    error: Mapping[str, Any] | None = None
    payload: Mapping[str, Any] = {}
    timed_out: bool = False
    warnings: list[str]

    @classmethod
    def of(cls, task: Mapping[str, Any], warnings: Sequence[str] = ()) -> AgentResult:
        """Return the result of a task that is not read yet."""
        agent = task.get("agent") or ""
        return cls(
            task_id=task["task_id"], agent=agent, name=task.get("requested_to") or agent,
            resolved_by=task.get("resolved_by") or "", warnings=list(warnings),
        )  # fmt: skip

    def read(self, task: FoldedTask) -> None:
        """Take over the state of the folded task."""
        self.state = task.state
        self.confirmed = task.decided_by == "seal"
        self.is_held = task.holder is not None
        event = task.outcome
        by = event if event is not None else task.holder
        self.agent = self.agent or (by.sender[0] if by is not None else "")
        if event is None and task.state in WAITING and task.holder is not None:
            asked = [
                each
                for each in task.events.values()
                if each.event == "status" and each.take == task.holder.id
            ]
            event = max(asked, key=lambda each: each.line, default=None)
        if event is not None:
            self.message = event.record.get("message") or event.record.get("reason")
            self.payload = event.record.get("payload") or {}
            self.error = _error(self.payload.get("error"), retryable=event.is_retryable)
        elif task.seal is not None:
            self.message = task.seal.record.get("reason")

    @property
    def is_completed(self) -> bool:
        """Whether it has a result."""
        return self.state == "completed"

    @property
    def asks(self) -> bool:
        """Whether it waits for an answer of the caller."""
        return self.state in WAITING


class CallResult(Outcome):
    """The result of a call.

    Attributes:
        state: `completed` if the call has what it asked for, else the state of the first agent without a result.
        timed_out: Whether the caller has stopped waiting.
        message: The text of the first result, by `join` any, else of the only agent.
        error: Its error.
        results: Of each agent, in the order of the call.
        completed, failed: The numbers of agents with a result, and of those that ended without one.
        transfer: What was handed over to each agent; None if nothing was asked for.
    """

    __slots__ = (
        "state", "timed_out", "message", "error", "join", "thread_id", "completed", "failed", "results", "transfer", "warnings", "next",
    )  # fmt: skip

    def __init__(
        self,
        join: str,
        thread_id: str,
        results: Sequence[AgentResult],
        transfer: Transfer | None = None,
        others: Collection[str] = (),
    ) -> None:
        self.join = join
        self.transfer = transfer
        self.thread_id = thread_id
        self.results = list(results)
        done = [each for each in results if each.is_completed]
        left = [each for each in results if not each.is_completed]
        self.completed = len(done)
        self.failed = sum(
            not (each.timed_out or each.asks or each.state in ("submitted", WORKING)) for each in left
        )
        is_done = bool(done) if join == ANY else not left
        first = done[0] if is_done else left[0]
        self.state = first.state
        self.timed_out = not is_done and any(each.timed_out for each in left)
        self.message = first.message if len(results) == 1 or (join == ANY and is_done) else None
        self.error = first.error
        self.warnings = list(dict.fromkeys(warning for each in results for warning in each.warnings))
        self.next = self._next_steps(first, others)

    @property
    def is_done(self) -> bool:
        """Whether the call has what it asked for."""
        return self.state == "completed"

    def check(self) -> CallResult:
        """Return this result if it is complete.

        Raises:
            CallError: An agent failed, or did not answer in time; it has the type and text of the original error.
        """
        if self.is_done:
            return self
        raise CallError(next(each for each in self.results if not each.is_completed))

    def _next_steps(self, first: AgentResult, others: Collection[str]) -> list[str]:
        asking = next((each for each in self.results if each.asks), None)
        if asking is not None:
            return [command("gitmem", "task", "show", asking.task_id)]
        waiting = []
        if not self.is_done and not self.failed:
            waiting = [each.task_id for each in self.results if each.state not in TERMINAL]
        if waiting:
            return [
                command("gitmem", "task", "wait", *waiting),
                *(command("gitmem", "task", "cancel", each) for each in waiting if each not in others),
            ]
        return [command("gitmem", "task", "show", first.task_id)]


def _error(value: object, *, retryable: bool) -> Mapping[str, Any] | None:
    """Return an error of a worker without what nobody asked for: it is the text of a peer."""
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = {name: text for name in _ERROR_TEXTS if isinstance(text := value.get(name), str)}
    return {**found, "retryable": retryable}


def has_ended(store: Store, task: FoldedTask) -> bool:
    """Return whether to stop waiting: there is a question, or an end after which nobody tries again."""
    if task.state in WAITING:
        return True
    return task_rules.is_over(task, store.now()) or task_decisions.reason_to_give_up(store, task) is not None


def take_result(store: Store, caller: Caller, result: AgentResult, task: FoldedTask) -> None:
    """Read the result of a task, and seal it, or that it is given up, if the caller's session wrote the task."""
    why = None if task.state in WAITING else task_decisions.reason_to_give_up(store, task)
    if task_rules.seal(task, sender_of(caller)) is None and task.state not in WAITING:
        try:
            if why is not None:
                task = task_decisions.give_up(store, caller, task, why, asks=True)
            else:
                task_decisions.seal_task(store, caller, result.task_id)
                task = task_rules.require(store, result.task_id, writing=True)
        except GitmemError as error:
            result.warnings.append(f"The result could not be sealed: {error.message}")
    result.read(task)
    result.message = result.message or why


def time_out(store: Store, caller: Caller, results: Sequence[AgentResult], *, cancel: bool) -> set[str]:
    """Note that the caller has stopped waiting for these results, and cancel their tasks if it wants that.

    Returns:
        The tasks that it may not cancel.
    """
    others = set()
    for each in results:
        each.timed_out = True
        if cancel:
            try:
                task_decisions.cancel(store, caller, each.task_id, reason="The caller stopped waiting.")
            except GitmemError as error:
                each.warnings.append(error.message)
        task = task_rules.require(store, each.task_id, writing=True)
        if task_decisions.is_fenced(store, task) and not task.is_finished:
            each.warnings.append(task_decisions.BEGUN)
        each.warnings += task_records.away(store, task)
        if not task_rules.may_cancel(store, task, caller):
            others.add(each.task_id)
        each.read(task)
    return others
