"""What the caller of a task, or a person, writes: messages, cancellations, seals and closes."""

from __future__ import annotations

from ..errors import GitmemError, UsageError
from ..log.lines import digest
from ..order.task import TERMINAL
from ..sync import fences, noop_check
from ..text.sanitize import is_blank
from . import CALL, chains, stored_tasks, task_records, task_roles, task_rules, task_state, task_work
from .task_records import TaskChange
from .task_work import refuse, sender_of, unchanged, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import ShownSignal
    from ..store import Store
    from .task_records import EventContent


def message(
    store: Store,
    caller: Caller,
    task_id: str,
    text: str,
    *,
    payload: Mapping[str, Any] | None = None,
) -> TaskChange:
    """Write to the other side of a task; a caller's message answers the holder's question.

    Args:
        payload: Content beyond the text.

    Raises:
        UsageError: The writer is neither caller nor holder, or the task is finished (also RecordError, SecretError). Nothing was written.
        StoreError: It can't be recorded.
    """
    task = task_rules.require(store, task_id, writing=True)
    mine = task_rules.own_take(task, sender_of(caller))
    if task.caller[0] != caller.reader:
        refuse(task, task_rules.report(task, sender_of(caller)), (store, caller))
    elif task.is_finished:
        refuse(task, ("finished-task", f"is finished: {task_rules.state_text(task)}"))
    refuse(task, task_records.too_many(store, caller, task, "message"))
    fields: EventContent = {"message": text, "take": mine.id if mine is not None else None}
    fields["payload"] = dict(payload or {})
    return write(store, caller, task, "message", fields, "writes", text=text)


def cancel(store: Store, caller: Caller, task_id: str, *, reason: str | None = None) -> TaskChange:
    """Ask for the cancellation of a task. If nobody has it, its caller cancels it at once, with a seal.

    Raises:
        UsageError: The writer is neither the caller nor a person with its key, or the task is finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task = task_rules.require(store, task_id, writing=True)
    if task.is_finished:
        refuse(task, ("finished-task", f"is finished: {task_rules.state_text(task)}"))
    if not task_rules.may_cancel(store, task, caller):
        refuse(
            task, ("not-the-caller", f"can only be canceled by {task.caller[0]}, or by a person with its key")
        )
    wish, line = task_records.event_line(store, caller, task, "cancel", {"reason": reason})
    lines = [line]
    if task_rules.may_cancel_at_once(task) and task_rules.seal(task, sender_of(caller)) is None:
        fields: EventContent = {"outcome": wish, "answers_digest": digest(line[1]), "state": "canceled"}
        _, seal_line = task_records.event_line(store, caller, task, "seal", fields, more_seen=[wish])
        lines.append(seal_line)
    told = task_records.about(store, caller, task, "cancel", {"reason": reason})
    lines += told.lines
    appended = task_records.record(
        store, caller, lines, f"cancels {task.record['task_id']}", task.record, text=reason or ""
    )
    told.announce(store)
    _delete_fence(store, task)
    after = task_state.load_task(store.db(), task.record["task_id"]) or task
    found = TaskChange(task.record["task_id"], wish, "cancel", after.state, task_roles.fields_of(after))
    found.recorded, found.commit = True, appended.commit
    if task.holder is not None:
        found.warnings = [f"{task.holder.sender[0]} has it; it is canceled when they give it back."]
    found.told = told.names
    found.warnings += told.not_sent(store)
    return found


def seal_task(store: Store, caller: Caller, task_id: str, *, give_up: str | None = None) -> TaskChange:
    """Pin the outcome that the caller acts on: from now on no event changes it. It waits for the next commit.

    To be shown a result seals nothing. To seal it again returns that seal.

    Args:
        give_up: Without an outcome: seal the task as failed, for this reason.

    Raises:
        UsageError: The caller's session did not write the task, it is sealed, or it has no outcome (with `give_up` one). Nothing was written.
        StoreError: It can't be recorded.
    """
    task = task_rules.require(store, task_id, writing=True)
    is_result = task.outcome is not None and task.outcome.event == "status"
    if task.seal is not None and task.seal.sender == sender_of(caller) and is_result and not give_up:
        found = unchanged(task, task.seal)
        found.warnings = ["You have accepted its result already. Nothing was written."]
        return found
    refuse(task, task_rules.seal(task, sender_of(caller)))
    if task.outcome is None and task.close is None and not give_up:
        refuse(task, ("no-outcome", f"has no outcome yet: {task.state}"))
    if give_up and task.is_finished:
        refuse(
            task,
            (
                "has-outcome",
                f"has an outcome, which is sealed without a reason: {task_rules.state_text(task)}",
            ),
        )
    fields = outcome_fields(task)
    if not fields.get("state"):
        refuse(task, task_rules.withdraw(task))
        fields = {"state": "failed", "reason": give_up}
    found = write(store, caller, task, "seal", fields, "accepts the result of", deferred=True)
    _delete_fence(store, task)
    return found


def close(store: Store, caller: Caller, task_id: str, reason: str, *, state: str | None = None) -> TaskChange:
    """Close a task in the place of a caller who has ended. It counts only while the caller has sealed nothing.

    Args:
        state: How it ends; by default as its holder reported, else `canceled`.

    Raises:
        UsageError: The writer is neither of the caller's identity nor a person with its key, or the task is sealed or closed. Nothing was written.
        StoreError: It can't be recorded.
    """
    if is_blank(reason):
        raise UsageError("Closing a task needs a reason. Nothing was written.", code="no-reason")
    if state is not None and state not in TERMINAL:
        raise UsageError(
            f"A task can't be closed as {state}; choose from {', '.join(TERMINAL)}. Nothing was written.",
            code="bad-state",
        )
    task = task_rules.require(store, task_id, writing=True)
    if sender_of(caller) == task.caller:
        refuse(task, ("own-task", "was written by this session, which accepts it instead"))
    refuse(task, task_rules.close(task, sender_of(caller)))
    fields = outcome_fields(task) if state in (None, task.state) else {}
    fields["reason"] = reason
    fields["state"] = state or fields.get("state") or "canceled"
    found = write(store, caller, task, "close", fields, "closes", text=reason)
    _delete_fence(store, task)
    return found


def _delete_fence(store: Store, task: FoldedTask) -> None:
    """Delete the fence of a task that is over now, with those of others that a killed process has left."""
    if task_rules.is_once(task):
        from . import task_work

        task_work.delete_fences(store)


def outcome_fields(task: FoldedTask) -> EventContent:
    """Return the fields that name the present outcome of a task."""
    found: EventContent = {"state": task.state if task.is_finished else None}
    if task.outcome is not None:
        found["outcome"], found["answers_digest"] = task.outcome.id, digest(task.outcome.line)
    return found


def cancellations(store: Store, caller: Caller, shown: Iterable[ShownSignal]) -> list[tuple[str, bytes]]:
    """Return the seals that cancel tasks of these signals: those that the caller's session wrote and wants canceled, and that nobody has any more.

    Args:
        shown: Signals that were shown to the caller as their reader, not by a look into somebody's inbox.
    """
    found: dict[str, tuple[str, bytes]] = {}
    for signal in shown:
        task_id = signal.get("task_id")
        if not task_id or task_id in found or "message_cut" in signal:
            continue
        task = task_state.load_task(store.db(), task_id)
        if task is None or task_rules.seal(task, (caller.reader, caller.session_id)) is not None:
            continue
        fields = _cancellation(task)
        if fields is not None:
            _, found[task_id] = task_records.event_line(store, caller, task, "seal", fields)
    return list(found.values())


def _cancellation(task: FoldedTask) -> EventContent | None:
    """Return the fields of a seal that cancels a task; None if nobody who may has asked for that, or somebody has the task."""
    wishes = [each for each in task.cancels if task_rules.close(task, each.sender) is None]
    if not wishes or task.is_finished or not task_rules.may_cancel_at_once(task):
        return None
    return {"outcome": wishes[-1].id, "answers_digest": digest(wishes[-1].line), "state": "canceled"}


GRACE_MICROS = (
    task_work.LOST_MICROS
)  # after a deadline or the end of a lease: a record may be on its way from another clone
LOST = "Its worker is lost, and it may begin only once."
FENCED = (
    "Somebody has begun it, or was about to, and has reported nothing. It may begin only once, so it is lost."
)
BEGUN = "Somebody has begun it, or was about to. If nobody reports an end, it is given up after its deadline."
UNTAKEN = "Nobody took it before its deadline."
UNFINISHED = "Its deadline is over, and nobody works on it any more."


def reason_to_give_up(store: Store, task: FoldedTask) -> str | None:
    """Return why its caller gives a task up now; None while somebody works on it, or may begin it.

    The records of another clone may end it. So in a clone that reads a remote that has to be read after the deadline first.
    """
    now = store.now()
    if task.is_finished:
        return None
    if task_work.is_lost(task, now):
        return LOST
    ends = chains.deadline(store, task)
    if task.record["purpose"] != CALL or ends is None or ends + GRACE_MICROS > now:
        return None
    if any(task.lease(each) + GRACE_MICROS > now for each in task.held) or not _has_read(store, ends):
        return None
    if task.takes:
        return UNFINISHED
    return FENCED if is_fenced(store, task) else UNTAKEN


def is_fenced(store: Store, task: FoldedTask, *, asks: bool = False) -> bool:
    """Return whether somebody has begun a task that begins only once, or was about to, although nobody has recorded to have taken it.

    Args:
        asks: Whether to ask the remote if this clone knows of no fence; while it answers, other threads may use the store.
    """
    return (
        task_rules.is_once(task)
        and not task.takes
        and fences.exists(store, task.record["task_id"], asks=asks)
    )


def give_up(store: Store, caller: Caller, task: FoldedTask, why: str, *, asks: bool = False) -> FoldedTask:
    """Seal a task as failed for a reason, and return it as it is then.

    Args:
        asks: Whether to ask the remote whether somebody has begun it.

    Raises:
        GitmemError: See `work.task_decisions.seal_task`.
    """
    id = task.record["task_id"]
    if why == UNTAKEN and asks and is_fenced(store, task, asks=True):
        why = FENCED
    seal_task(store, caller, id, give_up=why)
    return task_state.load_task(store.db(), id) or task


def give_up_lost(store: Store, caller: Caller) -> None:
    """Give up what the caller's session has to, as a part of another command. Never raise an error of ours."""
    try:
        for id in stored_tasks.to_give_up(store.db(), sender_of(caller)):
            task = task_state.load_task(store.db(), id)
            if task is None or task_rules.seal(task, sender_of(caller)) is not None:
                continue
            if (why := reason_to_give_up(store, task)) is not None:
                give_up(store, caller, task, why)
    except GitmemError:
        return  # the next look does it


def _has_read(store: Store, since: int) -> bool:
    """Return whether a clone that reads a remote has read it since a time."""
    read = noop_check.last_read(store.repo)
    return read is None or read * 1_000_000 >= since or not store.has_remote()
