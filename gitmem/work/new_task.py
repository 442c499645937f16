"""Write a new task: with its idempotency key the same task as before, with its addressee, chain and limits; and the delegation that tells about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from .. import records
from ..agents import addressing, descriptions, descriptors, presence, vocabulary
from ..agents.addressing import ROLE_PREFIX
from ..commit_message import sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..order.task import DELEGATION, HANDOFF
from ..outcome import Outcome, Struct, command
from ..records import KEYED, TEXTS, is_forgotten
from ..records.ids import role_id
from ..records.table import FILLED
from ..settings import ROLES
from ..signals import send
from . import CALL, LINKS_MAX, collisions, stuck, task_records, task_roles, task_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Unpack

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..agents.vocabulary import Roles
    from ..records.record_types import ShownTask, SignalFields, TaskRecord
    from ..store import Store


class TaskOptions(TypedDict):
    """The options of a new task. One that is missing, None or empty is not given.

    Attributes:
        to: Whom it is for, as typed: one agent, session or person.
        resolved: Whom that names, where the caller has resolved it already.
        requested_to: The text that named a role, if that is not in `to`.
        resolved_by: How it did.
        target_role: The role that it is for, such as `reviewer/docs`; anybody may take it unless `to` is given.
        purpose: `delegation` (default), `call` or `handoff`.
        requested_role: The role in parts.
        requested_ownership_scope: What it covers.
        requested_model: The model that it is for.
        priority: P0 to P3.
        blocked_by: Tasks that must be finished before it.
        supersedes: Earlier tasks of the caller that it replaces.
        references: Other tasks that it refers to.
        within: The task that its writer works on, or `none`; by default the one open task that the caller's session has, if it has exactly one.
        chain: Instead of `within`: the tasks within which it is written, outermost first.
        again: Whether it may be for an agent who is in its chain already.
        deadline: The time after which nobody begins it, in microseconds since 1970-01-01 UTC.
        brief_digest: SHA-256 of the brief.
        artifact: The file of the brief.
        payload: Content beyond the text.
        context: Working memory that the caller hands over.
        semantics: `at-least-once` (default) or `at-most-once`.
        thread: The conversation that it belongs to; by default a new one.
        wu: Work unit.
        initiative: Initiative.
        lane: Lane.
        idempotency_key: The same key is the same task, on all clones of this user.
        handoff_takes, handoff_tasks: Of a handoff: the caller's takes, and the task of each.
        handoff_claims: Of a handoff: the caller's claims.
        handoff_threads: Of a handoff: the open threads.
        checkpoint: Of a handoff: the caller's last checkpoint.
        allow_unseen: Accept an agent identity that is not in the log yet.
    """

    to: NotRequired[str | None]
    resolved: NotRequired[Resolved | None]
    requested_to: NotRequired[str | None]
    resolved_by: NotRequired[str | None]
    target_role: NotRequired[str | None]
    purpose: NotRequired[str | None]
    requested_role: NotRequired[Mapping[str, Any] | None]
    requested_ownership_scope: NotRequired[Mapping[str, Any] | None]
    requested_model: NotRequired[str | None]
    priority: NotRequired[str | None]
    blocked_by: NotRequired[Sequence[str] | None]
    supersedes: NotRequired[Sequence[str] | None]
    references: NotRequired[Sequence[str] | None]
    within: NotRequired[str | None]
    chain: NotRequired[Sequence[str] | None]
    again: NotRequired[bool]
    deadline: NotRequired[int | None]
    brief_digest: NotRequired[str | None]
    artifact: NotRequired[str | None]
    payload: NotRequired[Mapping[str, Any] | None]
    context: NotRequired[Mapping[str, Any] | None]
    semantics: NotRequired[str | None]
    thread: NotRequired[str | None]
    wu: NotRequired[str | None]
    initiative: NotRequired[str | None]
    lane: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]
    handoff_takes: NotRequired[Sequence[str] | None]
    handoff_tasks: NotRequired[Sequence[str] | None]
    handoff_claims: NotRequired[Sequence[str] | None]
    handoff_threads: NotRequired[Sequence[str] | None]
    checkpoint: NotRequired[str | None]
    allow_unseen: NotRequired[bool]


_ADDRESSEE = ("agent", "target_role")
_DEFAULTED = (
    "requested_role",
    "requested_ownership_scope",
)  # by the addressee; what a repetition says of them counts
# Parts of a payload that say how and where the task was written.
_OF_WRITING = (task_records.TELL, task_rules.AGAIN, "brief", "clientMessageId", "acceptedOutputModes")


def task_of_key(store: Store, caller: Caller, message: str, options: TaskOptions) -> NewTask | None:
    """Return the task of an idempotency key that was recorded for the same addressee, as typed, with the same content; None if that is not certain.

    Who has repeated a command gets its task also if the deadline is over, an enclosing task is finished, or the addressee is gone.

    Args:
        options: Of a role and a scope the parts that the caller names.

    Raises:
        UsageError: `key-reused`: another field than the addressee differs. Nothing was written.
    """
    before = recorded_for_key(store, caller, options.get("idempotency_key"))
    if before is None:
        return None  # also before there is a key to make ids under
    fields = _fields(store, caller, message, None, options)
    refuse_another(before, fields, [name for name in KEYED["task"] if name not in (*_ADDRESSEE, *_DEFAULTED)])
    for name in _DEFAULTED:
        asked: Mapping[str, Any] = fields.get(name) or {}
        had: Mapping[str, Any] = before.get(name) or {}  # type: ignore[assignment]
        refuse_another(
            {**before, name: {part: had.get(part) for part in asked}}, fields, [name] if asked else ()
        )
    role, agent = before.get("target_role"), before.get("agent")
    known = {before.get("requested_to") or agent, agent, f"{ROLE_PREFIX}{role}" if role else None} - {None}
    asked_of = (options.get("to") or f"{ROLE_PREFIX}{options.get('target_role')}").strip()
    return _already_recorded(before, None) if asked_of in known else None


def recorded_for_key(store: Store, caller: Caller, key: str | None) -> TaskRecord | None:
    """Return the task of a caller's key; None without one. Whoever knows the key can write the id; the task is only the caller's own."""
    task_id = store.own_task_id_before(caller.reader, key) if key else None
    if task_id is None:
        return None
    found = task_rules.record_of(store.db(), task_id)
    return found if found is not None and found["sender_identity"] == caller.reader else None


def refuse_another(
    before: Mapping[str, Any], fields: Mapping[str, Any], names: Sequence[str] = _ADDRESSEE
) -> None:
    """Raise UsageError if the caller means another task than that of the key."""
    unknown = TEXTS["task"] if is_forgotten(before) else ()
    for name in names:
        if name not in unknown and _value(before, name) != _value(fields, name):
            raise UsageError(
                f"The idempotency key belongs to {before['task_id']}, which has another {name}. Nothing was written.",
                hint="Use a new key for a new task.",
                code="key-reused",
                next=[command("gitmem", "task", "show", before["task_id"])],
            )


def _value(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field for a comparison: a missing one as its default."""
    value = fields.get(name) or FILLED["task"].get(name) or None
    if name == "payload" and value:
        return {part: each for part, each in value.items() if part not in _OF_WRITING} or None
    return list(value) if isinstance(value, tuple) else value


# Options that decide where a task goes, or whether it is recorded; all others are fields of the record.
_NOT_FIELDS = ("to", "resolved", "thread", "allow_unseen", "deadline", "within", "again")
_FIELD_NAMES = {"wu": "wu_id", "initiative": "initiative_id", "artifact": "artifact_path"}
_TASKS = ("blocked_by", "supersedes", "references", "chain")


class NewTask(Outcome, kw_only=True):
    """A recorded task; `commit` is None while it waits for one.

    Attributes:
        task: The task as it is recorded.
        recorded: False if the key's task was there already, and of a task that was only prepared.
        bytes: The size of its line.
        resolved: How its addressee was found.
        signal_id: The signal that tells about it, if one was recorded with it.
        signaled: The names of those who get it.
    """

    task: ShownTask
    commit: str | None = None
    recorded: bool = False
    bytes: int = 0
    resolved: Resolved | None
    signal_id: str | None = None
    signaled: list[str] = []
    warnings: list[str] = []
    next: list[str] = []


def create(
    store: Store,
    caller: Caller,
    message: str,
    *,
    signaled: Sequence[Resolved] = (),
    said: Callable[[Mapping[str, Any]], str] | None = None,
    dry_run: bool = False,
    **options: Unpack[TaskOptions],
) -> NewTask:
    """Record a task, and in the same entry the signal that tells about it.

    Args:
        signaled: The recipients of the signal; without any there is none.
        said: Returns the message of the signal, of the fields of the task; by default it is that of the task.
        dry_run: Check all and write nothing.
        options: See `TaskOptions`.

    Raises:
        UsageError: Invalid input (also RecordError, SecretError): nothing was written.
        StoreError: The task can't be recorded.
    """
    if (same := task_of_key(store, caller, message, options)) is not None:
        return same
    check_task(store, options)
    resolved = _addressee(store, caller, options)
    is_handoff = options.get("purpose") == HANDOFF
    with task_rules.turn_to_write(store, is_limited=not is_handoff):
        fields = _fields(store, caller, message, resolved, options)
        if (before := recorded_for_key(store, caller, options.get("idempotency_key"))) is not None:
            refuse_another(before, fields)
            return _already_recorded(before, resolved)
        _refuse_foreign(store, caller, fields["supersedes"])
        if not is_handoff:  # who has too much to do may hand it over
            task_rules.refuse_too_many(store, caller, fields["agent"])
            _place(store, caller, fields, options)
        lines = [store.line("task", fields)]  # type: ignore[arg-type]
        if signaled:
            text = said(fields) if said is not None else message
            about = signal_about(store, caller, {**fields, "message": text}, signaled)
            lines.append(store.line("signal", about))
        made = _made(lines[0][1], resolved, caller.remark)
        if not dry_run:
            _record(store, caller, message, lines, made, signaled)
    return made


def _made(line: bytes, resolved: Resolved | None, remark: str | None) -> NewTask:
    """Return a task that is about to be recorded."""
    record = records.read_kind("task", line)
    assert record is not None  # it was checked as it was made
    made = NewTask(task=records.shown(record), resolved=resolved, bytes=len(line))
    made.warnings = [*filter(None, [remark, resolved.remark if resolved else None])]
    return made


def _record(
    store: Store,
    caller: Caller,
    message: str,
    lines: Sequence[tuple[str, bytes]],
    made: NewTask,
    signaled: Sequence[Resolved],
) -> None:
    """Record a task, and announce the signal about it, which is its second line."""
    task, resolved = made.task, made.resolved
    to = (resolved.display_name or resolved.address) if resolved else task.get("target_role")
    what = f"→ {to}: {task['purpose'].upper()} {message.strip().partition(chr(10))[0]}"
    made.commit = task_records.record(store, caller, lines, what, task, text=message).commit
    made.recorded = True
    for _, line in lines[1:]:
        told = records.read_kind("signal", line)
        assert told is not None  # it was checked as it was made
        send.announce(store, told, signaled)
        made.signal_id = told["signal_id"]
        made.signaled = [
            each.display_name or each.address for each in signaled if each.address not in caller.ids
        ]
    if task["purpose"] != CALL:  # who calls waits: what is true after that is said then
        everybody = [*signaled, *([resolved] if resolved else [])]
        made.warnings += addressing.not_sent(store, task["task_id"], everybody)
    made.next = [command("gitmem", "task", "show", task["task_id"])]


def _fields(
    store: Store, caller: Caller, message: str, resolved: Resolved | None, options: TaskOptions
) -> dict[str, Any]:
    """Return the fields of a new task.

    Raises:
        UsageError: The message is blank, or a task that it names is unknown.
    """
    send.check_message(message)
    key = options.get("idempotency_key")
    task_id = store.own_id("task", caller.reader, key) if key else store.new_id("task")
    fields: dict[str, Any] = {
        "task_id": task_id,
        "thread_id": options.get("thread") or f"thread-{task_id[5:]}",
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
        fields[name] = [task_rules.resolve(store.db(), each, writing=True) for each in fields.get(name) or ()]
    return fields


def _place(store: Store, caller: Caller, fields: dict[str, Any], options: TaskOptions) -> None:
    """Set the chain of a new task and what follows of it.

    Raises:
        UsageError: See `chains`.
    """
    again = bool(options.get("again"))
    chain = fields["chain"] or task_rules.of_new(store, caller, options.get("within"))
    deadline = task_rules.check_new(
        store, caller, chain, fields["agent"], options.get("deadline"), again=again
    )
    fields["chain"] = chain
    fields["deadline"] = format_at(deadline) if deadline else None
    if again and chain:
        fields["payload"] = {**(fields.get("payload") or {}), task_rules.AGAIN: True}


def check_task(store: Store, options: TaskOptions) -> None:
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


def _already_recorded(before: TaskRecord, resolved: Resolved | None) -> NewTask:
    found = NewTask(task=records.shown(before), resolved=resolved)
    found.warnings = ["This task is already recorded. Nothing was written."]
    found.next = [command("gitmem", "task", "show", before["task_id"])]
    return found


def _refuse_foreign(store: Store, caller: Caller, superseded: list[str]) -> None:
    """Raise UsageError for tasks that the caller can't replace: those of others, and finished ones."""
    for task_id in superseded:
        task = task_rules.require(store, task_id)
        why = "was written by somebody else" if task.caller[0] != caller.reader else ""
        why = why or (f"is finished: {task.state}" if task.is_finished else "")
        if why:
            raise UsageError(
                f"{task_id} can't be replaced: it {why}. Nothing was written.",
                hint="Refer to it with references instead.",
                code="not-replaceable",
                next=[command("gitmem", "task", "show", task_id)],
            )


_NOBODY = "no-role-holder"
# Characters of a text that the completed command repeats; it reads a longer one from standard input.
REPEATED_MAX = 500


class Addressees(Struct):
    """Whom a delegation is for.

    Attributes:
        signaled: Who gets the signal: the addressee, or who holds the role now.
        role: The role in parts, if it is for a role.
        session: The folded session of the addressee, if it is for one; its role and scope are requested if none are named.
    """

    signaled: Sequence[Resolved] = ()
    role: dict[str, Any] = {}
    session: Mapping[str, str] = {}


def delegate(
    store: Store,
    caller: Caller,
    message: str,
    *,
    role: str | None = None,
    scopes: Sequence[str] = (),
    **options: Unpack[TaskOptions],
) -> NewTask:
    """Record a delegation, and the signal with which its addressee learns of it.

    Args:
        role: The role that is requested; by default that of `to`, else the default one of the vocabulary.
        scopes: The scope that is requested, as `roles.scope.parse` reads it; by default the work unit, else that of `to`, else
            the responsibilities of the role.
        options: See `TaskOptions`. Here `to` may name a role, too, as `role:reviewer/docs` or by its alias: then any one may take it.

    Raises:
        UsageError: `no-addressee`, `no-role` in a vocabulary without a default, or another invalid input (also RecordError, SecretError). Nothing was written.
        StoreError: It can't be recorded.
    """
    roles = vocabulary.read(store.repo.worktree)
    stated = vocabulary.resolve(roles, role, policy=ROLES.checked(store.settings())) if role else None
    if (same := task_of_key(store, caller, message, _as_said(options, stated, scopes))) is not None:
        return same
    if options.get("to") is None and not options.get("target_role"):
        raise _nobody_named(store, caller, message)
    check_task(store, options)
    to = options.pop("to", None) or f"{addressing.ROLE_PREFIX}{options.get('target_role')}"
    found = addressees(store, caller, to, roles, allow_unseen=bool(options.get("allow_unseen")))
    remarks = [each.remark for each in found.signaled]
    asked = found.role or dict(options.get("requested_role") or ()) or descriptions.actual_role(found.session)
    if stated is not None:
        asked, remark = task_roles.parts(stated), vocabulary.warning(roles, stated, role or "")
        remarks.append(remark)
    if not asked:
        asked = task_roles.parts(_default_role(roles, to, message))
        name = role_id(asked["lifecycle_role"], asked.get("specialty_profile"))
        remarks.append(f"{sanitize(to)} states no role: {name} is requested. --role names another.")
    if found.role:
        options["target_role"] = role_id(found.role["lifecycle_role"], found.role.get("specialty_profile"))
    else:
        options["to"] = to
    options["purpose"] = DELEGATION
    options["requested_role"] = asked
    if scopes or not options.get("requested_ownership_scope"):
        options["requested_ownership_scope"], remark = _scope(roles, scopes, asked, options.get("wu"), found)
        remarks.append(remark)
    if caller.workspace is not None:
        send.refuse_other_workspaces(store, caller.workspace, found.signaled)

    made = create(store, caller, message, signaled=found.signaled, **options)
    said = [each for each in remarks if each and each not in made.warnings]
    if not found.signaled:
        said.append(
            f"Nobody holds {options['target_role']} now: no signal was sent. It stands in `gitmem task list`."
        )
    made.warnings += [
        *said,
        *(collisions.of_answer(store, caller, made.task["task_id"]) if made.recorded else ()),
        *stuck.escalate_due(store, caller),
    ]
    return made


def _as_said(options: TaskOptions, role: vocabulary.Role | None, scopes: Sequence[str]) -> TaskOptions:
    """Return the options with the parts of role and scope that the caller names, without those that follow of other facts."""
    said: TaskOptions = {**options}
    if role is not None:
        said["requested_role"] = task_roles.parts(role)
    if scopes:
        parts = descriptors.parse_scope(scopes).as_json()
        said["requested_ownership_scope"] = {name: value for name, value in parts.items() if value}
    return said


def addressees(store: Store, caller: Caller, to: str, roles: Roles, *, allow_unseen: bool) -> Addressees:
    """Return whom a text names: one agent, or a role, which nobody needs to hold.

    Raises:
        UsageError: See `addressing.resolve` and `vocabulary.resolve`.
    """
    found = Addressees()
    try:
        found.signaled = addressing.resolve(store, [to], caller=caller, allow_unseen=allow_unseen)
    except UsageError as error:
        if error.code != _NOBODY:
            raise
        typed = to.strip()
        typed = typed[len(addressing.ROLE_PREFIX) :].strip() if addressing.is_role(typed) else typed
        known = vocabulary.find(roles.pack, typed) or vocabulary.resolve(
            roles, typed, policy=vocabulary.KNOWN
        )
        found.role = task_roles.parts(known)
        return found
    named = {each.role for each in found.signaled}
    if len(named) > 1 or (None in named and len(found.signaled) > 1):
        return found  # several: `new_task` refuses them
    text = named.pop()
    if text:
        found.role = task_roles.of_text(text)
    else:
        found.session = _session(store, found.signaled[0].address)
    return found


def _session(store: Store, address: str) -> Mapping[str, str]:
    """Return the folded session of an address: of an identity the last seen one that states a role."""
    one = presence.get(store, address)
    every = [one] if one is not None else presence.of_identity(store, address)
    stated = next((each for each in every if each.role is not None), None)
    return stated.record if stated is not None else {}


def _scope(
    roles: Roles, scopes: Sequence[str], asked: Mapping[str, Any], wu: str | None, found: Addressees
) -> tuple[Mapping[str, Any], str | None]:
    """Return the requested scope, and a remark if nobody states one.

    Raises:
        UsageError: `bad-scope`.
    """
    texts = [*scopes, *([f"wu={wu}"] if wu else [])]
    if not texts and (theirs := task_roles.scope_of(found.session)):
        return theirs, None
    whole = descriptors.with_default_kinds(
        descriptors.parse_scope(texts), asked["lifecycle_role"], roles.pack
    )
    shown = whole.text or "any"
    said = f"No scope is stated: {shown} is requested. --scope or --wu names another."
    return whole.as_json(), None if texts else said


def _default_role(roles: Roles, to: str, message: str) -> vocabulary.Role:
    """Return the role that is requested where nobody states one.

    Raises:
        UsageError: `no-role` if the vocabulary of the repository has no default.
    """
    if roles.pack.default_lifecycle:
        return vocabulary.resolve(roles, roles.pack.default_lifecycle, policy=vocabulary.KNOWN)
    raise UsageError(
        f"No role is asked for: {sanitize(to)} states none, and this repository has no default_lifecycle. Nothing was written.",
        hint="Name the role with --role.",
        code="no-role",
        next=[*(_completed(message, "--to", to, "--role", each) for each in list(roles.pack.lifecycle_roles)[:1]),
              "gitmem role"],
    )  # fmt: skip


def _nobody_named(store: Store, caller: Caller, message: str) -> UsageError:
    """Return the error for a delegation without addressee, with the command for each agent at work."""
    others = [
        each for each in presence.shown(store).values() if each.is_current and each.reader not in caller.ids
    ]
    return UsageError(
        "A task needs somebody who may take it: an agent or a role. Nothing was written.",
        hint="Name an agent with --to NAME, or a role with --to role:ROLE.",
        code="no-addressee",
        next=[*(_completed(message, "--to", each.name) for each in others[:2]), "gitmem roster"],
    )


def _completed(message: str, *options: str) -> str:
    return command("gitmem", "delegate", message if len(message) <= REPEATED_MAX else "-", *options)


def signal_about(
    store: Store, caller: Caller, task: Mapping[str, Any], resolved: Sequence[Resolved]
) -> SignalFields:
    """Return the fields of the signal about a task. It asks for an answer, and decides nothing of the task."""
    fields: Any = send.addressed(store, caller, task["message"], resolved, None, None)
    fields |= task_records.thread_fields(task)
    fields |= {
        "artifact_path": task.get("artifact_path"),
        "target_role": task.get("target_role"),
        "intent": "PROPOSE",
        "requires_ack": True,
        "interrupt_class": "priority",
    }
    send.set_recorder(store, caller, fields, insist=False)
    fields["sender_headline"] = descriptions.headline_of_caller(store, store.db(), caller)
    found: SignalFields = fields
    return found
