"""What whoever works on a task writes: take, renew, release, and report its state or result."""

from __future__ import annotations

from ..agents.delivery import delivery_lock
from ..errors import GateError, UsageError
from ..log.lines import format_at
from ..order.task import HANDOFF
from ..outcome import command
from . import append, chains, collisions, escalate, find_task, load, rules, task_roles, task_signals
from .append import TaskChange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Unpack

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store
    from .append import EventContent, TakeFacts
    from .rules import Refusal

    # Returns the lines that are recorded with a new event of a task, which has this id.
    Beside = Callable[[FoldedTask, str], Sequence[tuple[str, bytes]]]

MINUTE = 60 * 1_000_000
LEASE_MICROS = 60 * MINUTE  # of a take by hand; a worker asks for a short one and renews it
RENEWED_MAX_MICROS = 15 * MINUTE  # renewals double a shorter lease up to this
LOCK_WAIT_SECONDS = 3.0
RELEASE_HINT = "That session is over: give the task back, then take it."


def take(
    store: Store,
    caller: Caller,
    task_id: str,
    *,
    lease: int | None = None,
    beside: Beside | None = None,
    **facts: Unpack[TakeFacts],
) -> TaskChange:
    """Take a task, so that others see who works on it. Taking it again returns the take.

    Of two takes in one clone the second waits for the first one and is refused. Of two clones that have not synced both may take it;
    the fold then shows a conflict.

    Args:
        task_id: The task's id, or the beginning of it.
        lease: For how long, in microseconds; by default an hour.
        beside: Returns further lines for the same entry.
        facts: Fields of the event instead of what the caller's session states: `actual_role`, `actual_ownership_scope`, `model`, `client`, `worktree`, `branch`, `launch`.

    Raises:
        GateError: Somebody else has it. Nothing was written.
        UsageError: It is finished, replaced, blocked or for somebody else. Nothing was written.
        StoreError: It can't be recorded.
    """
    named = find_task.resolve(store.db(), task_id, writing=True)
    with delivery_lock(store, f"task {named}", wait_seconds=LOCK_WAIT_SECONDS), store.one_look():
        task = find_task.require(store, named, writing=True)
        mine = rules.own_take(task, sender_of(caller))
        if mine is not None and not task.is_finished and task.lease(mine) > store.now():
            found = unchanged(task, mine)
            found.warnings = ["You have this task already. Nothing was written."]
            return found
        _refuse_taking(store, caller, task)
        if rules.is_once(task):
            from .once import begun_once

            with begun_once(store, named), store.one_look():
                task = find_task.require(store, named, writing=True)
                _refuse_taking(store, caller, task)
                found = _write_take(store, caller, task, lease, beside, facts)
        else:
            found = _write_take(store, caller, task, lease, beside, facts)
    found.asked = task_roles.asked(task.record)
    found.brief = task_roles.brief_text(store.repo.worktree, task.record)
    found.warnings += [*chains.notes_on_blockers(store, task), *collisions.of_answer(store, caller, named)]
    taken = load.load(store.db(), named)
    differs = task_roles.mismatches(taken) if taken is not None else []
    found.warnings += [f"{each.text}." for each in differs if each.take == found.event_id]
    found.warnings += escalate.look(store, caller)
    found.next = [command("gitmem", "task", "show", named)]
    return found


def _refuse_taking(store: Store, caller: Caller, task: FoldedTask) -> None:
    """Raise GateError or UsageError if a task can't be taken; reject one whose chain nobody should go on with."""
    is_handoff = task.record["purpose"] == HANDOFF
    addresses = caller.addresses(store, task.record.get("agent"))
    why = (rules.accept if is_handoff else rules.take)(task, sender_of(caller), addresses, store.now())
    why = why or chains.past_deadline(store, task) or append.too_many(store, caller, task, "take")
    refuse(task, why, (store, caller))
    _reject_chain(store, caller, task)


def _write_take(
    store: Store, caller: Caller, task: FoldedTask, lease: int | None, beside: Beside | None, facts: TakeFacts
) -> TaskChange:
    is_handoff = task.record["purpose"] == HANDOFF
    until = store.now() + (lease or LEASE_MICROS)
    given = append.seen_of_handed_over(store, task) if is_handoff else []
    fields: Any = {"until": format_at(until), **task_roles.facts_of(caller), **facts}
    what = "accepts" if is_handoff else "takes"
    found = write(store, caller, task, "take", fields, what, more_seen=given, beside=beside)
    found.until = format_at(until)
    return found


def _reject_chain(store: Store, caller: Caller, task: FoldedTask) -> None:
    """Reject a task whose chain nobody should go on with, and raise UsageError; do nothing for another one."""
    why = chains.refuse_taking(store, task, caller.reader)
    if why is None:
        return
    code, sentence = why
    said = "You have rejected it before."
    if task.rejection_by(sender_of(caller)) is None:
        reject(store, caller, task.record["task_id"], sentence, code=code)
        said = "It was rejected for you."
    show = command("gitmem", "task", "show", task.record["task_id"])
    raise UsageError(
        f"{task.record['task_id']} can't be taken: {sentence}. {said}",
        code=f"chain-{code.lower()}",
        next=[show],
    )


def renew(store: Store, caller: Caller, task_id: str) -> TaskChange:
    """Extend the caller's lease; each renewal doubles a short one, up to 15 minutes. It waits for the next commit.

    Raises:
        UsageError: The caller does not hold the task, or it is finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task, mine = own(store, caller, task_id, "renew")
    last = max((each for each in task.events.values() if each is mine or (each.event == "renew" and each.take == mine.id)),
               key=lambda each: each.until)  # fmt: skip
    length = last.until - last.at
    length = max(length, min(2 * length, RENEWED_MAX_MICROS))
    until = max(store.now() + length, task.lease(mine))
    fields: EventContent = {"take": mine.id, "until": format_at(until)}
    found = write(store, caller, task, "renew", fields, "goes on with", deferred=True)
    found.until = format_at(until)
    return found


def release(store: Store, caller: Caller, task_id: str, *, reason: str | None = None) -> TaskChange:
    """Give a task back, so that somebody else may take it. Another session of the same agent may do that, too.

    A task whose cancellation was asked for ends with it: nobody else may take it. Another session's release ends it when its writer
    sees that: see `given_back`.

    Raises:
        UsageError: The caller does not hold the task, or it is finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task = find_task.require(store, task_id, writing=True)
    sender = sender_of(caller)
    mine = rules.own_take(task, sender) or rules.left_take(task, sender)
    if mine is None or task.is_finished:
        refuse(task, rules.report(task, sender), (store, caller))
    assert mine is not None
    if task.cancels and mine.sender == sender:
        return report(store, caller, task_id, "canceled", reason)
    found = write(store, caller, task, "release", {"take": mine.id, "reason": reason}, "releases")
    if task.cancels:
        found.warnings.append("It ends as canceled when its writer sees that it was given back.")
    return found


def report(
    store: Store,
    caller: Caller,
    task_id: str,
    state: str,
    message: str | None = None,
    *,
    payload: Mapping[str, Any] | None = None,
    allow_secret: bool = False,
) -> TaskChange:
    """Report the state of the caller's work: `working`, `input-required` with a question, or how it ended.

    Args:
        message: The text: progress, question or result.
        payload: Content beyond it: `commit` and `branch` of a result, `error` with `code`, `message` and `retryable` of a failure.

    Raises:
        UsageError: The caller does not hold the task, or it is finished (also RecordError, SecretError). Nothing was written.
        StoreError: It can't be recorded.
    """
    if state == "input-required" and not (message or "").strip():
        raise UsageError(
            "A task waits for an answer only to a question. Nothing was written.",
            hint="Say what you need to know.",
            code="no-question",
        )
    task, mine = own(store, caller, task_id, state)
    fields: EventContent = {"take": mine.id, "state": state, "message": message}
    fields["payload"] = dict(payload or {})
    found = write(
        store, caller, task, "status", fields, f"{state}:", text=message or "", allow_secret=allow_secret
    )
    found.next = [command("gitmem", "task", "show", found.task_id)]
    return found


def reject(
    store: Store, caller: Caller, task_id: str, reason: str | None = None, *, code: str | None = None
) -> TaskChange:
    """Refuse a task that is for the caller, without taking it or after giving it back. Refusing it again returns the refusal.

    Args:
        code: The code of the error, such as `chains.QUOTA`; none by default.

    Raises:
        GateError: Another session has it. Nothing was written.
        UsageError: It is for somebody else, or finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task = find_task.require(store, task_id, writing=True)
    sender = sender_of(caller)
    why = rules.refuse(task, sender, caller.addresses(store, task.record.get("agent")))
    refuse(task, why, (store, caller))
    mine, before = rules.own_take(task, sender), task.rejection_by(sender)
    if mine is None and before is not None:
        found = unchanged(task, before)
        found.warnings = ["You have rejected it before. Nothing was written."]
        return found
    fields: EventContent = {"state": "rejected", "reason": reason, "take": mine.id if mine else None}
    if code is not None:
        fields["payload"] = {"error": {"code": code, "message": reason, "retryable": False}}
    return write(store, caller, task, "status", fields, "rejects", text=reason or "")


def sender_of(caller: Caller) -> tuple[str, str | None]:
    """Return identity and session of the caller, as its records have them."""
    return caller.reader, caller.session_id


def refuse(task: FoldedTask, why: Refusal | None, by: tuple[Store, Caller] | None = None) -> None:
    """Raise UsageError if there is a reason, with the caller's next command; GateError if somebody else has taken the task."""
    if why is not None:
        is_left = by is not None and find_task.is_left(*by, task)
        step = command("gitmem", "task", "release" if is_left else "show", task.record["task_id"])
        refused = GateError if why[0] == rules.TAKEN else UsageError
        said = f"{task.record['task_id']} {why[1]}. Nothing was written."
        raise refused(said, hint=RELEASE_HINT if is_left else "", code=why[0], next=[step])


def write(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    fields: EventContent,
    what: str,
    *,
    text: str = "",
    more_seen: list[str] | None = None,
    deferred: bool = False,
    allow_secret: bool = False,
    beside: Beside | None = None,
) -> TaskChange:
    """Record one event, and what belongs beside it, and return the task's change."""
    id, line = append.event_line(
        store, caller, task, event, fields, more_seen=more_seen or (), allow_secret=allow_secret
    )
    title = text.strip().partition("\n")[0] or task.record["task_id"]
    told = task_signals.about(store, caller, task, event, fields, allow_secret=allow_secret)
    lines = [line, *(beside(task, id) if beside is not None else ()), *told.lines]
    appended = append.record(
        store, caller, lines, f"{what} {title}", task.record, text=text, deferred=deferred
    )
    told.announce(store)
    after = load.load(store.db(), task.record["task_id"]) or task
    found = TaskChange(task.record["task_id"], id, event, after.state, task_roles.fields_of(after, id))
    found.reported = fields.get("state") if event == "status" else None
    found.recorded, found.commit = True, appended.commit
    found.told = told.names
    found.warnings = [
        *([caller.remark] if caller.remark else []),
        *collisions.about_result(after, id),
        *told.not_sent(store),
    ]
    return found


def own(store: Store, caller: Caller, task_id: str, state: str) -> tuple[FoldedTask, TaskEvent]:
    """Return a task and the caller's take of it, or raise UsageError."""
    task = find_task.require(store, task_id, writing=True)
    refuse(
        task,
        rules.report(task, sender_of(caller)) or append.too_many(store, caller, task, state),
        (store, caller),
    )
    mine = rules.own_take(task, sender_of(caller))
    assert mine is not None
    return task, mine


def unchanged(task: FoldedTask, event: TaskEvent) -> TaskChange:
    """Return the answer of a caller that wrote an event before."""
    found = TaskChange(
        task.record["task_id"], event.id, event.event, task.state, task_roles.fields_of(task, event.id)
    )
    found.until = format_at(task.lease(event)) if event.event == "take" else None
    found.reported = event.state if event.event == "status" else None
    return found
