"""Display threads, the decision of each recipient, and convergence."""

from __future__ import annotations

from .. import moved_back, records
from ..agents import addressing, mailbox, presence
from ..agents.caller import other_workspaces
from ..errors import UsageError, check_limit
from ..index.resolve_id import resolve, thread_of
from ..log.lines import writer_of
from ..order.thread import ANSWERS, FoldedThread
from ..outcome import Outcome, command
from ..sync import whereabouts
from ..text.sanitize import sanitize, title
from . import conflicts, message_frame, next_steps
from .task_records import TaskRecords
from .thread_lines import ThreadLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..agents.caller import Caller
    from ..agents.presence import ShownNames
    from ..order.thread import ThreadSignal
    from ..records.record_types import ShownSignal, SignalRecord
    from ..store import Store


class Proposal(Outcome):
    """A proposal of a thread: its id, the beginning of its text, and who wrote it: a reader identity and a name."""

    def __init__(self, signal: ThreadSignal, names: ShownNames | None) -> None:
        self.signal_id = signal.id
        self.text = title(signal.record["message"])
        self.by = signal.record["sender_identity"]
        self.by_name = (names.get(self.by) if names else None) or signal.record.get("sender_name")


class Party(Outcome):
    """Where a party of a thread stands that is asked for a decision.

    Attributes:
        decision: agree, reject, counter or pending, on the proposal in force.
        signal_id: Its latest decision; `decided_at` is its time.
        proposal: The proposal that this decision answers.
        delivery_state: What became of the root at this party.
    """

    def __init__(self, identity: str, found: FoldedThread, names: ShownNames | None) -> None:
        self.identity = identity
        self.display_name = names.get(identity) if names is not None else None
        self.decision, at = found.stands(identity)
        self.signal_id = at.signal.id if at is not None else None
        self.decided_at = at.signal.record.get("at") if at is not None else None
        self.proposal = at.proposal if at is not None else None
        self.delivery_state: str | None = None


class Standing(Outcome):
    """What a thread says now.

    Attributes:
        recipients: The parties that are asked: the root's recipients, and its sender if another proposal is in force.
        asks: Whether the thread asks for a decision.
        agreed_on: The proposal that every party has agreed to; None if there is none.
        in_force: That proposal, else the latest one; several that were written without knowledge of each other conflict.
        settled: What became of the tasks of the proposals in force, such as "taken by …"; "" if any of them still needs an answer.
        ambiguous: The ids of signals with several contents.
    """

    def __init__(self, thread_id: str, found: FoldedThread, names: ShownNames | None) -> None:
        self.thread_id = thread_id
        self.root = found.root.id if found.root is not None else ""
        self.recipients = [Party(each, found, names) for each in found.asked]
        self.asks = found.asks
        self.agreed_on = Proposal(found.agreed_on, names) if found.agreed_on is not None else None
        self.in_force = [Proposal(each, names) for each in found.in_force.values()]
        self.settled = found.settled
        self.ambiguous = found.ambiguous


class Thread(Standing):
    """A thread: its signals (but for `more` after the first), each after those it answers, and what it says now."""

    __slots__ = (
        "thread_id", "root", "signals", "more", "recipients", "asks", "agreed_on", "in_force", "settled",
        "ambiguous", "warnings", "next",
    )  # fmt: skip

    def __init__(self, thread_id: str, found: FoldedThread, names: ShownNames) -> None:
        super().__init__(thread_id, found, names)
        self.signals: list[ShownSignal] = []
        self.more = 0
        self.warnings: list[str] = []
        self.next: list[str] = []


class Converged(Standing):
    """Whether the parties of a thread agreed; identities are reader identities.

    Attributes:
        proposal: The proposal that the question is about; None for any of the thread.
        replaced, withdrawn: Whether it is no longer in force, and why.
        agreed: Those who agree to what is in force, also `countered`, who wrote it.
        verified: Whether each line of a proposal or an answer of a party names its writer: then that writer has attested it, or this
            user wrote it here and it waits for its commit.
        writers: The writers of these lines, by the parties that wrote any.
    """

    __slots__ = (
        "thread_id", "root", "proposal", "converged", "agreed_on", "in_force", "settled", "replaced", "withdrawn", "recipients", "agreed",
        "rejected", "countered", "pending", "ambiguous", "verified", "writers", "commit", "warnings", "next",
    )  # fmt: skip

    def __init__(
        self, thread_id: str, found: FoldedThread, names: ShownNames, proposal: ThreadSignal | None
    ) -> None:
        super().__init__(thread_id, found, names)
        self.proposal = Proposal(proposal, names) if proposal is not None else None
        ended = found.ended(proposal.id) if proposal is not None else ""
        self.replaced, self.withdrawn = ended == "replaced", ended == "withdrawn"
        self.converged = found.agreed_on is not None and proposal in (None, found.agreed_on)
        self.agreed = self._those("agree", "counter")
        self.rejected = self._those("reject")
        self.countered = self._those("counter")
        self.pending = self._those("pending")
        self.verified, self.writers = signers(found)
        self.commit: str | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def is_settled(self) -> bool:
        """Whether waiting changes nothing: it has converged, the proposal is not in force, or nobody is asked any more."""
        return self.converged or self.replaced or self.withdrawn or bool(self.settled) or not self.recipients

    def _those(self, *decisions: str) -> Sequence[str]:
        return [each.identity for each in self.recipients if each.decision in decisions]


def signers(found: FoldedThread) -> tuple[bool, dict[str, set[str]]]:
    """Return whether each line of a proposal or an answer of a party names its writer, and these writers by party."""
    is_verified = True
    writers: dict[str, set[str]] = {}
    for each in found.signals.values():
        if each.id in found.proposals or (each.intent in ANSWERS and found.is_by_party(each)):
            named = {*map(writer_of, each.lines)}
            is_verified = is_verified and "" not in named
            for party in filter(each.is_by, found.parties):
                writers.setdefault(party, set()).update(named - {""})
    return is_verified, writers


LIMIT = 50  # signals of a page for a person
CONFLICTING_MAX = 2  # proposals that `next` has commands for
LOOKED_UP_MAX = 100  # recipients to look up for the next command
STATES = {"AGREE": "acked", "REJECT": "rejected"}
UNMATCHED_MAX = 20  # sentences of an answer


def load(db: sqlite3.Connection, thread_id: str) -> dict[str, ThreadSignal]:
    """Return all signals of a thread with the lines of each id."""
    return ThreadLines(db).load(thread_id) or {}


def _warnings(db: sqlite3.Connection, found: FoldedThread) -> list[str]:
    """Return sentences about what does not count."""
    left_out = (
        [f"This thread has too many signals: {found.left_out:,} of those who wrote most are not read."]
        if found.left_out
        else []
    )
    return [*left_out, *unmatched(db, found.signals)]


def unmatched(db: sqlite3.Connection, thread: Mapping[str, ThreadSignal]) -> list[str]:
    """Return sentences about answers and receipts for lines that are not in this log."""
    found = [
        f"{signal.id} answers a version of {signal.record.get('reply_to')} that is missing from this log: it has no effect."
        for signal in thread.values()
        if not signal.counts
    ]
    from ..agents import signal_rows

    for id in thread:
        known = signal_rows.readers_of_missing(db, id, 4)
        if known:
            readers = ", ".join(known[:3]) + (" and others" if known[3:] else "")
            found.append(
                f"A receipt of {readers} is for a version of {id} that is missing from this log: it has no effect."
            )
    return sorted(found)[:UNMATCHED_MAX]


def delivery_state(
    reader: str, signal: ThreadSignal, found: FoldedThread, recorded: str | None
) -> str | None:
    """Return a reader's receipt state for a signal; a decision of a party or a recipient overrides it."""
    said = found.answer(reader, signal.id) if reader in found.parties or signal.is_for(reader) else None
    if said is None or said is signal:
        return recorded
    return STATES.get(said.intent, "delivered")


def _open(store: Store, id: str) -> tuple[sqlite3.Connection, str, FoldedThread, ThreadSignal]:
    db = store.db()
    thread_id = thread_of(db, resolve(db, id))
    lines = ThreadLines(db)
    found = FoldedThread(thread_id, lines.load(thread_id) or {}, lines.left_out.get(thread_id, 0))
    if found.root is None:
        raise UsageError(
            f"No readable signals in thread {thread_id}.", code="unknown-id", next=["gitmem doctor"]
        )
    return db, thread_id, found, found.root


def thread(store: Store, id: str, caller: Caller | None = None, *, limit: int | None = None) -> Thread:
    """Return the thread with this id or with this signal. Mark nothing as read.

    Args:
        caller: The caller, if known: commands that answer a question to it come first in `next`.
        limit: The maximum number of signals to return, the first and the last ones; None for all.

    Raises:
        UsageError: The log has no such id, or the limit is below 1.
    """
    check_limit(limit)
    db, thread_id, found, root = _open(store, id)
    outcome = Thread(thread_id, found, presence.names_by_reader(db))
    _put_delivery(db, outcome, found, root)
    outcome.warnings = _warnings(db, found)
    theirs = other_workspaces(caller, (each.record.get("workspace_id") for each in found.signals.values()))
    outcome.warnings += [theirs] if theirs else []
    outcome.warnings += _away(store, outcome)
    owed = _owed(found, caller)
    names = presence.names_by_session(db)
    tasks = TaskRecords(db)
    every = found.order.shown()
    outcome.more = 0 if limit is None else max(0, len(every) - limit)
    for signal in (every[0], *every[outcome.more + 1 :]):
        fields = message_frame.fields_of(names, signal.record)
        put_settled(fields, found)
        tasks.put(fields, signal.record)
        if mailbox.is_overdue(db, signal.record.get("task_id"), store.now()):
            fields["overdue"] = True
        recorded = mailbox.delivery_states(db, signal.id)
        states = {
            reader: delivery_state(reader, signal, found, recorded.get(reader))
            for reader in signal.record["recipients"]
        }
        if not signal.counts:
            fields["counts"] = False
        put_decides(fields, found)
        if signal in owed:
            fields["owed"] = True
        fields["delivery"] = {reader: state for reader, state in states.items() if state}
        outcome.signals += _versions(db, names, fields) if signal.id in outcome.ambiguous else [fields]
    outcome.next = _next(store, outcome, _questions(found, owed))
    return outcome


def put_decides(fields: ShownSignal, found: FoldedThread) -> None:
    """Set `decides` in a signal whose decision does not count, because it is void or of no party."""
    signal = found.signals[fields["signal_id"]]
    if found.is_of_no_party(signal):
        fields["no_party"] = True
    if signal.void or "no_party" in fields:
        fields["decides"] = False


def put_settled(fields: ShownSignal, found: FoldedThread) -> None:
    """Set `settled` in a signal for an answer: what became of its task, or that its proposal was replaced or withdrawn."""
    if why := found.signals[fields["signal_id"]].settled or found.end_text(fields["signal_id"]):
        fields["settled"] = why


def _put_delivery(db: sqlite3.Connection, outcome: Standing, found: FoldedThread, root: ThreadSignal) -> None:
    recorded = mailbox.delivery_states(db, root.id)
    for each in outcome.recipients:
        each.delivery_state = delivery_state(each.identity, root, found, recorded.get(each.identity))


def _versions(db: sqlite3.Connection, names: ShownNames, fields: ShownSignal) -> list[ShownSignal]:
    """Return the displayed fields of each conflicting line of an id."""
    id = fields["signal_id"]
    every = conflicts.versions(db, id)
    found = []
    for each in conflicts.chosen(every, ()):
        record = records.read_kind("signal", each.line)
        if record is not None:
            one = message_frame.fields_of(names, record)
            one["delivery"] = mailbox.delivery_states(db, id, each.content)
            if "counts" in fields:
                one["counts"] = False
            found.append(one)
    conflicts.mark(db, found, len(every))
    return found


def _next(store: Store, outcome: Thread, asked: Sequence[SignalRecord]) -> list[str]:
    found = ["gitmem doctor"] if outcome.ambiguous else []
    found += [each for record in asked for each in next_steps.decide_now(store, record)]
    if outcome.recipients and not outcome.settled and outcome.agreed_on is None:
        found.append(command("gitmem", "converged", outcome.thread_id))
    if outcome.more:
        total = len({each["signal_id"] for each in outcome.signals}) + outcome.more
        found.append(command("gitmem", "thread", outcome.thread_id, "--limit", str(total)))
    return found


def _owed(found: FoldedThread, caller: Caller | None) -> list[ThreadSignal]:
    """Return the signals to which the caller owes an answer."""
    if caller is None:
        return []
    return [
        signal
        for signal in found.signals.values()
        if ((found.parties and signal.id in found.proposals) or any(map(signal.is_for, caller.ids)))
        and found.owes(caller.ids, signal.id)
        and signal.id not in found.ambiguous
    ]


def _questions(found: FoldedThread, owed: Sequence[ThreadSignal]) -> list[SignalRecord]:
    """Return those of these signals that `next` asks about: proposals that conflict, or else the last one."""
    proposed = [each.record for each in owed if each.id in found.proposals]
    return proposed[:CONFLICTING_MAX] or [each.record for each in owed[-1:]]


def converged(store: Store, id: str, *, caller: Caller | None = None) -> Converged:
    """Return whether every party of a thread agreed to a proposal: to this one, or to any, if the id is of something else.

    Args:
        caller: The caller, if known: `next` has no command that waits for the caller's own answer.

    Raises:
        UsageError: The thread is unknown.
    """
    db, thread_id, found, root = _open(store, id)
    proposal = found.proposals.get(resolve(db, id))
    outcome = Converged(thread_id, found, presence.names_by_reader(db), proposal)
    _put_delivery(db, outcome, found, root)
    outcome.warnings = _warnings(db, found)
    outcome.commit = store.index.tip
    outcome.next = _next_of(store, outcome, _questions(found, _owed(found, caller)), caller)
    outcome.warnings += [
        f"{sanitize(each.display_name or '')} ({each.identity}) has ended: unless it is resumed, nobody answers for it. Send the proposal to the next session."
        for each in outcome.recipients
        if outcome.asks and each.decision == "pending" and _has_ended(store, each.identity)
    ]
    outcome.warnings += _away(store, outcome)
    whereabouts.add_unread(store, outcome)
    moved_back.add_warning(store, outcome)
    return outcome


def _has_ended(store: Store, party: str) -> bool:
    """Return whether a party is a session, not an agent, and has ended."""
    found = presence.get(store, party) if party.startswith("sess-") else None
    return found is not None and found.ended is not None


def _away(store: Store, outcome: Standing) -> list[str]:
    """Return where the proposals in force are that agents of other clones have not answered."""
    waits = [each.identity for each in outcome.recipients if each.decision == "pending" and outcome.asks]
    found = []
    for proposal in outcome.in_force if waits else ():
        found += away(store, proposal.signal_id, [each for each in waits if each != proposal.by])
    return found


def away(store: Store, signal_id: str, readers: Sequence[str], about: str | None = None) -> list[str]:
    """Return a sentence about where a signal is if clones of these readers have recorded nothing about it.

    Args:
        about: The record that the sentence names instead, such as its task, which was written with it.
    """
    db = store.db()
    seen = mailbox.delivery_states(db, signal_id)
    unseen = [each for each in readers if each not in seen][:LOOKED_UP_MAX]
    theirs = [each.address for each in addressing.from_addresses(store, unseen) if each.elsewhere]
    names = presence.names_by_reader(db)
    return whereabouts.of_record(
        store, about or signal_id, [sanitize(names.get(each) or each) for each in theirs]
    )


def _next_of(
    store: Store, outcome: Converged, asked: Sequence[SignalRecord], caller: Caller | None
) -> list[str]:
    """Return the commands that answer, that wait for missing answers of others, and that display the thread."""
    look = command("gitmem", "thread", outcome.thread_id)
    if outcome.ambiguous:
        return ["gitmem doctor", look]
    found = [each for record in asked for each in next_steps.decide_now(store, record)]
    if outcome.replaced or outcome.withdrawn:
        return [*found, *(command("gitmem", "converged", each.signal_id) for each in outcome.in_force), look]
    others = [each for each in outcome.pending if caller is None or each not in caller.ids]
    others = [each for each in others if not _has_ended(store, each)]
    if outcome.is_settled or outcome.rejected or not others:
        return [*found, look]
    away = any(each.elsewhere for each in addressing.from_addresses(store, others[:LOOKED_UP_MAX]))
    about = outcome.proposal.signal_id if outcome.proposal is not None else outcome.thread_id
    options = ["--wait", "60s", *(["--sync"] if away else [])]
    return [*found, command("gitmem", "converged", about, *options), look]
