"""What the caller of a task, or a person, writes: launches of workers, messages, cancellations, seals and closes."""

from __future__ import annotations

from ..agents import descriptors, presence
from ..agents.delivery import delivery_lock
from ..commit_message import sanitize
from ..errors import GateError, GitmemError, UsageError
from ..log.lines import digest, format_at
from ..order.task import TERMINAL
from ..outcome import command
from ..sync import autosync, fences
from ..text.sanitize import is_blank
from . import CALL, stored_tasks, task_records, task_roles, task_rules, task_state, task_work
from .task_work import refuse, sender_of, unchanged, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypedDict, Unpack

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import ShownSignal
    from ..store import Store
    from .task_records import EventContent, TaskChange

    class LaunchFacts(TypedDict, total=False):
        """What a launcher may say of a launch.

        Attributes:
            attempt: A label of this attempt.
            wave: The wave of an initiative that it belongs to.
            lane: The lane, if it is not that of the task.
            claimed_mode: How the work unit is claimed for the worker.
            handoff_path: The file that the worker starts with, from the top of the work tree.
            branch: The branch of the worker.
            worktree: The name of its worktree's folder.
            client: The program that runs it.
            requested_model: The model that it is started with.
        """

        attempt: str | None
        wave: str | None
        lane: str | None
        claimed_mode: str | None
        handoff_path: str | None
        branch: str | None
        worktree: str | None
        client: str | None
        requested_model: str | None


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
    refuse(task, task_rules.finished(task) or task_records.too_many(store, caller, task, "message"))
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
    refuse(task, task_rules.finished(task))
    if not task_rules.may_cancel(store, task, caller):
        refuse(
            task, ("not-the-caller", f"can only be canceled by {task.caller[0]}, or by a person with its key")
        )

    def sealed(_: FoldedTask, wish: str, line: bytes) -> Sequence[tuple[str, bytes]]:
        if not task_rules.may_cancel_at_once(task) or task_rules.seal(task, sender_of(caller)) is not None:
            return []
        fields: EventContent = {"outcome": wish, "answers_digest": digest(line), "state": "canceled"}
        return [task_records.event_line(store, caller, task, "seal", fields, more_seen=[wish])[1]]

    found = write(
        store, caller, task, "cancel", {"reason": reason}, "cancels", text=reason or "", beside=sealed
    )
    _delete_fence(store, task)
    if task.holder is not None:
        wait = f"{task.holder.sender[0]} has it; it is canceled when they give it back."
        found.warnings = [wait, *found.warnings]
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
    what = "the result" if fields["state"] == "completed" else "the end"
    found = write(store, caller, task, "seal", fields, f"accepts {what} of", deferred=True)
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


# After a deadline or the end of a lease: a record may be on its way from another clone.
GRACE_MICROS = task_work.LOST_MICROS
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
    ends = task_rules.deadline(store, task)
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
    read = autosync.last_read(store.repo)
    return read is None or read * 1_000_000 >= since or not store.has_remote()


# After the end of a lease in which a worker whose session is live may still work.
LIVE_MICROS = 30 * 60 * 1_000_000


class Launched(task_roles.LaunchReceipt, kw_only=True):
    """A recorded launch; `commit` is None while it waits for one."""

    recorded: bool = True
    commit: str | None = None
    warnings: list[str] = []
    next: list[str] = []


def launch(
    store: Store,
    caller: Caller,
    task_id: str,
    *,
    again: str | None = None,
    role: str | None = None,
    scopes: Sequence[str] = (),
    **facts: Unpack[LaunchFacts],
) -> Launched:
    """Record that a worker is started for a task.

    Args:
        task_id: The task's id, or the beginning of it.
        again: Of another worker for a task whose worker has failed, released it or vanished: why.
        role: The role that it is started with, if that is not the requested one.
        scopes: What it covers, as `descriptors.parse_scope` reads it.
        facts: See `LaunchFacts`. One that is None or empty is not given.

    Raises:
        GateError: Somebody has the task, or its worker is live. Nothing was written.
        UsageError: It was launched before, or with `again` never, or nobody may take it, or another invalid input. Nothing was written.
        StoreError: It can't be recorded.
    """
    if again is not None and is_blank(again):
        raise UsageError(
            "A relaunch needs a reason. Nothing was written.",
            hint="Say with --again what became of the last worker.",
            code="no-reason",
        )
    named = task_rules.resolve(store.db(), task_id, writing=True)
    with delivery_lock(store, f"task {named}", wait_seconds=task_work.LOCK_WAIT_SECONDS):
        task = task_rules.require(store, named, writing=True)
        earlier = task_roles.launches_of(task)
        why = task_rules.launch(task, store.now()) or task_records.too_many(store, caller, task, "launch")
        refuse(task, why)
        _refuse_live(store, caller, task)
        if again is None and earlier:
            _refuse(task, "launched-task", f"was launched already, at {earlier[-1].record['at']}",
                    "launch", "--again", "what became of its worker")  # fmt: skip
        if again is not None and not earlier and not task.takes:
            _refuse(task, "not-launched", "was never launched nor taken", "launch")
        fields, remark = _launch_fields(store, task, role, scopes)
        fields |= {name: value for name, value in facts.items() if value}  # type: ignore[typeddict-item]
        if again is not None:
            fields["reason"] = again
        if earlier:
            fields["relaunch_of"] = earlier[-1].id
        what = "launches" if again is None else "relaunches"
        text = task.record["message"].strip().partition("\n")[0]
        written = write(store, caller, task, "launch", fields, f"{what} {text}"[:200])
    after = task_state.load_task(store.db(), named)
    assert after is not None  # it was just written
    receipt = task_roles.receipt(store.db(), after, after.events[written.event_id])
    found = Launched.taken_from(receipt, commit=written.commit)
    checked = task_roles.check_brief(store.repo.worktree, after.record)
    remarks = [remark, checked.sentence if checked is not None else None]
    found.warnings = [*written.warnings, *filter(None, remarks)]
    found.next = [command("gitmem", "task", "show", named)]
    return found


def _launch_fields(
    store: Store, task: FoldedTask, role: str | None, scopes: Sequence[str]
) -> tuple[EventContent, str | None]:
    """Return the role and scope of a launch as fields, and a remark about its role.

    Raises:
        UsageError: `unknown-role`, `ambiguous-role` or `bad-scope`.
    """
    from ..agents import vocabulary

    fields: EventContent = {}
    remark = None
    roles = vocabulary.read(store.repo.worktree)
    stated: Mapping[str, Any] = task.record.get("requested_role") or {}
    if role:
        found = vocabulary.resolve(roles, role)
        fields["actual_role"] = stated = task_roles.parts(found)
        remark = vocabulary.warning(roles, found, role)
    if scopes:
        covered = descriptors.parse_scope(scopes)
        lifecycle = stated.get("lifecycle_role")
        if isinstance(lifecycle, str):
            covered = descriptors.with_default_kinds(covered, lifecycle, roles.pack)
        fields["actual_ownership_scope"] = covered.as_json()
    return fields, remark


def _refuse_live(store: Store, caller: Caller, task: FoldedTask) -> None:
    """Raise GateError if the last worker's lease is over, but its session is at work and may not have noticed."""
    now = store.now()
    for take in task.held:
        if take.sender == sender_of(caller):
            continue
        session = presence.get(store, take.sender[1]) if take.sender[1] is not None else None
        over = now - task.lease(take)
        if session is not None and session.status == "live" and over < LIVE_MICROS:
            who = sanitize(take.record.get("sender_name") or take.sender[0])
            raise GateError(
                f"{task.record['task_id']} may still be worked on: the time of {who} ended at {format_at(task.lease(take))}, "
                f"and its session was seen {presence.format_age(session.age)}. Nothing was written.",
                hint=f"Ask {who}, or wait half an hour after that end.",
                code="live-worker",
                next=[
                    command(
                        "gitmem", "signal", f"Do you still work on {task.record['task_id']}?", "--to", who
                    )
                ],
            )


def _refuse(task: FoldedTask, code: str, sentence: str, word: str, *more: str) -> None:
    step = command("gitmem", "task", word, task.record["task_id"], *more)
    raise UsageError(f"{task.record['task_id']} {sentence}. Nothing was written.", code=code, next=[step])
