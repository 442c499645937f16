"""Delegate: write a task with the role and scope that are asked for, and the signal that tells about it, in one entry."""

from __future__ import annotations

from ..agents import addressing, descriptions, descriptors, presence, vocabulary
from ..commit_message import sanitize
from ..errors import UsageError
from ..order.task import DELEGATION
from ..outcome import command
from ..records.ids import role_id
from ..signals import next_steps, send
from . import collisions, escalate, new_task, task_roles, task_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..agents.vocabulary import Roles
    from ..records.record_types import SignalFields
    from ..store import Store
    from .new_task import NewTask
    from .task_options import TaskOptions

_NOBODY = "no-role-holder"
REPEATED_MAX = (
    500  # characters of a text that the completed command repeats; it reads a longer one from standard input
)


class Addressees:
    """Whom a delegation is for.

    Attributes:
        signaled: Who gets the signal: the addressee, or who holds the role now.
        role: The role in parts, if it is for a role.
        session: The folded session of the addressee, if it is for one; its role and scope are requested if none are named.
    """

    def __init__(self) -> None:
        self.signaled: Sequence[Resolved] = ()
        self.role: dict[str, Any] = {}
        self.session: Mapping[str, str] = {}


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
    stated = vocabulary.resolve(roles, role, policy=vocabulary.policy_of(store.settings())) if role else None
    if (same := new_task.of_key(store, caller, message, _as_said(options, stated, scopes))) is not None:
        return same
    if options.get("to") is None and not options.get("target_role"):
        raise _nobody_named(store, caller, message)
    new_task.check(store, options)
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
        next_steps.refuse_other_workspaces(store, caller.workspace, found.signaled)

    def signal(fields: Mapping[str, Any]) -> SignalFields:
        return signal_about(store, caller, fields, found.signaled)

    made = new_task.create_with_signal(
        store, caller, message, signal if found.signaled else None, found.signaled, **options
    )
    said = [each for each in remarks if each and each not in made.warnings]
    if not found.signaled:
        said.append(
            f"Nobody holds {options['target_role']} now: no signal was sent. It stands in `gitmem task list`."
        )
    made.warnings += [
        *said,
        *(collisions.of_answer(store, caller, made.task["task_id"]) if made.recorded else ()),
        *escalate.look(store, caller),
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
              "gitmem role list"],
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
    fields |= task_signals.thread_fields(task)
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
