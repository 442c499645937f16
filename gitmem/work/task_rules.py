"""What a writer may do with a task, by what it knows: why not, as a code and a sentence, or None if it may.

The fold survives writers that break these rules, because two clones can't ask each other first.
"""

from __future__ import annotations

from ..agents import presence
from ..index.resolve_id import beginning, choose
from ..log.lines import format_at
from ..order.task import HANDOFF, SUBMITTED, WAITING, may_decide
from ..outcome import command
from . import ONCE, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, Sender, TaskEvent
    from ..records.record_types import TaskRecord
    from ..store import Store

    Refusal = tuple[str, str]


TAKEN = "taken-task"  # the code where somebody else has it
UNCONFIRMED = ", not yet accepted"
# For people; other states of A2A are words already.
WORDS = {"submitted": "not taken", "input-required": "asks a question", "auth-required": "asks for access"}
TAKES_MAX = 3  # takes that lapsed or failed, after which only a new task goes on


def state_text(task: FoldedTask) -> str:
    """Return the state for people, see `text_of`; of a closed task also by whom."""
    if task.decided_by == "close" and task.close is not None:
        return f"{task.state} (closed by {task.close.sender[0]})"
    return text_of(task.record["purpose"], task.state, task.decided_by, held=bool(task.held))


def text_of(purpose: str, state: str, decided_by: str | None, *, held: bool = False) -> str:
    """Return a state for people: `done, not yet accepted` until its caller has decided, of a handoff, which nobody confirms, `accepted`.

    Args:
        held: Whether somebody has it, who got an answer if nobody has begun it anew.
    """
    if held and state == SUBMITTED:
        return "answered"
    if purpose == HANDOFF:
        return "accepted" if state == "completed" else WORDS.get(state, state)
    if decided_by == "status":
        return f"{'done' if state == 'completed' else state}{UNCONFIRMED}"
    return WORDS.get(state, state)


def may_cancel(store: Store, task: FoldedTask, caller: Caller) -> bool:
    """Return whether somebody may ask for a cancellation; also who had no key, and so no address, before this task."""
    return may_decide(store.own_address(caller.reader), task.caller[0])


def may_cancel_at_once(task: FoldedTask) -> bool:
    """Return whether a cancellation needs nobody's agreement: nobody has the task, and each event that its events name is here."""
    return not task.held and _has_its_past(task)


def _has_its_past(task: FoldedTask) -> bool:
    """Return whether each event that an event of the task names is here: else one of them may be a take."""
    return all(each.named <= task.events.keys() for each in task.events.values())


def own_take(task: FoldedTask, sender: Sender) -> TaskEvent | None:
    """Return the take under which a writer works: valid, not released, and not followed by another one."""
    return next((each for each in task.held if each.sender == sender), None)


def left_take(task: FoldedTask, sender: Sender) -> TaskEvent | None:
    """Return the take of another session of a writer's identity, which the writer may release; None if it has one of its own."""
    held = [] if task.is_finished or own_take(task, sender) is not None else task.held
    return next((each for each in held if each.sender[0] == sender[0]), None)


def _taker(take: TaskEvent, sender: Sender) -> str:
    """Return who has taken a task, in words for a writer."""
    return f"another session of {sender[0]}" if take.sender[0] == sender[0] else take.sender[0]


def is_once(task: FoldedTask) -> bool:
    """Return whether a task may begin only once."""
    return task.record.get("semantics") == ONCE


def take(task: FoldedTask, sender: Sender, addresses: Collection[str], now: int) -> Refusal | None:
    """Return why a caller may not take a task now.

    Args:
        addresses: The names that tasks may address the caller by.
        now: The caller's clock, in microseconds.
    """
    record = task.record
    agent, deadline = record.get("agent"), record.get("deadline")
    failed = task.outcome.take if may_be_retried(task) and task.outcome is not None else None
    if task.is_finished and failed is None:
        return "finished-task", f"is finished: {state_text(task)}"
    if task.is_replaced:
        return "replaced-task", f"was replaced by {', '.join(task.replaced_by)}"
    if agent is not None and agent not in addresses:
        return "not-for-you", f"is for {agent}"
    if task.cancels:
        return "canceled-task", "is being canceled by its caller"
    if deadline is not None and deadline <= format_at(now):
        return "past-deadline", f"had to begin before {deadline}"
    over = [
        each for each in task.takes if each not in task.held or each.id == failed or task.lease(each) <= now
    ]
    released = [each for each in over if task.is_released(each)]
    for each in task.held:
        if each.sender != sender and each.id != failed and task.lease(each) > now:
            by, until = _taker(each, sender), format_at(task.lease(each))
            return TAKEN, f"was taken by {by}, who has it until {until}"
    if is_once(task) and task.takes:
        return "begun-task", f"may begin only once, and was taken by {task.takes[0].sender[0]}"
    if len(over) - len(released) >= TAKES_MAX:
        return "too-many-takes", f"was taken {len(over)} times without a result"
    return None


def may_be_retried(task: FoldedTask) -> bool:
    """Return whether a task failed in a way that allows another take, and its caller has not decided."""
    return (
        task.decided_by == "status"
        and task.outcome is not None
        and task.outcome.is_retryable
        and len(task.takes) < TAKES_MAX
    )


def is_over(task: FoldedTask, now: int) -> bool:
    """Return whether a task has an end after which nobody tries again."""
    return task.is_finished and not (may_be_retried(task) and launch(task, now) is None)


def launch(task: FoldedTask, now: int) -> Refusal | None:
    """Return why no worker may be launched for a task now: because nobody could take it."""
    agent = task.record.get("agent")
    return take(task, ("", None), [agent] if agent is not None else (), now)


def accept(task: FoldedTask, sender: Sender, addresses: Collection[str], now: int) -> Refusal | None:
    """Return why a caller may not accept a handoff: a handoff is a task whose take accepts it."""
    if sender == task.caller:
        return "own-handoff", "was offered by this session itself; another agent accepts it"
    if task.takes:
        return TAKEN, f"was accepted by {task.takes[0].sender[0]}"
    return take(task, sender, addresses, now)


def report(task: FoldedTask, sender: Sender) -> Refusal | None:
    """Return why a caller may not report its work, renew its lease or release its take."""
    if task.is_finished:
        return "finished-task", f"is finished: {state_text(task)}"
    if own_take(task, sender) is not None:
        return None
    holder = task.holder
    if holder is None:
        return "not-the-holder", "has no holder"
    return "not-the-holder", f"is held by {_taker(holder, sender)}, who took it at {holder.record['at']}"


def refuse(task: FoldedTask, sender: Sender, addresses: Collection[str]) -> Refusal | None:
    """Return why a caller may not reject a task; one for a single agent not while another session has it."""
    agent, holder = task.record.get("agent"), task.holder
    if task.is_finished:
        return "finished-task", f"is finished: {state_text(task)}"
    if agent is not None and agent not in addresses:
        return "not-for-you", f"is for {agent}"
    if agent is not None and holder is not None and own_take(task, sender) is None:
        by = _taker(holder, sender)
        return TAKEN, f"was taken by {by}, and can be rejected once that has given it back"
    return None


def seal(task: FoldedTask, sender: Sender) -> Refusal | None:
    """Return why a caller may not seal an outcome."""
    if sender != task.caller:
        return "not-the-caller", f"can only be accepted by the session that wrote it, of {task.caller[0]}"
    if task.seal is not None:
        return "sealed-task", f"is sealed already: {task.state}"
    return None


def close(task: FoldedTask, sender: Sender) -> Refusal | None:
    """Return why somebody may not close a task in the place of its caller."""
    if task.seal is not None:
        return "sealed-task", f"is sealed already: {task.state}"
    if task.close is not None:
        return "closed-task", f"is closed already: {state_text(task)}"
    if not may_decide(sender[0], task.caller[0]):
        return "not-a-person", f"can only be closed by {task.caller[0]}, or by a person with its key"
    return withdraw(task)


def withdraw(task: FoldedTask) -> Refusal | None:
    """Return why a handoff may not be ended without its acceptance; None for other tasks."""
    if task.record["purpose"] != HANDOFF:
        return None
    if task.takes:
        return "accepted-handoff", f"was accepted by {task.takes[0].sender[0]}, which no close takes back"
    if not _has_its_past(task):
        return (
            "unknown-events",
            "has events that are not here yet, perhaps its acceptance; gitmem sync fetches them",
        )
    return None


def answered_by(task: FoldedTask, caller: Caller) -> str | None:
    """Return the command of `gitmem task` by which the caller says in its own words what is missing: `done` or `message`."""
    if task.is_finished:
        return None
    if own_take(task, (caller.reader, caller.session_id)) is not None:
        return "done"
    return "message" if task.caller[0] == caller.reader and task.state in WAITING else None


def steps(task: FoldedTask, caller: Caller, now: int, *, is_left: bool) -> list[str]:
    """Return the complete commands that the caller may give next."""
    sender = (caller.reader, caller.session_id)

    def step(word: str) -> str:
        return command("gitmem", "task", word, task.record["task_id"])

    if task.is_finished:
        return [step("accept")] if task.record["purpose"] != HANDOFF and seal(task, sender) is None else []
    if own_take(task, sender) is not None:
        return [step("release")] if task.cancels else []
    if is_left and take(task, sender, caller.ids, now) is not None:
        return [step("release")]
    if task.caller[0] == caller.reader:
        return [step("cancel")] if task.state not in WAITING else []
    return [step("take")] if take(task, sender, caller.ids, now) is None else []


def resolve(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the id that a text is, or of which it is the only beginning.

    Raises:
        UsageError: `unknown-task`, `ambiguous-task` or `short-id`.
    """
    found = beginning(db, "task", "task_id", text) if text.startswith("task-") else ()
    if found == {text}:
        return text
    lists = ("gitmem task list", "gitmem task list")
    return choose(text, found, "task", "task show", lists, writing=writing, noun="task")


def require(store: Store, text: str, *, writing: bool = False) -> FoldedTask:
    """Return the task that an id or its beginning names.

    Raises:
        UsageError: See `resolve`.
    """
    found = task_state.load_task(store.db(), resolve(store.db(), text, writing=writing))
    assert found is not None  # it has a row
    return found


def record_of(db: sqlite3.Connection, task_id: str) -> TaskRecord | None:
    """Return the record of a task, or None if the task is not here."""
    found = task_state.lowest_line(db, task_id)
    return found[1] if found is not None else None


def unit_of(db: sqlite3.Connection, task_id: str | None) -> str | None:
    """Return the work unit of a task; None if it has none, or is not here."""
    record = record_of(db, task_id) if task_id else None
    return record.get("wu_id") if record is not None else None


def is_left(store: Store, caller: Caller, task: FoldedTask) -> bool:
    """Return whether a session of the caller's identity that is over has a task; one that is live or unknown may be at work."""
    left = left_take(task, (caller.reader, caller.session_id))
    session = presence.get(store, left.sender[1] or "") if left is not None else None
    return session is not None and not session.is_current
