"""The signals by which the two sides of a delegation or handoff learn what the other one did: in its thread, in one entry with the event."""

from __future__ import annotations

from .. import records
from ..agents import addressing, descriptions
from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..order.task import DELEGATION, HANDOFF, WAITING
from ..signals import reply, send, threads
from ..signals.message_frame import STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import SignalRecord
    from ..signals.reply import ReplyContext
    from ..store import Store
    from .append import EventContent

TELLING = (DELEGATION, HANDOFF)  # purposes of tasks whose events tell the other side
TELL = "tell"  # in the payload of a call whose caller does not wait: its result tells the caller, as that of a delegation does
# How the text of an event begins in its signal. Events without a word here tell nobody.
WORDS = {
    "completed": "Done", "failed": "Failed", "canceled": "Canceled", "rejected": "", "input-required": "Question",
    "auth-required": "Question", "message": "", "release": "Given back", "cancel": STOP,
}  # fmt: skip
MESSAGE_MAX, REASON_MAX = 4_000, 200  # characters
_PROPOSAL = (
    "SELECT s.signal_id FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? AND s.intent = 'PROPOSE' AND s.sender = ?"
    " AND json_extract(l.body, '$.task_id') = ? ORDER BY l.body LIMIT 1"
)
_LAST = (
    "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? AND json_extract(l.body, '$.task_id') = ?"
    " ORDER BY l.body DESC LIMIT 1"
)


class TaskSignal:
    """The signal about an event, to be recorded with it.

    Attributes:
        lines: The line of the signal with its stream.
        resolved: Its recipients.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self.resolved: Sequence[Resolved] = ()

    @property
    def names(self) -> list[str]:
        """The names of its recipients; empty if it tells nobody."""
        return [each.display_name or each.address for each in self.resolved] if self.lines else []

    def not_sent(self, store: Store) -> list[str]:
        """Return that it is only in this clone, if it is for somebody in another one."""
        record = records.read_kind("signal", self.lines[0][1]) if self.lines else None
        return addressing.not_sent(store, record["signal_id"], self.resolved) if record is not None else []

    def announce(self, store: Store) -> None:
        """Raise the flags of the recipients, after the lines were recorded."""
        for _, line in self.lines:
            record = records.read_kind("signal", line)
            assert record is not None  # it was checked as it was made
            send.announce(store, record, self.resolved)


def about(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    content: EventContent,
    *,
    allow_secret: bool = False,
) -> TaskSignal:
    """Return the signal that tells the other side of a delegation or handoff about an event; without lines if it tells nobody.

    Args:
        event: The event, with the fields in `content`.

    Raises:
        UsageError: A text is invalid (RecordError, SecretError), or another agent's REJECT.
    """
    found = TaskSignal()
    what = content.get("state") or "" if event == "status" else event
    text = content.get("message") or content.get("reason") or ""
    word = WORDS.get(what)
    is_acceptance = event == "take" and task.record["purpose"] == HANDOFF
    if is_acceptance:
        word = f"I accept {task.record['task_id']}"
    to = [each for each in _other_side(task, caller, event) if each not in caller.ids]
    if (
        word is None
        or not to
        or not (task.record["purpose"] in TELLING or (tells_caller(task) and task.caller[0] in to))
    ):
        return found
    found.resolved = addressing.from_addresses(store, to)
    said = _said(word, text) or what
    context = _context(store.db(), task)
    fields: Any = send.addressed(store, caller, said, found.resolved, context, None)
    fields |= thread_fields(task.record)
    decision = "REJECT" if what == "rejected" else "AGREE" if is_acceptance else None
    fields["intent"] = decision if decision is not None and context is not None else "INFO"
    fields["interrupt_class"] = "priority"
    if context is not None:
        fields["after"] = context.seen_by(caller)
    send.set_recorder(store, caller, fields, insist=False)
    fields["sender_headline"] = descriptions.headline_of_caller(store, store.db(), caller)
    found.lines.append(store.line("signal", fields, allow_secret=allow_secret))
    return found


def tells_caller(task: FoldedTask) -> bool:
    """Return whether the caller of a task learns of its result by a signal."""
    return task.record["purpose"] == DELEGATION or (task.record.get("payload") or {}).get(TELL) is True


def _said(word: str, text: str) -> str:
    return cut(": ".join(filter(None, (word, text))), MESSAGE_MAX)


def thread_fields(task: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that all signals about a task have from it."""
    shared = ("thread_id", "task_id", "wu_id", "initiative_id", "lane", "workspace_id")
    return {
        **{name: task[name] for name in shared if task.get(name)},
        "delegation_id": task["task_id"],
    }


def is_by_caller(signal: SignalRecord, task: FoldedTask) -> bool:
    """Return whether the session that wrote a task sent a signal: anybody may name a task in one."""
    return (signal["sender_identity"], signal.get("sender_session") or None) == task.caller


def first_line(text: str) -> str:
    """Return the first line of a text, as a reason."""
    return cut(sanitize(text.strip().partition("\n")[0]), REASON_MAX)


def _other_side(task: FoldedTask, caller: Caller, event: str) -> list[str]:
    """Return whom an event of this writer concerns: the task's caller, or whoever has the task; both of a person's cancellation."""
    asker = [task.caller[0]] if task.caller[0] != caller.reader else []
    holders = [each.sender[0] for each in task.held] if event == "cancel" or not asker else []
    return list(dict.fromkeys([*asker, *holders]))


def away(store: Store, task: FoldedTask) -> list[str]:
    """Return where an open task is, or the last word about it, if those who wait for it are in other clones and not known to have it."""
    if task.is_finished:
        return []
    db, record = store.db(), task.record
    row = db.execute(_LAST, (record["thread_id"], record["task_id"])).fetchone()
    last = records.read_kind("signal", row[0].encode()) if row is not None else None
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


def _context(db: sqlite3.Connection, task: FoldedTask) -> ReplyContext | None:
    """Return the context of an answer to the delegation's signal; None if there is none, or if its lines conflict."""
    record = task.record
    row = db.execute(_PROPOSAL, (record["thread_id"], task.caller[0], record["task_id"])).fetchone()
    if row is None:
        return None
    found = reply.find(db, str(row[0]), None)
    try:
        found.refuse_conflicting("REJECT")
    except UsageError:
        return None
    return found
