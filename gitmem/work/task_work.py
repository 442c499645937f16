"""What whoever does a task writes: take, renewal, release, report, artifact, rejection, launch; and the fence of what may begin only once.

The fence is created before the take is recorded. So a task with a fence and without a take was not begun, or its take is not here yet; nobody
begins it then. Once it has a take nobody else takes it, whatever its lease: its caller gives it up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager, suppress

from ..agents.delivery import delivery_lock
from ..errors import GateError, GitmemError, UsageError
from ..log.lines import format_at
from ..order.task import HANDOFF, SUBMITTED
from ..outcome import command
from . import collisions, stuck, task_records, task_roles, task_rules, task_state
from .task_records import TaskChange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Unpack

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store
    from .task_records import EventContent, TakeFacts
    from .task_rules import Refusal

    # Returns the lines that are recorded with a new event of a task, which has this id and line.
    Beside = Callable[[FoldedTask, str, bytes], Sequence[tuple[str, bytes]]]


# In the error that a worker gives; its record has a field of its own for it, which decides.
RETRYABLE = "retryable"
LOST_MICROS = 60 * 1_000_000  # after the end of a lease: a renewal may be on its way from another clone


@contextmanager
def begun_once(store: Store, task_id: str) -> Iterator[None]:
    """Take a task that may begin only once, in the block: of all clones of the usual remote; without remotes, of this clone.

    The log may have changed: look at the task again in the block. If that records nothing, the fence is deleted. While this waits for the remote,
    other threads may use the store.

    Raises:
        GateError: `fence-taken`: somebody else has begun it, or was about to. Nothing was written.
        RemoteError: The remote can't be reached, or refuses the ref. Nothing was written, and another try may succeed.
        UsageError: `consent-needed`. Nothing was written.
        StoreError: This clone can't be written.
    """
    from ..sync import fences, sync_remotes

    delete_fences(store)
    with store.second() as own:
        fences.create(own, task_id, lambda: sync_remotes.read_all(own, fences.TIMEOUT_SECONDS))
    try:
        yield
    except GitmemError as error:
        if error.code != "wal-unknown":  # else it may be recorded all the same
            with store.second() as own:
                fences.abandon(own, task_id)
        raise


def delete_fences(store: Store) -> None:
    """Delete the fences of tasks that are over, in a clone without remotes: sync does it elsewhere. One that stays does no harm."""
    from ..sync import fences

    with suppress(GitmemError, OSError):
        fences.delete_here(store, store.domain.finished_fences(store))


def is_over(store: Store, task_id: str) -> bool:
    """Return whether a task has an end that nothing changes, so that nobody takes it any more."""
    task = task_state.load_task(store.db(), task_id)
    return task is not None and task.decided_by in ("seal", "close")


def is_lost(task: FoldedTask, now: int) -> bool:
    """Return whether the worker of a task that begins only once has died, as far as the caller's clock tells."""
    return (
        task_rules.is_once(task)
        and not task.is_finished
        and bool(task.takes)
        and all(task.lease(each) + LOST_MICROS <= now or task.is_released(each) for each in task.takes)
    )


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
    named = task_rules.resolve(store.db(), task_id, writing=True)
    with delivery_lock(store, f"task {named}", wait_seconds=LOCK_WAIT_SECONDS), store.one_look():
        task = task_rules.require(store, named, writing=True)
        mine = task_rules.own_take(task, sender_of(caller))
        if mine is not None and not task.is_finished and task.lease(mine) > store.now():
            found = unchanged(task, mine)
            found.warnings = ["You have this task already. Nothing was written."]
            return found
        _refuse_taking(store, caller, task)
        if task_rules.is_once(task):
            with begun_once(store, named), store.one_look():
                task = task_rules.require(store, named, writing=True)
                _refuse_taking(store, caller, task)
                found = _write_take(store, caller, task, lease, beside, facts)
        else:
            found = _write_take(store, caller, task, lease, beside, facts)
    found.asked = task_roles.asked(task.record)
    found.brief = task_roles.brief_text(store.repo.worktree, task.record)
    found.warnings += [
        *task_rules.notes_on_blockers(store, task),
        *collisions.of_answer(store, caller, named),
    ]
    taken = task_state.load_task(store.db(), named)
    differs = task_roles.mismatches(taken) if taken is not None else []
    found.warnings += [f"{each.text}." for each in differs if each.take == found.event_id]
    found.warnings += stuck.escalate_due(store, caller)
    found.next = [command("gitmem", "task", "show", named)]
    return found


def _refuse_taking(store: Store, caller: Caller, task: FoldedTask) -> None:
    """Raise GateError or UsageError if a task can't be taken; reject one whose chain nobody should go on with."""
    is_handoff = task.record["purpose"] == HANDOFF
    addresses = caller.addresses(store, task.record.get("agent"))
    why = (task_rules.accept if is_handoff else task_rules.take)(
        task, sender_of(caller), addresses, store.now()
    )
    why = why or task_rules.past_deadline(store, task) or task_records.too_many(store, caller, task, "take")
    refuse(task, why, (store, caller))
    _reject_chain(store, caller, task)


def _write_take(
    store: Store, caller: Caller, task: FoldedTask, lease: int | None, beside: Beside | None, facts: TakeFacts
) -> TaskChange:
    is_handoff = task.record["purpose"] == HANDOFF
    until = store.now() + (lease or LEASE_MICROS)
    given = task_records.seen_of_handed_over(store, task, caller) if is_handoff else []
    fields: Any = {"until": format_at(until), **task_roles.facts_of(caller), **facts}
    what = "accepts" if is_handoff else "takes"
    found = write(store, caller, task, "take", fields, what, more_seen=given, beside=beside)
    found.until = format_at(until)
    return found


def _reject_chain(store: Store, caller: Caller, task: FoldedTask) -> None:
    """Reject a task whose chain nobody should go on with, and raise UsageError; do nothing for another one."""
    why = task_rules.refuse_taking(store, task, caller.reader)
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
    sees that: see `task_decisions`.

    Raises:
        UsageError: The caller does not hold the task, or it is finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task = task_rules.require(store, task_id, writing=True)
    sender = sender_of(caller)
    mine = task_rules.own_take(task, sender) or task_rules.left_take(task, sender)
    if mine is None or task.is_finished:
        refuse(task, task_rules.report(task, sender), (store, caller))
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
    if isinstance(error := fields["payload"].get("error"), dict):
        fields["payload"]["error"] = {name: value for name, value in error.items() if name != RETRYABLE}
        fields["retryable"] = error.get(RETRYABLE) is True
    found = write(store, caller, task, "status", fields, f"{state}:", text=message or "")
    found.next = [command("gitmem", "task", "show", found.task_id)]
    return found


def reject(
    store: Store, caller: Caller, task_id: str, reason: str | None = None, *, code: str | None = None
) -> TaskChange:
    """Refuse a task that is for the caller, without taking it or after giving it back. Refusing it again returns the refusal.

    Args:
        code: The code of the error, such as `task_rules.QUOTA`; none by default.

    Raises:
        GateError: Another session has it. Nothing was written.
        UsageError: It is for somebody else, or finished. Nothing was written.
        StoreError: It can't be recorded.
    """
    task = task_rules.require(store, task_id, writing=True)
    sender = sender_of(caller)
    why = task_rules.refuse(task, sender, caller.addresses(store, task.record.get("agent")))
    refuse(task, why, (store, caller))
    mine, before = task_rules.own_take(task, sender), task.rejection_by(sender)
    if mine is None and before is not None:
        found = unchanged(task, before)
        found.warnings = ["You have rejected it before. Nothing was written."]
        return found
    fields: EventContent = {"state": "rejected", "reason": reason, "take": mine.id if mine else None}
    if code is not None:
        fields["payload"] = {"error": {"code": code, "message": reason}}
    return write(store, caller, task, "status", fields, "rejects", text=reason or "")


def sender_of(caller: Caller) -> tuple[str, str | None]:
    """Return identity and session of the caller, as its records have them."""
    return caller.reader, caller.session_id


def refuse(task: FoldedTask, why: Refusal | None, by: tuple[Store, Caller] | None = None) -> None:
    """Raise UsageError if there is a reason, with the caller's next command; GateError if somebody else has taken the task."""
    if why is not None:
        is_left = by is not None and task_rules.is_left(*by, task)
        step = command("gitmem", "task", "release" if is_left else "show", task.record["task_id"])
        refused = GateError if why[0] == task_rules.TAKEN else UsageError
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
    beside: Beside | None = None,
) -> TaskChange:
    """Record one event, and what belongs beside it, and return the task's change."""
    id, line = task_records.event_line(store, caller, task, event, fields, more_seen=more_seen or ())
    title = text.strip().partition("\n")[0] or task.record["task_id"]
    told = task_records.about(store, caller, task, event, fields)
    lines = [line, *(beside(task, id, line[1]) if beside is not None else ())]
    lines += [told.line] if told is not None else []
    appended = task_records.record(
        store, caller, lines, f"{what} {title}", task.record, text=text, deferred=deferred
    )
    only_here = told.announce(store) if told is not None else []
    after = task_state.load_task(store.db(), task.record["task_id"]) or task
    found = TaskChange(task.record["task_id"], id, event, after.state, task_roles.fields_of(after, id))
    found.reported = fields.get("state") if event == "status" else None
    found.recorded, found.commit = True, appended.commit
    found.is_answer = event == "message" and after.state == SUBMITTED and after.holder is not None
    found.told = told.names if told is not None else []
    found.warnings = [
        *([caller.remark] if caller.remark else []),
        *collisions.about_result(after, id),
        *only_here,
    ]
    return found


def own(store: Store, caller: Caller, task_id: str, state: str) -> tuple[FoldedTask, TaskEvent]:
    """Return a task and the caller's take of it, or raise UsageError."""
    task = task_rules.require(store, task_id, writing=True)
    refuse(
        task,
        task_rules.report(task, sender_of(caller)) or task_records.too_many(store, caller, task, state),
        (store, caller),
    )
    mine = task_rules.own_take(task, sender_of(caller))
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


ARTIFACT_MAX_BYTES = 32 * 1024  # of one event; more belongs into a commit or a file
ARTIFACTS_MAX = 200
_CONTENTS = ("text", "data", "url", "raw")


def artifact_of(
    content: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    name: str | None = None,
    artifact_id: str | None = None,
) -> dict[str, Any]:
    """Return an artifact of a text, of one part, or of several.

    Raises:
        UsageError: `bad-artifact`: a part has no content.
    """
    if isinstance(content, str):
        content = [{"text": content}]
    parts = [dict(each) for each in ([content] if isinstance(content, Mapping) else content)]
    if not parts or not all(any(name in each for name in _CONTENTS) for each in parts):
        raise UsageError(
            f"An artifact has parts, each with one of {', '.join(_CONTENTS)}. Nothing was written.",
            code="bad-artifact",
        )
    named = {"artifactId": artifact_id, "name": name}
    made: dict[str, Any] = {**{key: value for key, value in named.items() if value}, "parts": parts}
    check_artifact(made)
    return made


def check_artifact(artifact: Mapping[str, Any]) -> None:
    """Raise UsageError (`large-artifact`) for an artifact that is too large for a record."""
    size = len(json.dumps(dict(artifact), ensure_ascii=False).encode("utf-8", "replace"))
    if size > ARTIFACT_MAX_BYTES:
        raise UsageError(
            f"The artifact has {size} bytes; at most {ARTIFACT_MAX_BYTES} are allowed. Nothing was written.",
            hint="Commit it, and name the commit or the file, or add it in pieces.",
            code="large-artifact",
        )


def add_artifact(
    store: Store,
    caller: Caller,
    task_id: str,
    artifact: Mapping[str, Any],
    *,
    append: bool = False,
    last_chunk: bool = True,
) -> TaskChange:
    """Record an artifact, or a piece of one, of the task that the caller works on.

    Args:
        append: Whether it continues the artifact with its id; else it replaces that.
        last_chunk: Whether it is complete.

    Raises:
        UsageError: `bad-artifact`, it is too large, or the caller does not hold the task. Nothing was written.
        StoreError: It can't be recorded.
    """
    check_artifact(artifact)
    task, mine = own(store, caller, task_id, "artifact")
    fields: EventContent = {
        "take": mine.id,
        "payload": {"artifact": dict(artifact)},
        "append": append,
        "last_chunk": last_chunk,
    }
    return write(store, caller, task, "artifact", fields, "adds an artifact to")


def folded_artifacts(task: FoldedTask) -> list[dict[str, Any]]:
    """Return the artifacts of a task: pieces joined, and of one id only the last."""
    found: dict[str, dict[str, Any]] = {}
    for each in sorted(task.events.values(), key=lambda each: each.line):
        one = artifacts_of_event(task, each)
        if one is None or len(found) >= ARTIFACTS_MAX:
            continue
        before = found.get(one["artifactId"])
        if before is not None and each.record.get("append"):
            before["parts"] = [*before["parts"], *one["parts"]]
        else:
            found[one["artifactId"]] = one
    return list(found.values())


def artifacts_of_event(task: FoldedTask, event: TaskEvent) -> dict[str, Any] | None:
    """Return the artifact of an event that counts. A peer wrote it, so everything else in it may be anything."""
    value = (event.record.get("payload") or {}).get("artifact")
    if event.event != "artifact" or not task.counts(event) or not isinstance(value, dict):
        return None
    parts = value.get("parts")
    named = value.get("artifactId")
    found: dict[str, Any] = {**value, "artifactId": named if isinstance(named, str) and named else event.id}
    found["parts"] = [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    return found if found["parts"] else None
