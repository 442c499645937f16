"""Launch a worker for a task: record that somebody starts one, once or again.

gitmem starts no program. Whoever does records it here before the worker takes the task.
"""

from __future__ import annotations

from ..agents import descriptors, presence, vocabulary
from ..agents.delivery import delivery_lock
from ..commit_message import sanitize
from ..errors import GateError, UsageError
from ..log.lines import format_at
from ..outcome import command
from ..text.sanitize import is_blank
from . import append, brief, find_task, launches, load, rules, task_roles, task_work
from .launches import LaunchReceipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NotRequired, TypedDict, Unpack

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store
    from .append import EventContent

    class LaunchOptions(TypedDict):
        """What a launcher may say of a launch. One that is missing, None or empty is not given.

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
            role: The role that it is started with, if that is not the requested one.
            scopes: What it covers, as `roles.scope.parse` reads it.
        """

        attempt: NotRequired[str | None]
        wave: NotRequired[str | None]
        lane: NotRequired[str | None]
        claimed_mode: NotRequired[str | None]
        handoff_path: NotRequired[str | None]
        branch: NotRequired[str | None]
        worktree: NotRequired[str | None]
        client: NotRequired[str | None]
        requested_model: NotRequired[str | None]
        role: NotRequired[str | None]
        scopes: NotRequired[Sequence[str] | None]


GRACE_MICROS = (
    30 * 60 * 1_000_000
)  # after the end of a lease in which a worker whose session is live may still work
_NOT_FIELDS = ("role", "scopes")


class Launched(LaunchReceipt):
    """A recorded launch; `commit` is None while it waits for one."""

    def __init__(self, task: FoldedTask, launch: TaskEvent) -> None:
        super().__init__(task, launch, None)
        self.recorded = True
        self.commit: str | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []


def launch(store: Store, caller: Caller, task_id: str, **options: Unpack[LaunchOptions]) -> Launched:
    """Record the first launch of a worker for a task.

    Args:
        task_id: The task's id, or the beginning of it.
        options: See `LaunchOptions`.

    Raises:
        GateError: Somebody has the task. Nothing was written.
        UsageError: It was launched before, or nobody may take it, or another invalid input. Nothing was written.
        StoreError: It can't be recorded.
    """
    return _record(store, caller, task_id, None, options)


def relaunch(
    store: Store, caller: Caller, task_id: str, reason: str, **options: Unpack[LaunchOptions]
) -> Launched:
    """Record that another worker is started for a task whose worker has failed, released it or vanished.

    Args:
        task_id: The task's id, or the beginning of it.
        reason: Why.
        options: See `LaunchOptions`.

    Raises:
        GateError: Its worker is live. Nothing was written.
        UsageError: It was never launched nor taken, or nobody may take it, or another invalid input. Nothing was written.
        StoreError: It can't be recorded.
    """
    if is_blank(reason):
        raise UsageError(
            "A relaunch needs a reason. Nothing was written.",
            hint="Say with --reason what became of the last worker.",
            code="no-reason",
        )
    return _record(store, caller, task_id, reason, options)


def _record(
    store: Store, caller: Caller, task_id: str, reason: str | None, options: LaunchOptions
) -> Launched:
    named = find_task.resolve(store.db(), task_id, writing=True)
    with delivery_lock(store, f"task {named}", wait_seconds=task_work.LOCK_WAIT_SECONDS):
        task = find_task.require(store, named, writing=True)
        earlier = launches.of_task(task)
        why = rules.launch(task, store.now()) or append.too_many(store, caller, task, "launch")
        task_work.refuse(task, why)
        _refuse_live(store, caller, task)
        if reason is None and earlier:
            _refuse(task, "launched-task", f"was launched already, at {earlier[-1].record['at']}",
                    "relaunch", "--reason", "what became of its worker")  # fmt: skip
        if reason is not None and not earlier and not task.takes:
            _refuse(task, "not-launched", "was never launched nor taken", "launch")
        fields, remark = _fields(store, task, options)
        if reason is not None:
            fields["reason"] = reason
        if earlier:
            fields["relaunch_of"] = earlier[-1].id
        what = "launches" if reason is None else "relaunches"
        text = task.record["message"].strip().partition("\n")[0]
        written = task_work.write(store, caller, task, "launch", fields, f"{what} {text}"[:200])
    after = load.load(store.db(), named)
    assert after is not None  # it was just written
    found = Launched(after, after.events[written.event_id])
    found.attempt_number = launches.numbers(store.db(), after).get(found.launch)
    found.commit = written.commit
    checked = brief.check(store.repo.worktree, after.record)
    remarks = [remark, checked.sentence if checked is not None else None, _untaken(task, store.now())]
    found.warnings = [*written.warnings, *filter(None, remarks)]
    found.next = [command("gitmem", "task", "show", named)]
    return found


def _fields(store: Store, task: FoldedTask, options: LaunchOptions) -> tuple[EventContent, str | None]:
    """Return the fields of a launch, and a remark about its role.

    Raises:
        TypeError: An option is not one of `LaunchOptions`.
        UsageError: `unknown-role`, `ambiguous-role` or `bad-scope`.
    """
    known = (
        "attempt",
        "wave",
        "lane",
        "claimed_mode",
        "handoff_path",
        "branch",
        "worktree",
        "client",
        "requested_model",
    )
    unknown = options.keys() - {*known, *_NOT_FIELDS}
    if unknown:
        raise TypeError(f"A launch has no option {', '.join(sorted(unknown))}.")
    fields: Any = {name: value for name, value in options.items() if name in known and value}
    role, scopes, remark = options.get("role"), options.get("scopes"), None
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
        if take.sender == task_work.sender_of(caller):
            continue
        session = presence.get(store, take.sender[1]) if take.sender[1] is not None else None
        over = now - task.lease(take)
        if session is not None and session.status == "live" and over < GRACE_MICROS:
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


def _untaken(task: FoldedTask, now: int) -> str | None:
    """Return a sentence if nobody has taken the task yet since its last launch, which is not long ago."""
    every = launches.of_task(task)
    if not every or launches.take_after(task, every[-1], every) is not None:
        return None
    age = now - every[-1].at
    return (
        f"It was launched {presence.format_age(age)}, too, and that worker has not taken it yet."
        if age < GRACE_MICROS
        else None
    )


def _refuse(task: FoldedTask, code: str, sentence: str, word: str, *more: str) -> None:
    step = command("gitmem", "task", word, task.record["task_id"], *more)
    raise UsageError(f"{task.record['task_id']} {sentence}. Nothing was written.", code=code, next=[step])
