"""Hand over open work: write a handoff, a task that names what its writer has, and the signal that tells about it."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence, vocabulary
from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..memory import checkpoints, context, stored_nodes
from ..order.task import HANDOFF
from ..order.thread import FoldedThread
from ..outcome import command
from ..records.ids import role_id, unit_key
from ..signals import send
from ..signals.threads import ThreadLines
from . import (
    HANDOFF_MICROS,
    HANDOFFS_MAX,
    claims,
    handoffs,
    new_task,
    stored_tasks,
    task_rules,
    task_state,
)
from .handoffs import LeftOut
from .new_task import NewTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionResult
    from ..order.node import VersionedNode
    from ..records.record_types import SignalRecord
    from ..store import Store
    from .handoffs import HandoffContent
    from .new_task import Addressees, TaskOptions

    Line = tuple[str, bytes]


CLAIMS_END = (
    "Your claims end with your session: end it after this is accepted, or others may claim the paths before."
)
MESSAGE_MAX_BYTES = 64 * 1024  # of a signal
MESSAGE_MAX = 2_000  # characters of a checkpoint's next steps that become the message

LOOKED_AT_MAX = 200  # tasks and threads of a caller that are read
UNTAKEN_MAX = 50  # tasks for a caller that are named as not handed over
# `requires_ack` is found by its bytes in the line: inside a message its quotes would be escaped.
_ASKED = "(s.sender = ?1 OR s.sender_session = ?2) AND (s.intent IN ('PROPOSE', 'COUNTER') OR instr(l.body, '\"requires_ack\":true'))"


class NewHandoff(NewTask, kw_only=True):
    """A handoff: what it has, and what it leaves out.

    Attributes:
        recorded: False of one that was only prepared.
        to: A name for people of whom it is for.
        bytes: The size of its line: all is handed over by reference.
        until: The time after which it is returned without an answer, in ISO 8601.
        handoff: What it has.
        left_out: What it leaves out, and why.
        signal_id: The signal that tells about it; None if nobody holds the role.
    """

    to: str
    until: str | None
    handoff: HandoffContent
    left_out: list[LeftOut] = []


def hand_over(
    store: Store,
    caller: Caller,
    to: str | None,
    message: str | None = None,
    *,
    wu: str | None = None,
    dry_run: bool = False,
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
    if to is None or not to.strip():
        raise UsageError(
            "A handoff needs somebody who may accept it: an agent or a role. Nothing was written.",
            hint="Name one with --to NAME, or with --to role:ROLE.",
            code="no-addressee",
            next=["gitmem roster", "gitmem role"],
        )
    send.check_message(message or "")
    found = new_task.addressees(store, caller, to, vocabulary.read(store.repo.worktree), allow_unseen=False)
    warnings = _check(store, caller, to, found)
    bundled = Bundle(store, caller, wu)
    warnings += [CLAIMS_END] if bundled.claims and caller.session_id else []
    if bundled.is_empty:
        raise _nothing(bundled, wu)
    options = _options(store, to, wu, found, bundled)
    options["wu"] = wu or caller.wu_id

    text = message or _next_steps_of(bundled)

    def said(fields: Mapping[str, Any]) -> str:
        show, accept = (command("gitmem", "task", word, fields["task_id"]) for word in ("show", "take"))
        has = handoffs.counts(fields) or "no tasks"
        whole = f"{text}\n\nI hand over {has}: {show}. To accept: {accept}"
        return whole if len(whole.encode()) <= MESSAGE_MAX_BYTES else text

    made = new_task.create(
        store, caller, text, signaled=found.signaled, said=said, dry_run=dry_run, **options
    )  # fmt: skip
    made.warnings += [each for each in warnings if each not in made.warnings]
    made.signaled = made.signaled or [each.display_name or each.address for each in found.signaled]
    given = handoffs.content_of(store, options)
    task_id = made.task["task_id"]
    steps = [command("gitmem", "task", word, task_id) for word in ("show", "cancel")]
    again = command("gitmem", "handoff", "--to", to, *(["--wu", wu] if wu else []))
    return NewHandoff.taken_from(
        made,
        to=f"role:{options.get('target_role')}" if found.role else made.signaled[0],
        until=made.task.get("deadline"),
        handoff=given,
        left_out=[*bundled.left_out, *given.left_out],
        next=[again] if dry_run else steps,
    )


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
                next=["gitmem roster", "gitmem role"],
            )
    if caller.workspace is not None:
        send.refuse_other_workspaces(store, caller.workspace, found.signaled)
    nobody = "Nobody holds this role now: no signal was sent. It is offered to whoever takes the role within 24 hours."
    return [*(each.remark for each in found.signaled if each.remark), *([] if found.signaled else [nobody])]


def _options(store: Store, to: str, wu: str | None, found: Addressees, bundled: Bundle) -> TaskOptions:
    options: TaskOptions = {
        "purpose": HANDOFF,
        "wu": wu,
        "deadline": store.now() + HANDOFF_MICROS,
        "handoff_tasks": list(bundled.tasks),
        "handoff_takes": list(bundled.tasks.values()),
        "handoff_claims": bundled.claims,
        "handoff_threads": bundled.threads,
        "checkpoint": bundled.checkpoint.id if bundled.checkpoint is not None else None,
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
    return f"Take over {handoffs.counts(named)}"


class Bundle:
    """What a handoff of a caller will name, by reference, and what it leaves out.

    Attributes:
        checkpoint: The last checkpoint.
        tasks: The caller's take of each task.

    Args:
        wu: Only what belongs to this work unit; tasks, claims and threads without one are left out then.
    """

    def __init__(self, store: Store, caller: Caller, wu: str | None) -> None:
        self.checkpoint: VersionedNode | None = None
        self.tasks: dict[str, str] = {}
        self.claims: list[str] = []
        self.threads: list[str] = []
        self.left_out: list[LeftOut] = []
        self._store, self._caller, self._wu = store, caller, wu
        self._own = (caller.reader, caller.session_id)
        self._offered = _offered(store, caller)
        self._add_checkpoint()
        self._add_tasks()
        self._add_claims()
        self._add_threads()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hand over."""
        return not (self.checkpoint or self.tasks or self.claims or self.threads)

    def _is_left_out(self, id: str, unit: str | None, wu: str | None, count: int) -> bool:
        """Return whether something is not handed over, and note why."""
        why = None
        if wu is not None and unit_key(unit) != unit_key(wu):
            why = f"belongs to {sanitize(unit)}" if unit else f"does not belong to {sanitize(wu)}"
        elif id in self._offered:
            why = f"is offered already by {self._offered[id]}"
        elif count >= HANDOFFS_MAX:
            why = f"a handoff has at most {HANDOFFS_MAX} of each kind"
        if why is not None:
            self.left_out.append(LeftOut(id, why))
        return why is not None

    def _add_checkpoint(self) -> None:
        session, wu, caller = self._caller.session_id, self._wu, self._caller
        identity = None if session else caller.reader
        node = stored_nodes.last_checkpoint(self._store, session, None, wu, identity)
        if node is None and session is not None:
            node = stored_nodes.earlier_checkpoint(self._store, session, caller.wu_id, wu)
        if node is not None and node.sensitive:
            self.left_out.append(LeftOut(node.id, "is sensitive"))
        elif node is not None and not self._is_left_out(node.id, None, None, 0):
            self.checkpoint = node

    def _add_tasks(self) -> None:
        db = self._store.db()
        for task_id, unit in stored_tasks.held_by(db, self._caller.reader, LOOKED_AT_MAX):
            task = task_state.load_task(db, task_id)
            if task is None or task.is_finished:
                continue
            mine = task_rules.own_take(task, self._own)
            if mine is None:
                self.left_out.append(LeftOut(task_id, "was taken by another session of yours"))
            elif not self._is_left_out(task_id, unit, self._wu, len(self.tasks)):
                self.tasks[task_id] = mine.id
        for task_id in stored_tasks.offered_to(db, self._own, UNTAKEN_MAX):
            self.left_out.append(LeftOut(task_id, "is for you, but you have not taken it"))

    def _add_claims(self) -> None:
        for each in claims.standing(self._store):
            record = each.claim.record
            wu = None if record.get("task_id") in self.tasks else self._wu
            if each.claim.owner != self._own or each.is_over:
                continue
            if not self._is_left_out(each.id, record.get("wu_id"), wu, len(self.claims)):
                self.claims.append(each.id)

    def _add_threads(self) -> None:
        """Add the threads that wait for the caller, and those in which nobody has answered the caller."""
        db = self._store.db()
        both: dict[str, SignalRecord] = {}
        for asked in context.find_open_threads(self._store, self._caller)[:LOOKED_AT_MAX]:
            record = records.read_kind("signal", mailbox.line_of(db, asked.signal_id))
            if record is not None:
                both[asked.thread_id] = record
        both.update((each.get("thread_id") or "", each) for each in _unanswered(self._store, self._caller))
        for thread_id, record in both.items():
            if record.get("task_id"):
                continue  # the task says it
            if not self._is_left_out(thread_id, record.get("wu_id"), self._wu, len(self.threads)):
                self.threads.append(thread_id)


def _offered(store: Store, caller: Caller) -> dict[str, str]:
    """Return the handoff that waits for an answer of everything that is offered already."""
    found: dict[str, str] = {}
    for row in handoffs.waiting_of(store, caller):
        record = task_rules.record_of(store.db(), row.task_id)
        if record is not None:
            for ids in map(record.get, ("handoff_tasks", "handoff_claims", "handoff_threads")):
                found.update(dict.fromkeys(ids or (), row.task_id))  # type: ignore[call-overload]
            found[record.get("checkpoint") or ""] = row.task_id
    return found


def _unanswered(store: Store, caller: Caller) -> Iterator[SignalRecord]:
    """Yield the last question of the caller in each thread in which somebody else still has to answer."""
    db = store.db()
    lines, seen = ThreadLines(db), set()
    own = (caller.reader, caller.session_id)
    for record, _ in mailbox.signals(db, _ASKED, own, "l.body DESC", LOOKED_AT_MAX):
        thread_id = record.get("thread_id") or record["signal_id"]
        if thread_id in seen or not record["recipients"]:
            continue
        seen.add(thread_id)
        thread = FoldedThread(thread_id, lines.load(thread_id) or {})
        others = [each for each in (*record["recipients"], *thread.parties) if each not in caller.ids]
        asked = thread.asked if thread.asks and thread.agreed_on is None else ()
        pending = [each for each in asked if thread.stands(each)[0] == "pending"]
        if any(each in pending or thread.owes([each], record["signal_id"]) for each in others):
            yield record


def end_session(
    store: Store,
    caller: Caller,
    *,
    summary: str | None = None,
    done: bool = False,
    reason: str | None = None,
) -> SessionResult:
    """End the caller's session as `checkpoints.end_session` does, and say what it leaves without a successor.

    Raises:
        GateError, UsageError, StoreError: See there.
    """
    left = _left(store, caller)
    ended = checkpoints.end_session(store, caller, summary=summary, done=done, reason=reason)
    ended.add_remark(left)
    return ended


def _left(store: Store, caller: Caller) -> str | None:
    """Return a sentence about the session's tasks, its claims, and what it has read and not answered; None without any."""
    db, own = store.db(), (caller.reader, caller.session_id)
    tasks = stored_tasks.count_held(db, own)
    claimed = sum(each.claim.owner == own for each in claims.standing(store))
    unread = {id for _, id in db.execute(*mailbox.directed_to(db, *own, caller.workspace, unread=True))}
    read = [each for each in context.find_open_threads(store, caller) if each.signal_id not in unread]
    asked = sum(not each.record.get("task_id") for each in read)  # else the task says it
    left = (
        ("Left open", tasks, "task"),
        ("Unanswered", asked, "signal"),
        ("Ended with it", claimed, "claim"),
    )
    parts = [f"{what}: {count} {word}{'' if count == 1 else 's'}." for what, count, word in left if count]
    if not parts:
        return None
    waiting = handoffs.waiting_of(store, caller)
    advice = "Before a session ends, `gitmem handoff --to NAME` gives them to another agent."
    if waiting:
        also = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        until = ": until then others may claim its paths." if any(one.claims for one in waiting) else " yet."
        advice = f"{waiting[0].task_id}{also} is not accepted{until}"
    return f"{' '.join(parts)} {advice}"
