"""Hand over open work: write a handoff, a task that names what its writer has, and the signal that tells about it."""

from __future__ import annotations

from ..agents import presence
from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..outcome import Outcome
from ..records.ids import role_id
from ..roles import roles_file
from ..signals import next_steps
from ..tasks import HANDOFF, HANDOFF_MICROS, delegate, new_task
from ..text.shell_quote import command
from . import bundle, content, handoff_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..records.record_types import SignalFields
    from ..records.shown_types import ShownTask
    from ..store import Store
    from ..tasks.delegate import Addressees
    from ..tasks.new_task import NewTask
    from ..tasks.task_options import TaskOptions
    from .bundle import Bundle
    from .content import HandoffContent, LeftOut

CLAIMS_END = (
    "Your claims end with your session: end it after this is accepted, or others may claim the paths before."
)
MESSAGE_MAX_BYTES = 64 * 1024  # of a signal
MESSAGE_MAX = 2_000  # characters of a checkpoint's next steps that become the message


class NewHandoff(Outcome):
    """A handoff: what it has, and what it leaves out.

    Attributes:
        task: The handoff as it is recorded.
        recorded: False of one that was only prepared.
        to: A name for people of whom it is for.
        bytes: The size of its line: all is handed over by reference.
        until: The time after which it is returned without an answer, in ISO 8601.
        handoff: What it has.
        left_out: What it leaves out, and why.
        signal_id: The signal that tells about it; None if nobody holds the role.
    """

    def __init__(self, made: NewTask, to: str, given: HandoffContent, left_out: list[LeftOut]) -> None:
        self.task: ShownTask = made.task
        self.recorded = made.recorded
        self.commit = made.commit
        self.to = to
        self.signal_id = made.signal_id
        self.signaled = made.signaled
        self.bytes = made.bytes
        self.until = made.task.get("deadline")
        self.handoff = given
        self.left_out = left_out
        self.warnings = made.warnings
        task_id = made.task["task_id"]
        self.next = [command("gitmem", "task", word, task_id) for word in ("show", "cancel")]


def hand_over(
    store: Store,
    caller: Caller,
    to: str | None,
    message: str | None = None,
    *,
    wu: str | None = None,
    dry_run: bool = False,
    allow_secret: bool = False,
) -> NewHandoff:
    """Offer the caller's open work to somebody: its checkpoint, tasks, claims and open threads, by reference.

    Nothing changes hands before it is accepted. Without an answer it is returned after 24 hours.

    Args:
        to: An agent, a session, or a role as `role:reviewer/docs`: then any one who holds it may accept.
        message: The next steps; by default those of the checkpoint.
        wu: Only what belongs to this work unit.
        dry_run: Write nothing, and return what would be written.

    Raises:
        UsageError: `nothing-to-hand-over`, `own-handoff`, `too-many-open`, an invalid recipient or text. Nothing was written.
        StoreError: It can't be recorded.
    """
    if not (to or "").strip():
        raise UsageError(
            "A handoff needs somebody who may accept it: an agent or a role. Nothing was written.",
            hint="Name one with --to NAME, or with --to role:ROLE.",
            code="no-addressee",
            next=["gitmem roster", "gitmem role list"],
        )
    assert to is not None
    if message is not None and not message.strip():
        raise UsageError("The next steps have only white space. Nothing was written.", code="empty-message")
    found = delegate.addressees(store, caller, to, roles_file.read(store.repo.worktree), allow_unseen=False)
    warnings = _check(store, caller, to, found)
    bundled = bundle.collect(store, caller, wu)
    warnings += [CLAIMS_END] if bundled.claims and caller.session_id else []
    if bundled.is_empty:
        raise _nothing(bundled, wu)
    options = _options(store, to, wu, found, bundled, allow_secret=allow_secret)
    options["wu"] = wu or caller.wu_id

    def signal(fields: Mapping[str, Any]) -> SignalFields:
        show, accept = (command("gitmem", "task", word, fields["task_id"]) for word in ("show", "take"))
        text = f"{fields['message']}\n\nI hand over {content.counts(fields)}: {show}. To accept: {accept}"
        if len(text.encode()) > MESSAGE_MAX_BYTES:
            text = fields["message"]
        return delegate.signal_about(store, caller, {**fields, "message": text}, found.signaled)

    made = new_task.create_with_signal(
        store, caller, message or _next_steps_of(bundled), signal if found.signaled else None, found.signaled, dry_run=dry_run,
        **options,
    )  # fmt: skip
    made.warnings += [each for each in warnings if each not in made.warnings]
    made.signaled = made.signaled or [each.display_name or each.address for each in found.signaled]
    one = found.signaled[0] if found.signaled else None
    name = (
        (one.display_name or one.address)
        if one is not None and not found.role
        else f"role:{options.get('target_role')}"
    )
    given = content.of(store, options)
    outcome = NewHandoff(made, name, given, [*bundled.left_out, *given.left_out])
    if dry_run:
        outcome.next = [command("gitmem", "handoff", "--to", to, *(["--wu", wu] if wu else []))]
    return outcome


def _nothing(bundled: Bundle, wu: str | None) -> UsageError:
    """Return the error of a giver who has nothing to hand over: what is left out, and why."""
    about = f" of {sanitize(wu)}" if wu else ""
    why = "no task taken, no claim, no open thread and no checkpoint"
    if bundled.left_out:
        first, more = bundled.left_out[0], len(bundled.left_out) - 1
        why = f"{first.id} {first.reason}" + (f", and {more} more" if more else "")
    return UsageError(
        f"You have nothing{about} to hand over: {why}. Nothing was written.",
        hint="`gitmem mem checkpoint` says what is done and what remains; `gitmem task cancel` withdraws an earlier handoff.",
        code="nothing-to-hand-over",
        next=[
            command("gitmem", "mem", "checkpoint", "what is done and what remains"),
            "gitmem task list --mine",
        ],
    )


def _check(store: Store, caller: Caller, to: str, found: Addressees) -> list[str]:
    """Refuse addressees that could not accept; return what the giver should know of the others."""
    if any(each.session_id in caller.ids or each.address in caller.ids for each in found.signaled):
        raise UsageError(
            f"--to {sanitize(to)}: that is you. Nothing was written.",
            hint="Your next session finds your last checkpoint with `gitmem mem recover`.",
            code="own-handoff",
            next=["gitmem roster"],
        )
    for each in found.signaled:
        one = presence.get(store, each.session_id or each.address)
        if one is not None and one.ended is not None and one.agent_identity is None:
            raise UsageError(
                f"--to {sanitize(to)}: {one.session_id} has ended, and nobody reads its messages. Nothing was written.",
                code="ended-session",
                next=["gitmem roster", "gitmem role list"],
            )
    waiting = handoff_list.of_caller(store, caller).given
    if len(waiting) >= handoff_list.LISTED:
        raise UsageError(
            f"{len(waiting)} of your handoffs have no answer; at most {handoff_list.LISTED} are allowed. Nothing was written.",
            hint="Withdraw some of them first.",
            code="too-many-open",
            next=[waiting[-1].next[0], "gitmem task list --mine --open"],
        )
    if caller.workspace is not None:
        next_steps.refuse_other_workspaces(store, caller.workspace, found.signaled)
    nobody = "Nobody holds this role now: no signal was sent. It is offered to whoever takes the role within 24 hours."
    return [*(each.remark for each in found.signaled if each.remark), *([] if found.signaled else [nobody])]


def _options(
    store: Store, to: str, wu: str | None, found: Addressees, bundled: Bundle, *, allow_secret: bool
) -> TaskOptions:
    options: TaskOptions = {
        "purpose": HANDOFF,
        "wu": wu,
        "deadline": store.now() + HANDOFF_MICROS,
        "handoff_tasks": list(bundled.tasks),
        "handoff_takes": list(bundled.tasks.values()),
        "handoff_claims": bundled.claims,
        "handoff_threads": bundled.threads,
        "checkpoint": bundled.checkpoint.id if bundled.checkpoint is not None else None,
        "allow_secret": allow_secret,
    }
    if found.role:
        options["target_role"] = role_id(found.role["lifecycle_role"], found.role.get("specialty_profile"))
        options["requested_role"] = found.role
    else:
        options["to"] = to
    return options


def _next_steps_of(bundled: Bundle) -> str:
    """Return the message of a giver who says nothing: the next steps of the checkpoint, else how much is handed over."""
    node = bundled.checkpoint
    said = str(node.metadata.get("nextSteps") or "").strip() if node is not None else ""
    if said:
        return cut(said, MESSAGE_MAX)
    named = {
        "handoff_tasks": bundled.tasks,
        "handoff_claims": bundled.claims,
        "handoff_threads": bundled.threads,
    }
    if not any(named.values()) and node is not None:
        return f"Take over from checkpoint {node.id}"
    return f"Take over {content.counts(named)}"
