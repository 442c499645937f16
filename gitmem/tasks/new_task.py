"""Create tasks: resolve the addressee, refuse what nobody could do, and record the task."""

from __future__ import annotations

from .. import records
from ..agents import addressing
from ..commit_message import sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..order.task import DELEGATION, HANDOFF
from ..outcome import Outcome, command
from ..records import ids
from ..signals import send
from . import CALL, append, chains, find_task, keyed_task, open_tasks
from .task_rows import LINKS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Unpack

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..records.record_types import ShownTask, SignalFields, TaskRecord
    from ..store import Store
    from .task_options import TaskOptions

# Options that decide where a task goes, or whether it is recorded; all others are fields of the record.
_NOT_FIELDS = ("to", "resolved", "thread", "allow_unseen", "allow_secret", "deadline", "within", "again")
_FIELD_NAMES = {"wu": "wu_id", "initiative": "initiative_id", "artifact": "artifact_path"}
_TASKS = ("blocked_by", "supersedes", "references", "chain")


class NewTask(Outcome):
    """A recorded task; `commit` is None while it waits for one.

    Attributes:
        task: The task as it is recorded.
        recorded: False if the key's task was there already, and of a task that was only prepared.
        bytes: The size of its line.
        resolved: How its addressee was found.
        signal_id: The signal that tells about it, if one was recorded with it.
        signaled: The names of those who get it.
    """

    def __init__(self, task: ShownTask, resolved: Resolved | None) -> None:
        self.task = task
        self.commit: str | None = None
        self.recorded = False
        self.bytes = 0
        self.resolved = resolved
        self.signal_id: str | None = None
        self.signaled: list[str] = []
        self.warnings: list[str] = []
        self.next: list[str] = []


def create(store: Store, caller: Caller, message: str, **options: Unpack[TaskOptions]) -> NewTask:
    """Record a task, see `create_with_signal`."""
    return create_with_signal(store, caller, message, None, (), **options)


def create_with_signal(
    store: Store,
    caller: Caller,
    message: str,
    signal: Callable[[Mapping[str, Any]], SignalFields] | None,
    signaled: Sequence[Resolved],
    *,
    dry_run: bool = False,
    **options: Unpack[TaskOptions],
) -> NewTask:
    """Record a task, and in the same entry the signal that tells about it.

    Args:
        signal: Returns the fields of the signal, of those of the task; None for a task without a signal.
        signaled: Its recipients.
        dry_run: Check all and write nothing.
        options: See `TaskOptions`.

    Raises:
        UsageError: Invalid input (also RecordError, SecretError): nothing was written.
        StoreError: The task can't be recorded.
    """
    if (same := of_key(store, caller, message, options)) is not None:
        return same
    check(store, options)
    resolved = _addressee(store, caller, options)
    with open_tasks.turn(store, is_limited=options.get("purpose") != HANDOFF):
        return _create(store, caller, message, resolved, signal, signaled, options, dry_run=dry_run)


def _create(
    store: Store,
    caller: Caller,
    message: str,
    resolved: Resolved | None,
    signal: Callable[[Mapping[str, Any]], SignalFields] | None,
    signaled: Sequence[Resolved],
    options: TaskOptions,
    *,
    dry_run: bool,
) -> NewTask:
    """Record a task, see `create_with_signal`; `resolved` is whom it is for."""
    key = options.get("idempotency_key")
    fields = _fields(store, caller, message, resolved, options)
    task_id = fields["task_id"]
    if (before := keyed_task.recorded(store, caller, key)) is not None:
        keyed_task.refuse_another(before, fields)
        return _already_recorded(before, resolved)
    _refuse_foreign(store, caller, fields["supersedes"])
    if fields["purpose"] != HANDOFF:  # who has too much to do may hand it over
        open_tasks.refuse_too_many(store, caller, fields["agent"])
        _place(store, caller, fields, options)
    line = store.line("task", fields, allow_secret=bool(options.get("allow_secret")))  # type: ignore[arg-type]
    record = records.read_kind("task", line[1])
    assert record is not None  # it was checked as it was made
    to = (resolved.display_name or resolved.address) if resolved else fields["target_role"]
    what = f"→ {to}: {record['purpose'].upper()} {message.strip().partition(chr(10))[0]}"
    made = NewTask(records.shown(record), resolved)
    made.bytes = len(line[1])
    made.warnings = [*filter(None, [caller.remark, resolved.remark if resolved else None])]
    lines = [line]
    if signal is not None:
        lines.append(store.line("signal", signal(fields), allow_secret=bool(options.get("allow_secret"))))
    if dry_run:
        return made
    appended = append.record(store, caller, lines, what, record, text=message)
    if signal is not None:
        told = records.read_kind("signal", lines[1][1])
        assert told is not None  # it was checked as it was made
        send.announce(store, told, signaled)
        made.signal_id = told["signal_id"]
        made.signaled = [
            each.display_name or each.address for each in signaled if each.address not in caller.ids
        ]
    if fields["purpose"] != CALL:  # who calls waits: what is true after that is said then
        made.warnings += addressing.not_sent(store, task_id, [*signaled, *([resolved] if resolved else [])])
    made.commit, made.recorded = appended.commit, True
    made.next = [command("gitmem", "task", "show", task_id)]
    return made


def _fields(
    store: Store, caller: Caller, message: str, resolved: Resolved | None, options: TaskOptions
) -> dict[str, Any]:
    """Return the fields of a new task.

    Raises:
        UsageError: The message is blank, or a task that it names is unknown.
    """
    send.check_message(message)
    key = options.get("idempotency_key")
    task_id = keyed_task.id_of(caller, key) if key else ids.new_id("task", store.random)
    fields: dict[str, Any] = {
        "task_id": task_id,
        "thread_id": options.get("thread") or (f"thread-{task_id[5:]}" if key else ids.new_id("thread", store.random)),
        "message": message,
        "purpose": DELEGATION,
        "agent": resolved.address if resolved else None,
        "requested_to": resolved.query if resolved else None,
        "resolved_by": resolved.resolved_by if resolved else None,
        "deadline": format_at(deadline) if (deadline := options.get("deadline")) else None,
        "workspace_id": caller.workspace,
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }  # fmt: skip
    for name, value in options.items():
        if name not in _NOT_FIELDS and value:
            fields[_FIELD_NAMES.get(name, name)] = value
    if not (fields.get("requested_role") or {}).get("specialty_profile"):
        fields.pop("requested_role", None)  # any one is asked for: `target_role` says it
    for name in _TASKS:
        fields[name] = [find_task.resolve(store.db(), each, writing=True) for each in fields.get(name) or ()]
    return fields


def _place(store: Store, caller: Caller, fields: dict[str, Any], options: TaskOptions) -> None:
    """Set the chain of a new task and what follows of it.

    Raises:
        UsageError: See `chains`.
    """
    again = bool(options.get("again"))
    chain = fields["chain"] or chains.of_new(store, caller, options.get("within"))
    deadline = chains.check_new(store, caller, chain, fields["agent"], options.get("deadline"), again=again)
    fields["chain"] = chain
    fields["deadline"] = format_at(deadline) if deadline else None
    if again and chain:
        fields["payload"] = {**(fields.get("payload") or {}), chains.AGAIN: True}


def check(store: Store, options: TaskOptions) -> None:
    """Raise UsageError for options that are invalid or contradict each other."""
    if "" in [options.get(name) for name in ("thread", "idempotency_key", "to", "within")]:
        raise UsageError(
            "The addressee, the thread, the enclosing task and the idempotency key of a task must not be empty. Nothing was written.",
            hint="Check whether a shell variable in the command is unset.",
            code="empty-id",
        )
    if not options.get("to") and not options.get("target_role"):
        raise UsageError(
            "A task needs somebody who may take it: an agent or a role. Nothing was written.",
            hint="Name an agent, or a role such as reviewer/docs.",
            code="no-addressee",
            next=["gitmem roster"],
        )
    for name in _TASKS:
        named: Any = options.get(name) or ()
        count = len(named)
        if count > LINKS_MAX:
            raise UsageError(
                f"{name} names {count} tasks; at most {LINKS_MAX} are allowed. Nothing was written.",
                code="too-many-links",
            )
    deadline = options.get("deadline")
    if deadline and deadline <= store.now():
        raise UsageError(
            f"The deadline {format_at(deadline)} is over already. Nothing was written.", code="past-deadline"
        )


def _addressee(store: Store, caller: Caller, options: TaskOptions) -> Resolved | None:
    """Return the one agent that a task is for; None for a task that is for a role."""
    to, resolved = options.get("to"), options.get("resolved")
    if resolved is not None or not to:
        return resolved
    found = addressing.resolve(store, [to], caller=caller, allow_unseen=bool(options.get("allow_unseen")))
    if len(found) > 1:
        raise UsageError(
            f"A task has one addressee, and {sanitize(to)} names {len(found)}. Nothing was written.",
            hint="Write one task for each agent, or one for a role.",
            code="several-addressees",
            suggestions=[each.query for each in found],
        )
    return found[0]


def of_key(store: Store, caller: Caller, message: str, options: TaskOptions) -> NewTask | None:
    """Return the task of an idempotency key that was recorded before, see `keyed_task.find`."""
    if not options.get("idempotency_key"):
        return None
    before = keyed_task.find(store, caller, _fields(store, caller, message, None, options), options)
    return _already_recorded(before, None) if before is not None else None


def _already_recorded(before: TaskRecord, resolved: Resolved | None) -> NewTask:
    found = NewTask(records.shown(before), resolved)
    found.warnings = ["This task is already recorded. Nothing was written."]
    found.next = [command("gitmem", "task", "show", before["task_id"])]
    return found


def _refuse_foreign(store: Store, caller: Caller, superseded: list[str]) -> None:
    """Raise UsageError for tasks that the caller can't replace: those of others, and finished ones."""
    for task_id in superseded:
        task = find_task.require(store, task_id)
        why = "was written by somebody else" if task.caller[0] != caller.reader else ""
        why = why or (f"is finished: {task.state}" if task.is_finished else "")
        if why:
            raise UsageError(
                f"{task_id} can't be replaced: it {why}. Nothing was written.",
                hint="Refer to it with references instead.",
                code="not-replaceable",
                next=[command("gitmem", "task", "show", task_id)],
            )
