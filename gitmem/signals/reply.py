"""The context of an answer: the answered signal, its thread, the recipients, and what the writer had seen.

A signal that begins a thread loads neither this module nor those that fold threads.
"""

from __future__ import annotations

from functools import cached_property

from ..agents import addressing, mailbox
from ..errors import ELSEWHERE, UsageError
from ..index import resolve_id
from ..log.lines import format_at
from ..order import thread as thread_order
from ..order.content import ASKS, DECISIONS
from ..order.thread import FoldedThread
from ..outcome import Struct, command
from ..records.ids import thread_named, unit_key
from ..text.addresses import is_words, suffix_of, words_of, writer_of
from ..text.sanitize import sanitize, sanitize_for_model
from . import message_frame, threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..order.thread import ThreadSignal
    from ..records.record_types import SignalFields, SignalRecord
    from ..store import Store

TURNS_MAX = 12
WINDOW_MICROS = 10 * 60 * 1_000_000
ENDS = ("AGREE", "REJECT")


class TaskAnswer(Struct):
    """What an answer in the thread of a task changes of the task, see `work.task_records`.

    Attributes:
        lines: Lines of events, to be recorded with the signal.
        warnings: Sentences for its writer.
        next: What its writer may do next.
    """

    lines: list[tuple[str, bytes]] = []
    warnings: list[str] = []
    next: list[str] = []


class ReplyContext:
    """The thread of a new signal.

    Attributes:
        thread_id: Its id.
        signals: Its signals by their ids; empty for a new thread.
        parent: The answered signal: the named one, else the thread's root; None for a new thread.
        task: What the answer changes of the task that the thread is about.
    """

    def __init__(
        self, db: sqlite3.Connection, thread_id: str, thread: str | None, answered: ThreadSignal | None
    ) -> None:
        self._db = db
        self._thread = thread
        self._is_reply = answered is not None
        self.thread_id = thread_id
        self.signals = threads.load(db, thread_id)
        self.parent = answered or (thread_order.root(thread_id, self.signals) if self.signals else None)
        self.task = TaskAnswer()

    def members(
        self, store: Store, caller: Caller, intent: str, named: Sequence[Resolved] = ()
    ) -> list[Resolved]:
        """Return the recipients of a signal in this thread: by default whom it answers.

        A proposal of a party goes to all parties: each owes it an answer.

        Args:
            named: The recipients that the caller named; those of a proposal are added to the parties.

        Raises:
            UsageError: The log has no such thread.
        """
        parties = self.fold.parties if intent in ASKS else {}
        if named and not (parties and self.is_party(caller)):
            return list(named)
        if self.parent is None:
            raise UsageError(
                f"Unknown thread: {sanitize(self._thread or '')}; it has no members to send to. Nothing was written.",
                hint=f"{ELSEWHERE} With --to, a new thread of that name begins.",
                code="unknown-id",
                next=["gitmem sync"],
            )
        sent = self.parent.record
        members = [sent["sender_identity"]]
        if named:
            members = list(parties)
        elif parties:
            members = [*parties, sent["sender_identity"], *sent["recipients"]]
        elif not self._is_reply:
            members += sent["recipients"]
        elif any(self.parent.is_by(each) for each in caller.ids):  # a follow-up goes to the same recipients
            members = list(sent["recipients"])
        taken = (*caller.ids, *(each.address for each in named))
        members = list(dict.fromkeys(members))
        others = [each for each in members if each not in taken]
        # A caller alone in the thread remains the recipient: a record without recipients is a broadcast.
        return [*named, *addressing.from_addresses(store, others or ([] if named else members))]

    def refuse_broadcast(self, caller: Caller, intent: str) -> None:
        """Raise UsageError for a broadcast that proposes something to the parties of the thread."""
        if intent in ASKS and self.is_party(caller):
            raise UsageError(
                f"A {intent} in a thread goes to its parties: {', '.join(map(sanitize, self.fold.parties))}. "
                "Nothing was written.",
                hint="Leave out --broadcast; --to adds readers.",
                code="usage",
            )

    def is_party(self, caller: Caller) -> bool:
        """Return whether the caller may propose and decide in the thread."""
        return any(each in self.fold.parties for each in caller.ids)

    def next_instead(self, record: SignalRecord, line: bytes, caller: Caller) -> list[str] | None:
        """Return the commands that answer what is in force, after a decision on a proposal that is not; None after any other."""
        answered = self.fold.answered.get(record.get("reply_to") or "", "")
        if record["intent"] not in DECISIONS or record["intent"] in ASKS or not self.fold.ended(answered):
            return None
        fold = FoldedThread(
            self.thread_id, {**self.signals, record["signal_id"]: thread_order.ThreadSignal(record, [line])}
        )
        if not fold.ended(answered):  # it is agreed on now
            return None
        owed = [each.record for id, each in fold.in_force.items() if fold.owes(caller.ids, id)]
        return [each for one in owed for each in message_frame.decide(one)]

    @cached_property
    def fold(self) -> FoldedThread:
        """The thread, folded."""
        return FoldedThread(self.thread_id, self.signals)

    def refuse_conflicting(self, intent: str) -> None:
        """Raise UsageError for a decision on an id whose lines conflict, or on one of another thread."""
        if self.parent is None or intent not in DECISIONS:
            return
        if self.parent.id not in self.signals and (self.signals or intent != "COUNTER"):
            raise UsageError(
                f"{self.parent.id} is not in thread {sanitize(self.thread_id)}, so an {intent} there would answer nothing. "
                "Nothing was written.",
                hint="Leave out --thread to answer it in its own thread.",
                code="other-thread",
                next=[command("gitmem", "thread", self.parent.id)],
            )
        if not thread_order.is_conflicting(self.parent):
            return
        raise UsageError(
            f"{self.parent.id} is ambiguous: the log has more than one signal with this id, so an {intent} has no clear target. "
            "Nothing was written.",
            hint="Compare the records and ask the sender to send the right one again as a new signal.",
            code="conflicting-lines",
            next=message_frame.compare(self.parent.id),
        )

    def remarks(self, db: sqlite3.Connection, caller: Caller, record: SignalRecord, line: bytes) -> list[str]:
        """Return sentences about why a signal that was recorded in the thread does not count."""
        counts = not_counted(record["intent"], record.get("reply_to"), self.fold, caller.ids)
        return [*counts, *threads.void_remarks(db, self.thread_id, self.signals, record, line)]

    def seen_by(self, caller: Caller) -> list[str]:
        """Return the ids for `after`: the signals that the writer had seen."""
        if not self.signals:
            return []
        read = {
            id
            for id in self.signals
            if any(mailbox.delivery_state(self._db, id, each) is not None for each in caller.ids)
        }
        return thread_order.ids_for_after(
            caller.ids, self.fold, read, self.parent.id if self.parent is not None else None
        )

    def answer_task(self, store: Store, caller: Caller, fields: SignalFields) -> None:
        """Find out what the answer changes of the task that the answered signal, or else the root, names."""
        if self.parent is None:
            return
        root = thread_order.root(self.thread_id, self.signals) if self.signals else self.parent
        about = next((each.record for each in (self.parent, root) if each.record.get("task_id")), None)
        if about is not None:
            self.task = store.domain.answer_task(store, caller, self.parent.record, about, fields)

    def limit_loop(self, store: Store, caller: Caller, fields: SignalFields) -> str | None:
        """Make a signal of a long loop advisory; return a warning for its writer, else None.

        An AGREE or REJECT of a signal is never affected: it ends the loop.

        Args:
            fields: The signal to be written; modified.
        """
        if not self.signals or caller.is_person or (fields.get("intent") in ENDS and fields.get("reply_to")):
            return None
        turns, other = _count_turns(store.now(), caller, self.signals, fields.get("wu_id"))
        if turns <= TURNS_MAX:
            return None
        fields["interrupt_class"] = "advisory"
        return (
            f"This is turn {turns} between you and {other} in this thread within {WINDOW_MICROS // 60_000_000} minutes, "
            "without a message from a person or a new work unit, so it is sent as advisory and interrupts nobody. "
            "End it with --agree or --reject, or ask a person."
        )


def not_counted(
    intent: str, answers: str | None, found: FoldedThread, readers: Collection[str | None]
) -> list[str]:
    """Return why a proposal or a decision in a thread does not count, or what it counts for.

    Args:
        answers: The id of the answered signal.
        found: The thread before it.
        readers: The names under which its sender may have been addressed.
    """
    if answers is None or answers not in found.signals or intent == "INFO":
        return []
    if not found.parties:
        return [f"The root of this thread asks nobody, so this {intent} does not count."]
    if not any(reader in found.parties for reader in readers):
        said = f"You are no party of this thread, so this {intent} does not count; its parties are {', '.join(found.parties)}."
        words = {words_of(reader) for reader in readers if reader and is_words(words_of(reader))}
        same = next((each for each in found.parties if writer_of(each) and words_of(each) in words), None)
        if same is None:
            return [said]
        accept = command("gitmem", "trust", writer_of(same), "--accept")
        return [
            f"{said} Under another key your name is one: if that is you, {accept} goes on as it, once it lets you."
        ]
    answered = found.answered.get(answers)
    if answered is None and intent not in ASKS:
        return [
            f"{answers} leads to no proposal of a party of this thread, so this {intent} decides nothing."
        ]
    if intent in ASKS or answered is None:
        return []
    if why := found.end_text(answered):
        author = found.proposals[answered].record["sender_identity"]
        is_withdrawn = found.ended(answered) == "withdrawn"
        if is_withdrawn and intent == "AGREE" and author in readers:
            return [f"You had withdrawn {answered}; this AGREE takes that back."]
        by = f" by {author}" if is_withdrawn else ""
        return [f"{answered} was {why.replace(';', by + ';', 1)}; this {intent} counts for {answered} alone."]
    positions = [at for each in readers if each and (at := found.position(each))]
    if intent == "AGREE" and any(at.agrees_to(answered) for at in positions):
        return [f"You agree to {answered} already, so this AGREE changes nothing."]
    return []


def look_ahead(
    store: Store, caller: Caller, signal_id: str, intent: str
) -> tuple[Sequence[Resolved], Sequence[str]]:
    """Return whom an answer to a signal would go to, and why its decision would not count. Record nothing.

    Raises:
        UsageError: It cannot be answered so.
    """
    context = find(store, signal_id, None)
    assert context.parent is not None
    context.refuse_conflicting(intent)
    return (
        context.members(store, caller, intent),
        not_counted(intent, context.parent.id, context.fold, caller.ids),
    )


def find(store: Store, reply_to: str | None, thread: str | None) -> ReplyContext:
    """Return the context of an answer.

    Args:
        reply_to: The id of a signal, or a prefix of it.
        thread: The id of a thread or of one of its signals, or the name of a thread; an unknown name begins one of this writer.

    Raises:
        UsageError: `reply_to` does not name a signal.
    """
    db = store.db()
    answered = _answered(db, reply_to) if reply_to else None
    found = ReplyContext(db, _thread_id(store, thread, answered), thread, answered)
    begins = suffix_of(found.thread_id) if thread and answered is None else ""
    if begins and all(each.record.get("writer") != begins for each in found.signals.values()):
        # What others wrote under a name before who gave it is no thread to join: this name begins one of this writer.
        own = thread_named(thread or "", store.writers.writer())
        found = ReplyContext(db, own, thread, None)
        if suffix_of(own) == begins:
            found.signals, found.parent = {}, None
    return found


def _answered(db: sqlite3.Connection, text: str) -> ThreadSignal:
    id = resolve_id.resolve(db, text, writing=True)
    thread = threads.load(db, resolve_id.thread_of(db, id))
    if id not in thread:
        raise UsageError(
            f"{id} is a thread id; --reply-to needs the id of a signal. Nothing was written.",
            hint="`gitmem thread` lists its signals.",
            code="not-a-signal",
            next=[command("gitmem", "thread", id)],
        )
    return thread[id]


def _thread_id(store: Store, thread: str | None, answered: ThreadSignal | None) -> str:
    if thread:
        db, own = store.db(), thread_named(thread, store.writers.writer())
        if resolve_id.beginning(db, "signal", "thread", own) == {own}:
            return own
        try:
            return resolve_id.thread_of(db, resolve_id.resolve(db, thread, writing=True))
        except UsageError as error:
            if error.code != "unknown-id":
                raise
            return own
    assert answered is not None
    return answered.record.get("thread_id") or answered.id


def _count_turns(
    now: int, caller: Caller, thread: Mapping[str, ThreadSignal], wu: str | None
) -> tuple[int, str]:
    """Return the number of turns of two agents, including the current one, and the name of the other agent.

    Consecutive signals of one agent are one turn. A signal of a third agent or of a person, another work unit, or an
    age of ten minutes ends the run.
    """
    us, oldest = caller.reader, format_at(max(0, now - WINDOW_MICROS))
    turns, last, other, name = 1, us, "", ""
    for each in sorted(thread.values(), key=lambda one: one.line, reverse=True):
        sender = each.record["sender_identity"]
        if any(each.is_by(id) for id in caller.ids):
            sender = us
        if each.record["at"] < oldest or unit_key(each.record.get("wu_id")) != unit_key(wu):
            break
        if sender.startswith("human:") or (sender != us and other and sender != other):
            break
        if sender != us:
            other, name = sender, name or each.record.get("sender_name") or sender
        turns += sender != last
        last = sender
    return (turns, sanitize_for_model(name)) if other else (1, "")
