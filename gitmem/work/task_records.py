"""Append lines of tasks to the log: the event with what its writer had seen, and the message of its commit."""

from __future__ import annotations

from .. import records
from ..agents import descriptors, mailbox
from ..commit_message import SUBJECT_MAX, body, cut, sanitize
from ..errors import UsageError
from ..log.lines import CommitMessage
from ..order.content import STOP
from ..order.task import DELEGATION, HANDOFF, TERMINAL, WAITING
from ..outcome import Outcome, Struct, command
from . import EVENTS_MAX, task_rules, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NotRequired, TypedDict

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..log.local_log import Appended
    from ..order.task import FoldedTask, TaskEvent
    from ..records.record_types import ShownTask, SignalFields, SignalRecord, TaskRecord
    from ..signals.reply import ReplyContext, TaskAnswer
    from ..store import Store
    from .task_rules import Refusal

    class TakeFacts(TypedDict):
        """What a take or a launch says about the worker: role, scope, and what it runs in."""

        actual_role: NotRequired[dict[str, Any]]
        actual_ownership_scope: NotRequired[dict[str, Any]]
        model: NotRequired[str | None]
        client: NotRequired[str | None]
        worktree: NotRequired[str | None]
        branch: NotRequired[str | None]
        launch: NotRequired[str | None]

    class EventContent(TakeFacts):
        """The content of an event beside its ids and its sender."""

        take: NotRequired[str | None]
        until: NotRequired[str | None]
        state: NotRequired[str | None]
        retryable: NotRequired[bool]
        outcome: NotRequired[str | None]
        answers_digest: NotRequired[str | None]
        message: NotRequired[str | None]
        payload: NotRequired[dict[str, Any]]
        append: NotRequired[bool]
        last_chunk: NotRequired[bool]
        reason: NotRequired[str | None]
        level: NotRequired[str | None]
        relaunch_of: NotRequired[str | None]


AFTER_MAX = 64  # ids in `after`; heads beyond that are concurrent events of no consequence
_DECIDING = ("seal", "close", "take", "release", "cancel")
_UNLIMITED = (*TERMINAL, "renew", "release")


class TaskChange(Outcome):
    """A recorded event of a task.

    Attributes:
        task_id: The task.
        event_id: The event; that of the earlier one if nothing was written.
        event: What happened.
        state: The state of the task after it.
        reported: Of a report: the state that it says, which may not be that of the task.
        until: The end of the caller's lease in ISO 8601, of a take or renewal.
        role_mismatch: Whether the taker has another role than requested; None if one of them is not stated. So for scope and model.
        asked: Of a take: the role, model, scope and deadline that were asked for, in one line; so `brief`: its path, and its state here.
        is_answer: Of a message: whether somebody has the task, who may go on with it.
        told: The names of those to whom a signal about it was sent.
        recorded: Whether an event was written.
        commit: Its commit; None while it waits for one.
        handoff: What an accepted handoff has; None for another task.
        received: What the task hands over to its taker; None if nothing.
    """

    def __init__(
        self, task_id: str, event_id: str, event: str, state: str, compared: Mapping[str, Any]
    ) -> None:
        self.task_id = task_id
        self.event_id = event_id
        self.event = event
        self.state = state
        self.reported: str | None = None
        self.until: str | None = None
        descriptors.set_fields(self, compared)
        self.asked: str | None = None
        self.brief: str | None = None
        self.told: list[str] = []
        self.is_answer = False
        self.recorded = False
        self.commit: str | None = None
        self.handoff: Any = None  # an outcome of a package above; so `received`
        self.received: Any = None
        self.warnings: list[str] = []
        self.next: list[str] = []


def event_line(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    fields: EventContent,
    *,
    event_id: str | None = None,
    more_seen: Sequence[str] = (),
    allow_secret: bool = False,
) -> tuple[str, tuple[str, bytes]]:
    """Return the id and the line of a new event.

    Args:
        task: The task with all events that its writer has seen.
        event_id: Its id; a new one by default.
        more_seen: Ids of events that are written in the same entry before it.

    Raises:
        RecordError, SecretError: A value is invalid.
    """
    id = event_id or store.new_id("tev")
    content: Any = {
        "event_id": id,
        "task_id": task.record["task_id"],
        "event": event,
        "after": [*more_seen, *after(task, caller)],
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
        **fields,
    }
    return id, store.line("task_event", content, allow_secret=allow_secret)


def too_many(store: Store, caller: Caller, task: FoldedTask, what: str) -> Refusal | None:
    """Return why a caller may write no more of a task: its identity has written many events here, so something runs away.

    Args:
        what: The event, or the state that it reports. Renewals do not count, and they, ends and releases have no limit.
    """
    if what in _UNLIMITED:
        return None
    if task_state.count_own(store.db(), task.record["task_id"], caller.reader, EVENTS_MAX) < EVENTS_MAX:
        return None
    return "too-many-events", f"has {EVENTS_MAX} events of yours, and no more are allowed but its end"


def after(task: FoldedTask, caller: Caller) -> list[str]:
    """Return the events that nobody had seen yet when this caller writes; of a flooded task those that lead and decide first."""
    heads = task.heads()
    if len(heads) <= AFTER_MAX:
        return [each.id for each in heads]
    own = (caller.reader, caller.session_id)

    def rank(each: TaskEvent) -> tuple[bool, bool, bool]:
        return task.leads(each), each.sender == own, each.event in _DECIDING or each.state in TERMINAL

    return [each.id for each in sorted(heads, key=rank, reverse=True)[:AFTER_MAX]]


def seen_of_handed_over(store: Store, handoff: FoldedTask, caller: Caller) -> list[str]:
    """Return the last events of the tasks that a handoff hands over: its acceptance is an event of them, too."""
    found: list[str] = []
    for task_id in task_state.handed_over(handoff.record):
        task = task_state.load_task(store.db(), task_id)
        found += after(task, caller) if task is not None else []
    return found


def record(
    store: Store,
    caller: Caller,
    lines: Sequence[tuple[str, bytes]],
    what: str,
    task: TaskRecord | ShownTask,
    *,
    text: str = "",
    deferred: bool = False,
) -> Appended:
    """Append lines as one entry.

    Args:
        what: The subject of the commit, after the caller's name.
        text: Its body.
        deferred: Whether the entry waits for the next commit.

    Raises:
        StoreError: The store could not be written. Nothing was recorded.
    """
    trailers = [("Task", task["task_id"]), ("Thread", task["thread_id"])]
    work_unit = task.get("wu_id")
    who = [(key, value) for key, value in caller.trailers() if key != "WU"]
    message = CommitMessage(
        caller.author,
        cut(sanitize(f"{caller.name or caller.reader} {what}"), SUBJECT_MAX),
        body(text),
        [
            (key, sanitize(value))
            for key, value in [*trailers, *([("WU", work_unit)] if work_unit else []), *who]
        ],
    )
    every = [*lines, *caller.keepalive(store)]
    caller.touch(store)
    return store.record(every, message, deferred=deferred)


TELLING = (DELEGATION, HANDOFF)  # purposes of tasks whose events tell the other side
TELL = "tell"  # in the payload of a call whose caller does not wait: its result tells the caller, as that of a delegation does
# How the text of an event begins in its signal. Events without a word here tell nobody.
WORDS = {
    "completed": "Done", "failed": "Failed", "canceled": "Canceled", "rejected": "", "input-required": "Question",
    "auth-required": "Question", "message": "", "release": "Given back", "cancel": STOP,
}  # fmt: skip
MESSAGE_MAX, REASON_MAX = 4_000, 200  # characters
_PROPOSAL = "s.thread = ? AND s.intent = 'PROPOSE' AND s.sender = ? AND json_extract(l.body, '$.task_id') = ?"


class TaskSignal(Struct):
    """The signal about an event, to be recorded with it: its line with its stream, and its recipients."""

    line: tuple[str, bytes]
    resolved: Sequence[Resolved]

    @property
    def names(self) -> list[str]:
        """The names of its recipients."""
        return [each.display_name or each.address for each in self.resolved]

    def announce(self, store: Store) -> list[str]:
        """Raise the flags of the recipients, after the line was recorded; return that it is only here, if it is for somebody in another clone."""
        from ..agents import addressing
        from ..signals import send

        record = records.read_kind("signal", self.line[1])
        assert record is not None  # it was checked as it was made
        send.announce(store, record, self.resolved)
        return addressing.not_sent(store, record["signal_id"], self.resolved)


def about(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    content: EventContent,
) -> TaskSignal | None:
    """Return the signal that tells the other side of a delegation or handoff about an event; None if it tells nobody.

    Args:
        event: The event, with the fields in `content`.

    Raises:
        UsageError: A text is invalid (RecordError, SecretError), or another agent's REJECT.
    """
    what = content.get("state") or "" if event == "status" else event
    text = content.get("message") or content.get("reason") or ""
    word = WORDS.get(what)
    is_acceptance = event == "take" and task.record["purpose"] == HANDOFF
    if is_acceptance:
        word = f"I accept {task.record['task_id']}"
    to = [each for each in _other_side(store, task, caller, event) if each not in caller.ids]
    if (
        word is None
        or not to
        or not (task.record["purpose"] in TELLING or (tells_caller(task) and task.caller[0] in to))
    ):
        return None
    from ..agents import addressing, descriptions  # most events of a task tell nobody
    from ..signals import send

    resolved = addressing.from_addresses(store, to)
    said = cut(": ".join(filter(None, (word, text))), MESSAGE_MAX) or what
    context = _context(store, task)
    fields: Any = send.addressed(store, caller, said, resolved, context, None)
    fields |= thread_fields(task.record)
    decision = "REJECT" if what == "rejected" else "AGREE" if is_acceptance else None
    fields["intent"] = decision if decision is not None and context is not None else "INFO"
    fields["interrupt_class"] = "priority"
    if context is not None:
        fields["after"] = context.seen_by(caller)
    send.set_recorder(store, caller, fields, insist=False)
    fields["sender_headline"] = descriptions.headline_of_caller(store, store.db(), caller)
    return TaskSignal(store.line("signal", fields), resolved)


def tells_caller(task: FoldedTask) -> bool:
    """Return whether the caller of a task learns of its result by a signal."""
    return task.record["purpose"] == DELEGATION or (task.record.get("payload") or {}).get(TELL) is True


def thread_fields(task: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that all signals about a task have from it."""
    shared = ("thread_id", "task_id", "wu_id", "initiative_id", "lane", "workspace_id")
    return {
        **{name: task[name] for name in shared if task.get(name)},
        "delegation_id": task["task_id"],
    }


def _other_side(store: Store, task: FoldedTask, caller: Caller, event: str) -> list[str]:
    """Return whom an event of this writer concerns: the task's caller, or whoever has the task; both of a person's cancellation.

    A message about a task that nobody has taken concerns those of whom it was asked.
    """
    asker = [task.caller[0]] if task.caller[0] != caller.reader else []
    holders = [each.sender[0] for each in task.held] if event == "cancel" or not asker else []
    if event == "message" and not (asker or holders) and (asked := _proposal(store, task)) is not None:
        holders = list(asked["recipients"])
    return list(dict.fromkeys([*asker, *holders]))


def away(store: Store, task: FoldedTask) -> list[str]:
    """Return where an open task is, or the last word about it, if those who wait for it are in other clones and not known to have it."""
    if task.is_finished:
        return []
    from ..signals import threads

    db, record = store.db(), task.record
    about_it = "s.thread = ? AND json_extract(l.body, '$.task_id') = ?"
    found = mailbox.signals(db, about_it, (record["thread_id"], record["task_id"]), "l.body DESC", 1)
    last = found[0][0] if found else None
    asked = last["recipients"] if last is not None else filter(None, [record.get("agent")])
    since = last["at"] if last is not None else record["at"]
    said = [
        each for each in task.events.values() if each.event in ("message", "cancel") or each.state in WAITING
    ]
    word = max((each for each in said if each.record["at"] > since), key=lambda each: each.line, default=None)
    if word is not None and task.holder is not None:  # of a call, whose events tell nobody by a signal
        there = task.caller if word.sender == task.holder.sender else task.holder.sender
        return threads.away(store, word.id, [there[0]])
    # Any event comes after the request.
    about = record["task_id"] if last is None or last["intent"] == "PROPOSE" else None
    after = (each for each in task.events.values() if about or each.record["at"] > since)
    known = {name for each in after for name in each.sender}
    id = last["signal_id"] if last is not None else record["task_id"]
    return threads.away(store, id, [each for each in asked if each not in known], about)


def _proposal(store: Store, task: FoldedTask) -> SignalRecord | None:
    """Return the signal by which a task was asked for; None if nobody was told."""
    values = (task.record["thread_id"], task.caller[0], task.record["task_id"])
    return next((each for each, _ in mailbox.signals(store.db(), _PROPOSAL, values, "l.body", 1)), None)


def _context(store: Store, task: FoldedTask) -> ReplyContext | None:
    """Return the context of an answer to the delegation's signal; None if there is none, or if its lines conflict."""
    proposal = _proposal(store, task)
    if proposal is None:
        return None
    from ..signals import reply

    found = reply.find(store, proposal["signal_id"], None)
    try:
        found.refuse_conflicting("REJECT")
    except UsageError:
        return None
    return found


def of_reply(
    store: Store, caller: Caller, answered: SignalRecord, about: SignalRecord, fields: SignalFields
) -> TaskAnswer:
    """Return the events and remarks for a new signal in the thread of a task.

    Args:
        answered: The signal that it answers.
        about: The signal that names the task: the answered one, or the root of the thread.
        fields: Those of the new signal; it gets the ids of a task that it changes.
    """
    from ..signals.reply import TaskAnswer

    found = TaskAnswer()
    task_id = about.get("task_id") or ""
    db = store.db()
    task = task_state.load_task(db, task_id)
    if task is None or task.record["thread_id"] != fields["thread_id"]:
        return found
    if task.caller[0] == caller.reader:
        if (
            task.state in WAITING
            and task.holder is not None
            and answered["sender_identity"] == task.holder.sender[0]
        ):
            _put(store, caller, task, "message", {"message": fields["message"]}, found, fields)
        return found
    by_caller = (
        about["sender_identity"],
        about.get("sender_session") or None,
    ) == task.caller  # anybody may name a task
    is_asked = by_caller and any(each in about["recipients"] for each in caller.ids)
    if not is_asked or fields["intent"] not in ("AGREE", "REJECT"):
        return found
    if fields["intent"] == "REJECT":
        _reject(store, caller, task, found, fields)
        return found
    sender = (caller.reader, caller.session_id)
    is_free = task_rules.own_take(task, sender) is None
    if is_free and task_rules.take(task, sender, caller.ids, store.now()) is None:
        found.warnings = [f"AGREE does not take {task_id}; `gitmem task take` does."]
        found.next = [command("gitmem", "task", "take", task_id)]
    return found


def _reject(store: Store, caller: Caller, task: FoldedTask, found: TaskAnswer, fields: SignalFields) -> None:
    """Add the event with which an addressee refuses a task, unless it has taken or refused it before."""
    task_id, sender = task.record["task_id"], (caller.reader, caller.session_id)
    why = task_rules.refuse(task, sender, caller.ids)
    if task_rules.own_take(task, sender) is not None:
        found.warnings = [f"You have {task_id}, and this REJECT does not give it back."]
        found.next = [command("gitmem", "task", "release", task_id)]
    elif fields.get("via"):
        found.warnings = [f"{task_id} is not rejected: only its addressee does that."]
    elif why is not None:
        found.warnings = [f"{task_id} {why[1]}: this REJECT changes nothing of it."]
    elif task.rejection_by(sender) is None:
        text = fields["message"]
        content: EventContent = {
            "state": "rejected",
            "message": text,
            "reason": cut(sanitize(text.strip().partition("\n")[0]), REASON_MAX),
        }
        _put(store, caller, task, "status", content, found, fields)
        is_only = task.record.get("agent") is not None
        found.warnings = [f"{task_id} is rejected." if is_only else f"{task_id} stays open for others."]


def _put(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    content: EventContent,
    found: TaskAnswer,
    fields: SignalFields,
) -> None:
    fields["task_id"] = fields["delegation_id"] = task.record["task_id"]
    _, line = event_line(store, caller, task, event, content, allow_secret=True)  # the signal is checked
    found.lines.append(line)
