"""Read threads from the index and void the decisions of a proposer in another's name; display them, each recipient's decision, and convergence.

The lines of each id are read once for all threads. The rule of void decisions is in `docs/format.md`, "What counts". A session is
identified by its id and by each agent identity and client in its records: an agent remains the same in a new session.
"""

from __future__ import annotations

from .. import records
from ..agents import addressing, mailbox, presence, session_view
from ..agents.caller import other_workspaces
from ..agents.mailbox import digests_of
from ..errors import UsageError, check_limit
from ..index.entities import AMONG, LINES_MAX, fair_share
from ..index.resolve_id import resolve, thread_of
from ..log.lines import writer_of
from ..order.content import ASKS, answers_a_line, asks
from ..order.thread import ANSWERS, FoldedThread, ThreadSignal, root, root_id
from ..outcome import Outcome, Struct, command
from ..records.ids import is_id, unit_key, unit_key_sql
from ..store import add_lost_records
from ..sync import whereabouts
from ..text.sanitize import sanitize, title
from ..text.strict_json import json_list
from . import message_frame
from .task_records import TaskRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..agents.caller import Caller
    from ..agents.presence import ShownNames
    from ..records.record_types import ShownSignal, SignalRecord
    from ..store import Store

    NamesOf = Callable[[Collection[str]], Mapping[str, Collection[str]]]


class SessionNames(Struct):
    """The agent identities and clients of sessions, from all session records of the index; each is read once."""

    _db: sqlite3.Connection
    _known: dict[str, set[str]] = {}

    def __call__(self, ids: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the further names of these sessions; ids of other things have no entry or an empty one."""
        new = [id for id in ids if id not in self._known and is_id("sess", id)]
        if new:
            self._known.update((id, set()) for id in new)
            for id, *names in session_view.names_had(self._db, new):
                self._known[id].update(name for name in names if name)
        return self._known


def void_own_decisions(
    name: str, thread: Mapping[str, ThreadSignal], names_of: NamesOf
) -> dict[str, ThreadSignal]:
    """Return a copy of a thread in which such decisions are void.

    Args:
        name: The id of the thread.
        thread: The signals by their ids.
        names_of: Returns the further names of the given session ids.

    Returns:
        The thread. Void are decisions, and proposals but the root, in another's name by the sender or recorder of the root or a proposal, and own
        decisions of a session that recorded the root or a proposal in another's name.
    """
    found = dict(thread)
    if not any(signal.record.get("via") for signal in thread.values()):
        return found
    top = root(name, thread)
    asking = [signal for signal in thread.values() if signal is top or signal.intent in ASKS]
    deciding = [signal for signal in thread.values() if signal is not top and signal.intent != "INFO"]
    known = names_of({name for signal in (*asking, *deciding) for name in _named(signal)})
    recorders = _Names(known, (signal.record.get("via") for signal in asking))
    askers = _Names(known, (name for signal in asking for name in _named(signal)))
    for signal in deciding:
        via = signal.record.get("via")
        if (via in askers) if via else any(name in recorders for name in signal.writers):
            found[signal.id] = void = ThreadSignal(signal.record, signal.lines, counts=signal.counts)
            void.void = True
    return found


def void_remarks(
    db: sqlite3.Connection,
    name: str,
    thread: Mapping[str, ThreadSignal],
    record: SignalRecord,
    line: bytes,
) -> list[str]:
    """Return a sentence for the sender of a decision that is void, else nothing.

    Args:
        name: The id of its thread.
        thread: The earlier signals of its thread.
        record: The new signal.
        line: Its line.
    """
    signal = ThreadSignal(record, [line])
    if not void_own_decisions(name, {**thread, signal.id: signal}, SessionNames(db))[signal.id].void:
        return []
    who = (
        f"{record['via']} has proposed in this thread"
        if record.get("via")
        else "you have proposed in this thread in another agent's name"
    )
    return [f"This {record['intent']} has no effect: {who}. The other recipients decide themselves."]


def _named(signal: ThreadSignal) -> set[str]:
    """Return the names of the sender and the recorder of a signal."""
    via = signal.record.get("via")
    return signal.writers | {via} if via else signal.writers


class _Names:
    """The set of the ids that share a name with one of the given ids."""

    def __init__(self, known: Mapping[str, Collection[str]], ids: Iterable[str | None]) -> None:
        self._known = known
        self._names = {name for id in set(ids) if id for name in (id, *known.get(id, ()))}
        self._found: dict[str, bool] = {}  # a session may have many names, and decide often

    def __contains__(self, id: str) -> bool:
        if id not in self._found:
            self._found[id] = id in self._names or not self._names.isdisjoint(self._known.get(id, ()))
        return self._found[id]


LINE_LEAST = 512  # minimum bytes charged for a line: reading a shorter one takes as long
AHEAD = 2_000  # signals of one query that reads ahead
NAMED_BYTES = 16  # bytes charged for an id of a thread


class ThreadLines:
    """A reader of threads with a budget.

    Args:
        most: Maximum bytes of lines to read in all; a line counts at least `LINE_LEAST`. None for no limit. The limit
            is bytes and not time, because the same log must give the same answers.

    Attributes:
        left_out: The number of signals of a thread that were not read, because there are too many.
    """

    def __init__(self, db: sqlite3.Connection, most: int | None = None) -> None:
        self._db = db
        self._left = most
        self._said: dict[str, ThreadSignal | None] = {}
        self._names = SessionNames(db)
        self.left_out: dict[str, int] = {}

    def load(self, thread_id: str) -> dict[str, ThreadSignal] | None:
        """Return all signals of a thread with the lines of each id, or None if the budget is exceeded."""
        ids = self._ids(thread_id)
        new = [id for id in ids if id not in self._said]
        if not self._may_read(len(ids), new):
            return None
        if new:
            self._read(new)
        found = {id: self._said.get(id) for id in ids}
        return void_own_decisions(
            thread_id, {id: signal for id, signal in found.items() if signal is not None}, self._names
        )

    def _ids(self, thread_id: str) -> list[str]:
        """Return the signals of a thread that are read: of too many a fair share of each sender, those of the parties first."""
        query = "SELECT DISTINCT signal_id FROM signal s WHERE thread = ?"
        ids = [str(id) for (id,) in self._db.execute(f"{query} LIMIT {LINES_MAX + 1}", (thread_id,))]
        if len(ids) <= LINES_MAX:
            return ids
        rows = self._db.execute(
            "SELECT s.signal_id, s.sender, s.sender_session, l.id, json_extract(l.body, '$.reply_to'),"
            " json_extract(l.body, '$.writer')"
            " FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? ORDER BY l.body",
            (thread_id,),
        )
        lowest: dict[str, tuple[str, str, str | None, int, str | None, str | None]] = {}
        for row in rows:
            lowest.setdefault(row[0], row)
        every = list(lowest.values())
        places = {row[0]: (row[4], row[5], place) for place, row in enumerate(every)}
        root = lowest[root_id(thread_id, places)]
        (body,) = self._db.execute("SELECT body FROM line WHERE id = ?", (root[3],)).fetchone()
        record = records.read_kind("signal", body.encode())
        parties = {root[1], root[2], *(record["recipients"] if record is not None else ())} - {None}
        chosen = fair_share(
            every, LINES_MAX, lambda row: (row[1], row[2]), lambda row: row[1] in parties or row[2] in parties
        )
        self.left_out[thread_id] = len(every) - len(chosen)
        return [row[0] for row in chosen]

    def read_ahead(self, ids: Sequence[str]) -> None:
        """Read signals that threads to be loaded have, in one query, as far as the budget allows."""
        for start in range(0, len(ids), AHEAD):
            new = [id for id in ids[start : start + AHEAD] if id not in self._said]
            if not self._may_read(0, new):
                return
            self._read(new)

    def signal(self, id: str) -> ThreadSignal | None:
        """Return a signal that was read; None if it was not, or is unreadable."""
        return self._said.get(id)

    def _may_read(self, count: int, new: Sequence[str]) -> bool:
        if self._left is None:
            return True
        if NAMED_BYTES * count > self._left:
            return False
        if not new:
            self._left -= NAMED_BYTES * count
            return True
        (size,) = self._db.execute(
            "SELECT coalesce(sum(max(?, length(l.body))), 0) FROM signal s JOIN line l ON l.id = s.line"
            f" WHERE s.signal_id {AMONG}",
            (LINE_LEAST, json_list(new)),
        ).fetchone()
        size += NAMED_BYTES * count
        if size > self._left:
            return False
        self._left -= size
        return True

    def _read(self, ids: Sequence[str]) -> None:
        lines: dict[str, list[bytes]] = {}
        rows = self._db.execute(
            # All lines of an id in the thread count, whatever thread they name.
            "SELECT s.signal_id, l.body FROM signal s JOIN line l ON l.id = s.line"
            f" WHERE s.signal_id {AMONG}",
            (json_list(ids),),
        )
        for signal_id, body in rows:
            lines.setdefault(signal_id, []).append(body.encode())
        first: dict[str, SignalRecord] = {
            id: record
            for id, bodies in lines.items()
            if (record := records.read_kind("signal", min(bodies))) is not None
        }
        answered = {to for record in first.values() if (to := record.get("reply_to"))}
        digests = digests_of(self._db, answered) if answered else {}
        self._said.update(dict.fromkeys(lines))
        tasks = {each.get("task_id") for each in first.values() if asks(each)}
        settled = {task: mailbox.settled(self._db, task) for task in tasks}
        for id, record in first.items():
            answer = (record.get("reply_to"), record.get("answers_digest"), record["origin"])
            why = settled[record.get("task_id")] if asks(record) else None
            self._said[id] = ThreadSignal(
                record, lines[id], counts=answers_a_line(*answer, digests), settled=why
            )


def initiatives_of(db: sqlite3.Connection, wu: str) -> list[str]:
    """Return the initiatives that a session or a signal names together with a work unit."""
    rows = db.execute(
        f"SELECT initiative_id FROM session WHERE {unit_key_sql('wu_id')} = :wu UNION"
        " SELECT json_extract(l.body, '$.initiative_id') FROM signal s JOIN line l ON l.id = s.line"
        " WHERE s.wu_id = :wu AND instr(l.body, 'initiative_id')",
        {"wu": unit_key(wu)},
    )
    return sorted(str(name) for (name,) in rows if name)


class ThreadCache:
    """A cache of folded threads for one answer; the arguments are those of `ThreadLines`."""

    def __init__(self, db: sqlite3.Connection, most: int | None = None) -> None:
        self.lines = ThreadLines(db, most)
        self._known: dict[str, FoldedThread | None] = {}

    def of(self, thread_id: str) -> FoldedThread | None:
        """Return a folded thread, or None if the budget is exceeded."""
        if thread_id not in self._known:
            signals = self.lines.load(thread_id)
            self._known[thread_id] = FoldedThread(thread_id, signals) if signals is not None else None
        return self._known[thread_id]


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


class Quorum(Outcome):
    """How many have to agree in a thread whose root says so.

    Attributes:
        need: How many others than the author of a proposal.
        veto: Who of them in any case.
        agreed: How many others agree to the proposal in force; 0 if several conflict.
        of: How many others there are.
        waits_for: Who has to agree in any case and does not: of `veto`, the root's sender, or the author.
    """

    def __init__(self, found: FoldedThread) -> None:
        self.need = found.need
        self.veto = list(found.veto)
        id = next(iter(found.in_force)) if len(found.in_force) == 1 else ""
        self.agreed = found.consents(id) if id else 0
        self.of = max(0, len(found.parties) - 1)
        self.waits_for = found.lacks(id) if id else []

    @property
    def count_text(self) -> str:
        """How many agree and how many have to."""
        return f"{self.agreed} of {self.of} agreed, needs {self.need}"


class Standing(Outcome):
    """What a thread says now.

    Attributes:
        recipients: The parties that are asked: the root's recipients, and its sender if another proposal is in force.
        asks: Whether the thread asks for a decision.
        quorum: What its root says about how many have to agree; None if all.
        agreed_on: The proposal that every party has agreed to, or enough of them; None if there is none.
        in_force: That proposal, else the latest one; several that were written without knowledge of each other conflict.
        settled: What became of the tasks of the proposals in force, such as "taken by …"; "" if any of them still needs an answer.
        ambiguous: The ids of signals with several contents.
    """

    def __init__(self, thread_id: str, found: FoldedThread, names: ShownNames | None) -> None:
        self.thread_id = thread_id
        self.root = found.root.id if found.root is not None else ""
        self.recipients = [Party(each, found, names) for each in found.asked]
        self.asks = found.asks
        self.quorum = Quorum(found) if found.need else None
        self.agreed_on = Proposal(found.agreed_on, names) if found.agreed_on is not None else None
        self.in_force = [Proposal(each, names) for each in found.in_force.values()]
        self.settled = found.settled
        self.ambiguous = found.ambiguous


class Thread(Standing):
    """A thread: its signals (but for `more` after the first), each after those it answers, and what it says now."""

    __slots__ = (
        "thread_id", "root", "signals", "more", "recipients", "asks", "quorum", "agreed_on", "in_force", "settled",
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
        refused: Whether it can't converge unless somebody who rejects what is in force changes its mind.
        replaced, withdrawn: Whether it is no longer in force, and why.
        agreed: Those who agree to what is in force, also `countered`, who wrote it.
        verified: Whether each line of a proposal or an answer of a party names its writer: then that writer has attested it, or this
            user wrote it here and it waits for its commit.
        writers: The writers of these lines, by the parties that wrote any.
    """

    __slots__ = (
        "thread_id", "root", "proposal", "converged", "quorum", "agreed_on", "in_force", "settled", "replaced", "withdrawn", "recipients",
        "agreed", "refused", "rejected", "countered", "pending", "ambiguous", "verified", "writers", "commit", "warnings", "next",
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
        self.refused = found.is_refused
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
    for id in thread:
        known = mailbox.readers_of_missing(db, id, 4)
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
    every = message_frame.versions(db, id)
    found = []
    for each in message_frame.chosen_versions(every, ()):
        record = records.read_kind("signal", each.line)
        if record is not None:
            one = message_frame.fields_of(names, record)
            one["delivery"] = mailbox.delivery_states(db, id, each.content)
            if "counts" in fields:
                one["counts"] = False
            found.append(one)
    message_frame.mark_versions(db, found, len(every))
    return found


def _next(store: Store, outcome: Thread, asked: Sequence[SignalRecord]) -> list[str]:
    found = ["gitmem doctor"] if outcome.ambiguous else []
    found += [each for record in asked for each in message_frame.decide_now(store, record)]
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
    """Return whether all parties of a thread, or as many as its root says, agreed to a proposal: to this one, or to any, if the id is of something else.

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
        if outcome.asks
        and not outcome.converged
        and each.decision == "pending"
        and _has_ended(store, each.identity)
    ]
    outcome.warnings += _away(store, outcome)
    whereabouts.add_unread(store, outcome)
    add_lost_records(store, outcome)
    return outcome


def _has_ended(store: Store, party: str) -> bool:
    """Return whether a party is a session, not an agent, and has ended."""
    found = presence.get(store, party) if party.startswith("sess-") else None
    return found is not None and found.ended is not None


def _away(store: Store, outcome: Standing) -> list[str]:
    """Return where the proposals in force are that agents of other clones have not answered."""
    asks = outcome.asks and outcome.agreed_on is None
    waits = [each.identity for each in outcome.recipients if each.decision == "pending" and asks]
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
    found = [each for record in asked for each in message_frame.decide_now(store, record)]
    if outcome.replaced or outcome.withdrawn:
        return [*found, *(command("gitmem", "converged", each.signal_id) for each in outcome.in_force), look]
    others = [each for each in outcome.pending if caller is None or each not in caller.ids]
    others = [each for each in others if not _has_ended(store, each)]
    if outcome.is_settled or outcome.refused or not others:
        return [*found, look]
    away = any(each.elsewhere for each in addressing.from_addresses(store, others[:LOOKED_UP_MAX]))
    about = outcome.proposal.signal_id if outcome.proposal is not None else outcome.thread_id
    options = ["--wait", "60s", *(["--sync"] if away else [])]
    return [*found, command("gitmem", "converged", about, *options), look]
