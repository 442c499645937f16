"""What the caller of a task, or a person, writes: messages, cancellations, seals and closes."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..log.lines import digest
from ..order.task import TERMINAL
from ..text.sanitize import is_blank
from . import append, find_task, load, rules, task_roles, task_signals
from .append import TaskChange
from .task_work import refuse, sender_of, unchanged, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store
    from .append import EventContent


def message(
    store: Store,
    caller: Caller,
    task_id: str,
    text: str,
    *,
    payload: Mapping[str, Any] | None = None,
    allow_secret: bool = False,
) -> TaskChange:
    """Write to the other side of a task; a caller's message answers the holder's question.

    Args:
        payload: Content beyond the text.

    Raises:
        UsageError: The writer is neither caller nor holder, or the task is finished (also RecordError, SecretError). Nothing was written.
        StoreError: It can't be recorded.
    """
    task = find_task.require(store, task_id, writing=True)
    mine = rules.own_take(task, sender_of(caller))
    if task.caller[0] != caller.reader:
        refuse(task, rules.report(task, sender_of(caller)), (store, caller))
    elif task.is_finished:
        refuse(task, ("finished-task", f"is finished: {rules.state_text(task)}"))
    refuse(task, append.too_many(store, caller, task, "message"))
    fields: EventContent = {"message": text, "take": mine.id if mine is not None else None}
    fields["payload"] = dict(payload or {})
    return write(store, caller, task, "message", fields, "writes", text=text, allow_secret=allow_secret)


def cancel(store: Store, caller: Caller, task_id: str, *, reason: str | None = None) -> TaskChange:
    """Ask for the cancellation of a task. If nobody has it, its caller cancels it at once, with a seal.

    Raises:
        UsageError: The writer is neither the caller nor a person, or the task is finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task = find_task.require(store, task_id, writing=True)
    if task.is_finished:
        refuse(task, ("finished-task", f"is finished: {rules.state_text(task)}"))
    if not rules.may_cancel(task, caller):
        refuse(task, ("not-the-caller", f"can only be canceled by {task.caller[0]} or a person"))
    wish, line = append.event_line(store, caller, task, "cancel", {"reason": reason})
    lines = [line]
    if rules.may_cancel_at_once(task) and rules.seal(task, sender_of(caller)) is None:
        fields: EventContent = {"outcome": wish, "answers_digest": digest(line[1]), "state": "canceled"}
        _, seal_line = append.event_line(store, caller, task, "seal", fields, more_seen=[wish])
        lines.append(seal_line)
    told = task_signals.about(store, caller, task, "cancel", {"reason": reason})
    lines += told.lines
    appended = append.record(
        store, caller, lines, f"cancels {task.record['task_id']}", task.record, text=reason or ""
    )
    told.announce(store)
    _delete_fence(store, task)
    after = load.load(store.db(), task.record["task_id"]) or task
    found = TaskChange(task.record["task_id"], wish, "cancel", after.state, task_roles.fields_of(after))
    found.recorded, found.commit = True, appended.commit
    if task.holder is not None:
        found.warnings = [f"{task.holder.sender[0]} has it; it is canceled when they give it back."]
    found.told = told.names
    found.warnings += told.not_sent(store)
    return found


def seal(store: Store, caller: Caller, task_id: str, *, give_up: str | None = None) -> TaskChange:
    """Pin the outcome that the caller acts on: from now on no event changes it. It waits for the next commit.

    To be shown a result seals nothing. To seal it again returns that seal.

    Args:
        give_up: Without an outcome: seal the task as failed, for this reason.

    Raises:
        UsageError: The caller's session did not write the task, it is sealed, or it has no outcome (with `give_up` one). Nothing was written.
        StoreError: It can't be recorded.
    """
    task = find_task.require(store, task_id, writing=True)
    is_result = task.outcome is not None and task.outcome.event == "status"
    if task.seal is not None and task.seal.sender == sender_of(caller) and is_result and not give_up:
        found = unchanged(task, task.seal)
        found.warnings = ["You have accepted its result already. Nothing was written."]
        return found
    refuse(task, rules.seal(task, sender_of(caller)))
    if task.outcome is None and task.close is None and not give_up:
        refuse(task, ("no-outcome", f"has no outcome yet: {task.state}"))
    if give_up and task.is_finished:
        refuse(
            task,
            ("has-outcome", f"has an outcome, which is sealed without a reason: {rules.state_text(task)}"),
        )
    fields = outcome_fields(task)
    if not fields.get("state"):
        refuse(task, rules.withdraw(task))
        fields = {"state": "failed", "reason": give_up}
    found = write(store, caller, task, "seal", fields, "accepts the result of", deferred=True)
    found.warnings += filter(None, [doubt(store, task)])
    _delete_fence(store, task)
    return found


def doubt(store: Store, task: FoldedTask) -> str | None:
    """Return why the outcome of a task may be that of another text, or None: on other clones an earlier record may count."""
    if task.outcome is None or task.outcome.is_own:
        return None
    other = load.other_record(store.db(), task.record["task_id"])
    if other is None:
        return None
    return (
        f"FORGED: an earlier record by {sanitize(other[0]['sender_identity'])} has the id of this task. On other clones its text is that "
        f"of the task: what {sanitize(task.outcome.sender[0])} has done may be that."
    )


def close(store: Store, caller: Caller, task_id: str, reason: str, *, state: str | None = None) -> TaskChange:
    """Close a task in the place of a caller who has ended. It counts only while the caller has sealed nothing.

    Args:
        state: How it ends; by default as its holder reported, else `canceled`.

    Raises:
        UsageError: The writer is neither a person nor of the caller's identity, or the task is sealed or closed. Nothing was written.
        StoreError: It can't be recorded.
    """
    if is_blank(reason):
        raise UsageError("Closing a task needs a reason. Nothing was written.", code="no-reason")
    if state is not None and state not in TERMINAL:
        raise UsageError(
            f"A task can't be closed as {state}; choose from {', '.join(TERMINAL)}. Nothing was written.",
            code="bad-state",
        )
    task = find_task.require(store, task_id, writing=True)
    if sender_of(caller) == task.caller:
        refuse(task, ("own-task", "was written by this session, which seals it instead"))
    refuse(task, rules.close(task, sender_of(caller)))
    fields = outcome_fields(task) if state in (None, task.state) else {}
    fields["reason"] = reason
    fields["state"] = state or fields.get("state") or "canceled"
    found = write(store, caller, task, "close", fields, "closes", text=reason)
    _delete_fence(store, task)
    return found


def _delete_fence(store: Store, task: FoldedTask) -> None:
    """Delete the fence of a task that is over now, with those of others that a killed process has left."""
    if rules.is_once(task):
        from . import once

        once.delete_fences(store)


def outcome_fields(task: FoldedTask) -> EventContent:
    """Return the fields that name the present outcome of a task."""
    found: EventContent = {"state": task.state if task.is_finished else None}
    if task.outcome is not None:
        found["outcome"], found["answers_digest"] = task.outcome.id, digest(task.outcome.line)
    return found
