"""Reduce the signals of a thread: its parties, their proposals, where each party stands, and what they agreed on.

Every command, tool and page that says something about an agreement asks `FoldedThread`. The rules are in
`docs/format.md` section 8, "Agreement". They use what writers had seen and never clocks.
"""

from __future__ import annotations

from functools import cached_property

from .. import records
from ..records.ids import is_bound, is_of_somebody
from ..text.addresses import suffix_of
from .causal import CausalOrder, by_id
from .content import ASKS, DECISIONS, asks, content_of, digest_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from ..records.record_types import SignalRecord


class ThreadSignal:
    """One signal of a thread, with every line of its id.

    Lines start with their time, so they sort by `(at, bytes)`; the lowest line is displayed.
    """

    __slots__ = ("_named", "_recipients", "counts", "id", "line", "lines", "record", "settled", "void")

    def __init__(
        self, record: SignalRecord, lines: Iterable[bytes], *, counts: bool = True, settled: str | None = None
    ) -> None:
        self.record = record
        self.counts = counts  # False for an answer to a line that does not exist: no decision
        self.settled = settled  # why nobody owes an answer: who has taken its task, or how that ended
        self.void = False  # True for a decision of a proposer, one of the two in another's name: no decision
        self.id = record["signal_id"]
        self.lines = sorted(lines)
        self.line = self.lines[0]
        self._named: frozenset[str] | None = None
        self._recipients: frozenset[str] | None = None

    @property
    def intent(self) -> str:
        """The effective intent: INFO if the signal does not count or is void."""
        return self.record["intent"] if self.counts and not self.void else "INFO"

    @property
    def named(self) -> frozenset[str]:
        """The ids of the signals that its writer had seen."""
        if self._named is None:
            parent = self.record.get("reply_to")
            self._named = frozenset((*self.record.get("after", ()), *((parent,) if parent else ())))
        return self._named

    def is_for(self, reader: str) -> bool:
        """Return whether a reader is among its recipients."""
        if self._recipients is None:
            self._recipients = frozenset(self.record["recipients"])
        return reader in self._recipients

    @property
    def writers(self) -> set[str]:
        """The names of its sender: the identity, and the session id."""
        session = self.record.get("sender_session")
        return {self.record["sender_identity"], *((session,) if session else ())}

    def is_by(self, reader: str) -> bool:
        """Return whether a reader wrote it, by identity or by session id."""
        return reader in (self.record["sender_identity"], self.record.get("sender_session"))


def ids_for_after(
    names: Collection[str], found: FoldedThread, receipts: set[str], answered: str | None
) -> list[str]:
    """Return `after` of a reader's new signal: of all signals seen, of those of parties, and of its own ones those that no other names.

    Each of these orders then holds without the edges of others.

    Args:
        names: The names of the reader.
        found: The thread.
        receipts: The ids for which the reader has a receipt.
        answered: The id that the new signal answers.
    """
    own = {name: [each for each in found.signals.values() if each.is_by(name)] for name in names}
    known = {*receipts, answered, *(each.id for some in own.values() for each in some)}
    seen = [each for id, each in found.signals.items() if id in known]
    after = found.order.unnamed(seen) + found.deciding.unnamed(filter(found.leads, seen))
    for name, some in own.items():
        decided = [each for each in some if each.intent in DECISIONS]
        after += found.order_of(name).unnamed(some) + found.order_of(name).heads(decided)
    return list(by_id(after))


def root(name: str, thread: Mapping[str, ThreadSignal]) -> ThreadSignal:
    """Return the root of a thread that has signals: see `root_id`."""
    places = {
        id: (signal.record.get("reply_to"), signal.record.get("writer"), (not signal.counts, signal.line))
        for id, signal in thread.items()
    }
    return thread[root_id(name, places)]


def root_id(name: str, places: Mapping[str, tuple[str | None, str | None, object]]) -> str:
    """Return the signal that a thread is about: the one whose characters its name has, whatever any clock says.

    Without it, it is what the lowest signal of the writer that the name is bound to answers first; of a name that somebody gave, the
    lowest signal of that writer itself. Without such a writer it is the lowest signal that answers none of the thread.

    Args:
        name: The id of the thread.
        places: Of each signal what it answers, who wrote it, and its rank; the lowest comes first.
    """

    def rank(id: str) -> Any:
        return places[id][2]

    kind, _, characters = name.partition("-")
    begins, answers = {suffix_of(name)}, False
    if kind in ("sig", "thread") and is_of_somebody(kind, name):
        if f"sig-{characters}" in places:
            return f"sig-{characters}"
        names = (f"sig-{characters}", f"task-{characters}", name)
        writers, answers = {writer for _, writer, _ in places.values() if writer}, True
        begins = {writer for writer in writers if any(is_bound(each, writer) for each in names)}
    own = [id for id, (_, writer, _) in places.items() if writer and writer in begins]
    if own:
        path = [min(own, key=rank)]
        while (
            answers
            and (answered := places[path[-1]][0]) is not None
            and answered in places
            and answered not in path
        ):
            path.append(answered)
        return path[-1]
    tops = [id for id, (parent, *_) in places.items() if parent not in places]
    return min(tops or places, key=rank)


# Of concurrent decisions of one party the strongest is its position.
_STRENGTH = {"AGREE": 0, "REJECT": 2}
_PROPOSED = 1  # a proposal
ANSWERS = ("AGREE", "REJECT")  # intents that answer a proposal of somebody else


class Position:
    """Where a party stands: its latest decision, or several that were written without knowledge of each other.

    Attributes:
        signal: The decision, the strongest of several.
        proposals: The ids of what it answers; a proposal answers itself. Several if equally strong decisions differ.
        rejects: Whether it is a REJECT.
    """

    __slots__ = ("proposals", "rejects", "signal")

    def __init__(self, signal: ThreadSignal, proposals: Collection[str], *, rejects: bool) -> None:
        self.signal = signal
        self.proposals = proposals
        self.rejects = rejects

    def agrees_to(self, id: str) -> bool:
        """Return whether it is an AGREE to this proposal, and to nothing else."""
        return not self.rejects and len(self.proposals) == 1 and id in self.proposals

    @property
    def proposal(self) -> str:
        """The id of what it answers; the lowest of several."""
        return min(self.proposals)


class FoldedThread:
    """A folded thread: its signals, their causal order, its root, and what it says now.

    Attributes:
        parties: The addresses of the root's sender, first, and of its other recipients; empty if nobody was asked, or if the root is
            not of who gave the thread its name.
        proposals: The root, and each PROPOSE and COUNTER of a party, by id.
        need: How many others than its author have to agree to a proposal; 0 for all.
        veto: With `need`: who has to agree in any case. A proposal with an address that is no party is never agreed on.
        left_out: The number of its signals that were not read, because there are too many.
    """

    def __init__(self, name: str, signals: Mapping[str, ThreadSignal], left_out: int = 0) -> None:
        self.signals = signals
        self.left_out = left_out
        self.order = CausalOrder(signals.values())
        self.root = root(name, signals) if signals else None
        self.parties: dict[str, None] = {}
        self.proposals: dict[str, ThreadSignal] = {}
        self.need = 0
        self.veto: Sequence[str] = ()
        if self.root is not None:
            asked = self.root.record
            if asked["intent"] == "PROPOSE" and not asked.get("reply_to") and (need := asked.get("need")):
                self.need, self.veto = int(need), tuple(dict.fromkeys(asked.get("veto", ())))
            others = [each for each in self.root.record["recipients"] if not self.root.is_by(each)]
            if others and suffix_of(name) in ("", self.root.record.get("writer")):
                self.parties = dict.fromkeys([self.root.record["sender_identity"], *others])
            made = [each for each in signals.values() if each.intent in ASKS and self.is_by_party(each)]
            made.sort(key=lambda each: each.line)  # the same order on every clone, whatever arrived first
            self.proposals = {each.id: each for each in (self.root, *made)}
        self._orders: dict[str, CausalOrder[ThreadSignal]] = {}
        self._positions: dict[str, Position] = {}

    @cached_property
    def deciding(self) -> CausalOrder[ThreadSignal]:
        """The order of the signals of parties alone: nobody else orders their proposals."""
        own = list(filter(self.leads, self.signals.values()))
        return self.order if len(own) == len(self.signals) else CausalOrder(own)

    @cached_property
    def _said(self) -> dict[str, list[ThreadSignal]]:
        """The signals of each sender, by identity and by session."""
        found: dict[str, list[ThreadSignal]] = {}
        for each in self.signals.values():
            for name in each.writers:
                found.setdefault(name, []).append(each)
        return found

    def order_of(self, name: str) -> CausalOrder[ThreadSignal]:
        """Return the order of the signals of one sender alone: nobody else orders its decisions."""
        if name not in self._orders:
            self._orders[name] = CausalOrder(self._said.get(name, ()))
        return self._orders[name]

    def is_by_party(self, signal: ThreadSignal) -> bool:
        """Return whether a party wrote a signal."""
        return any(name in self.parties for name in signal.writers)

    def leads(self, signal: ThreadSignal) -> bool:
        """Return whether what a signal names and answers counts for others: it is of a party, or there are none."""
        return not self.parties or self.is_by_party(signal)

    def is_of_no_party(self, signal: ThreadSignal) -> bool:
        """Return whether a signal is a decision of somebody who was not asked: it does not count."""
        return bool(self.parties) and signal.intent in DECISIONS and not self.is_by_party(signal)

    @cached_property
    def asks(self) -> bool:
        """Whether its parties are asked for a decision: by the root, or by a later proposal."""
        return bool(self.parties) and any(asks(each.record) for each in self.proposals.values())

    @cached_property
    def ambiguous(self) -> list[str]:
        """The ids of signals with several contents: nobody can agree to one of them."""
        return sorted(id for id, signal in self.signals.items() if is_conflicting(signal))

    @cached_property
    def answered(self) -> dict[str, str]:
        """The proposal that each signal belongs to: itself, or the first one reached through `reply_to`.

        A signal belongs to no proposal if the search meets a PROPOSE or COUNTER that is not one, since its writer has read that text; a
        signal of somebody who is no party; or an id with several texts. The latter two may be written again with another `reply_to`.
        """
        found = {id: id for id in self.proposals}
        for id, each in self.signals.items():
            parent = self._parent(each)
            if id not in found and parent is not None and each.record["intent"] not in ASKS:
                reached = self._reached[parent]
                if reached is not None:
                    found[id] = reached
        return found

    @cached_property
    def _reached(self) -> dict[str, str | None]:
        """The first proposal from each signal on, itself included; None behind what leads to none."""
        ends = (
            id for id, each in self.signals.items() if each.record["intent"] in ASKS or not self.leads(each)
        )
        found: dict[str, str | None] = dict.fromkeys((*ends, *self.ambiguous))
        found |= {id: id for id in self.proposals}
        for start in self.signals:
            path: list[str] = []
            here: str | None = start
            while here is not None and here not in found:
                found[here] = None  # a cycle reaches no proposal
                path.append(here)
                here = self._parent(self.signals[here])
            reached = found[here] if here is not None else None
            found.update((each, reached) for each in path)
        return found

    def _parent(self, signal: ThreadSignal) -> str | None:
        """Return the signal of the thread that one answers: the root if it names none."""
        parent = signal.record.get("reply_to")
        if parent is None:
            return self.root.id if self.root is not None else None
        return parent if parent in self.signals else None

    @cached_property
    def _decided(self) -> dict[str, list[ThreadSignal]]:
        """The decisions of each sender."""
        own: dict[str, list[ThreadSignal]] = {}
        for signal in self.signals.values():
            if signal.id in self.proposals or (signal.intent in ANSWERS and signal.id in self.answered):
                for name in signal.writers:
                    own.setdefault(name, []).append(signal)
        return own

    def _position(self, heads: Collection[ThreadSignal]) -> Position:
        most = max(map(self._strength, heads))
        same = [each for each in heads if self._strength(each) == most]
        proposals = {self.answered[each.id] for each in same}
        return Position(min(same, key=lambda each: each.id), proposals, rejects=most == _STRENGTH["REJECT"])

    def _strength(self, signal: ThreadSignal) -> int:
        return _PROPOSED if signal.id in self.proposals else _STRENGTH.get(signal.intent, _PROPOSED)

    def position(self, reader: str) -> Position | None:
        """Return where a reader stands: its latest decision in the thread, or None without one."""
        if reader not in self._positions and reader in self._decided:
            self._positions[reader] = self._position(self._heads(reader, self._decided[reader]))
        return self._positions.get(reader)

    def _heads(self, name: str, decided: list[ThreadSignal]) -> list[ThreadSignal]:
        return self.order_of(name).heads(decided) if len(decided) > 1 else decided

    @cached_property
    def _answers(self) -> dict[tuple[str, str], ThreadSignal]:
        own: dict[tuple[str, str], list[ThreadSignal]] = {}
        for signal in self.signals.values():
            if signal.intent not in DECISIONS and signal.id not in self.proposals:
                continue
            parent = signal.record.get("reply_to")
            answered = {parent, self._reached.get(parent) if parent else self.answered.get(signal.id)}
            if signal.id in self.proposals:
                answered.add(signal.id)
            for writer in signal.writers:
                for id in filter(None, answered):
                    own.setdefault((writer, id), []).append(signal)
        return {
            key: max(self._heads(key[0], decided), key=lambda each: (self._strength(each), each.id))
            for key, decided in own.items()
        }

    def answer(self, reader: str, id: str) -> ThreadSignal | None:
        """Return a reader's latest decision on a signal, or None without one.

        A decision is on the signal that it answers, and on the proposal that this one belongs to. Writing a proposal is
        a decision on it.
        """
        return self._answers.get((reader, id))

    @cached_property
    def agreed_on(self) -> ThreadSignal | None:
        """The proposal to which every party's position is AGREE, with `need` that of enough of them, or None.

        The root's sender is always among them, so it is one proposal at most.
        """
        at = self.position(next(iter(self.parties))) if self.parties else None
        if at is None or self.lacks(at.proposal) or (self.need and self.consents(at.proposal) < self.need):
            return None
        return self.proposals[at.proposal]

    def agreeing(self, id: str) -> list[str]:
        """Return the parties whose position is an AGREE to a proposal alone, and who have written no ambiguous decision."""
        at = ((each, self.position(each)) for each in self.parties if each not in self._unclear)
        return [each for each, position in at if position is not None and position.agrees_to(id)]

    @cached_property
    def _unclear(self) -> set[str]:
        """Who has written an ambiguous proposal or decision."""
        return {name for each in filter(self._decides, self.ambiguous) for name in self.signals[each].writers}

    def required(self, id: str) -> list[str]:
        """Return without whom a proposal is not agreed on: all parties; with `need` the root's sender, its author, and `veto`."""
        if not self.need:
            return [*self.parties]
        own = (each for each in self.parties if self.proposals[id].is_by(each))
        return [*dict.fromkeys([*[*self.parties][:1], *own, *self.veto])]

    def lacks(self, id: str) -> list[str]:
        """Return who of those required does not agree to a proposal."""
        agreeing = {*self.agreeing(id)}
        return [each for each in self.required(id) if each not in agreeing]

    def consents(self, id: str) -> int:
        """Return how many others than its author agree to a proposal; an agent with several addresses is one."""
        found = (
            at.signal.record["sender_identity"] for each in self.agreeing(id) if (at := self.position(each))
        )
        return len({*found} - {self.proposals[id].record["sender_identity"]})

    @cached_property
    def awaited(self) -> Collection[str]:
        """The parties whose answer still matters: none once a proposal is agreed on; once enough agree to one, who is required."""
        if self.agreed_on is not None:
            return ()
        id = next(iter(self.in_force)) if self.need and len(self.in_force) == 1 else ""
        return {*self.required(id)} if id and self.consents(id) >= self.need else self.parties

    @cached_property
    def is_refused(self) -> bool:
        """Whether what is in force can't be agreed on unless somebody who rejects it changes its mind."""
        rejecting = {each for each in self.parties if self.stands(each)[0] == "reject"}
        if not self.need or not rejecting or len(self.in_force) != 1:
            return bool(rejecting)
        few = len(self.parties) - 1 - len(rejecting) < self.need
        return few or not rejecting.isdisjoint(self.required(next(iter(self.in_force))))

    @cached_property
    def in_force(self) -> dict[str, ThreadSignal]:
        """The proposal in force, or those that conflict, by id: what was agreed on, else those that no other follows.

        Proposals that their author has withdrawn are left out; if all are withdrawn, nothing is in force.
        """
        if self.agreed_on is not None:
            return {self.agreed_on.id: self.agreed_on}
        left = {id: each for id, each in self.proposals.items() if not self._is_withdrawn(each)}
        last = {each.id for each in self.deciding.heads(left.values())}
        return {id: each for id, each in left.items() if id in last}

    def _decides(self, id: str) -> bool:
        """Return whether a signal is a proposal, or a party's decision."""
        signal = self.signals[id]
        return id in self.proposals or (self.is_by_party(signal) and signal.record["intent"] in DECISIONS)

    def _is_withdrawn(self, proposal: ThreadSignal) -> bool:
        own = (self.answer(name, proposal.id) for name in proposal.writers)
        return any(each is not None and each.intent == "REJECT" and each is not proposal for each in own)

    def ended(self, id: str) -> str:
        """Return why a proposal is no longer in force: `withdrawn`, or `replaced`; "" if it is, and for other signals."""
        if id not in self.proposals or id in self.in_force:
            return ""
        return "withdrawn" if self._is_withdrawn(self.proposals[id]) else "replaced"

    def end_text(self, id: str) -> str:
        """Return in words why a proposal is no longer in force, and what is; "" as in `ended`."""
        why, now = self.ended(id), " and ".join(self.in_force)
        if why != "withdrawn":
            return why and f"replaced by {now}"
        return f"withdrawn; now in force: {now}" if now else "withdrawn; nothing is in force"

    @cached_property
    def settled(self) -> str:
        """What became of the tasks of the proposals in force, such as "taken by …"; "" if any of them still needs an answer."""
        every = [each.settled for each in self.in_force.values()]
        return " and ".join(dict.fromkeys(filter(None, every))) if all(every) else ""

    def asks_about(self, names: Collection[str], id: str) -> list[str]:
        """Return the signals to which a reader owes an answer and is told so by a signal.

        These are the signal itself, or, if it withdraws a proposal, those that are in force now.
        """
        if self.owes(names, id):
            return [id]
        answered = self.answered.get(id)
        signal = self.signals.get(id)
        if signal is None or signal.intent != "REJECT" or answered is None or not self.in_force:
            return []
        if self.ended(answered) != "withdrawn" or not any(
            map(signal.is_by, self.proposals[answered].writers)
        ):
            return []
        return [each for each in self.in_force if self.owes(names, each)]

    def owes(self, names: Collection[str], id: str) -> bool:
        """Return whether a reader still owes an answer, AGREE or REJECT, to a signal that was sent to it.

        Args:
            names: The names of the reader.
        """
        signal = self.signals.get(id)
        if signal is None or signal.settled or not asks(signal.record):
            return False
        if id not in self.proposals or not self.parties:
            # Nobody agrees to the proposal of somebody else than a party: that would be on another one.
            is_void = signal.record["intent"] in ASKS and self.parties
            is_asked = signal.record.get("requires_ack") and signal.record["recipients"]
            if is_void or not is_asked or any(map(signal.is_by, names)):
                return False
            return not any((own := self.answer(each, id)) and own.intent in ANSWERS for each in names)
        parties = [each for each in names if each in self.awaited]
        if not parties or id not in self.in_force:
            return False
        if len(self.in_force) > 1:
            return all(self.answer(each, id) is None for each in names)
        # A session that was addressed by its client's id answers under its own.
        positions = [at for each in parties if (at := self.position(each))]
        positions = positions or [at for each in names if (at := self.position(each))]
        return not any(at.agrees_to(id) or (at.rejects and id in at.proposals) for at in positions)

    def stands(self, party: str) -> tuple[str, Position | None]:
        """Return where a party stands on what is in force, and its position.

        Returns:
            `agree`, `reject`; `counter` while its own proposal, which is in force, is not agreed on; `pending` if its
            position is on another proposal, or it has none.
        """
        at = self.position(party)
        if at is None:
            return "pending", None
        on = [id for id in at.proposals if id in self.in_force]
        if at.rejects:
            return ("reject" if on else "pending"), at
        if not on or len(at.proposals) > 1:
            return "pending", at
        is_own = at.signal.id in self.proposals and at.signal is not self.root
        return ("counter" if is_own and self.agreed_on is None else "agree"), at

    @property
    def asked(self) -> list[str]:
        """The parties that are asked: all but the root's sender, as long as it stands by the root and that is in force.

        Nobody is asked if nothing is in force; if that is settled, only who has decided on it is listed.
        """
        if self.root is None or (self.parties and not self.in_force):
            return []
        sender, *others = self.parties or [""]
        at = self.position(sender)
        stands_by = at is not None and at.agrees_to(self.root.id) and list(self.in_force) == [self.root.id]
        asked = others if stands_by else list(self.parties)
        return [each for each in asked if self.stands(each)[0] != "pending"] if self.settled else asked


def contents(signal: ThreadSignal) -> set[bytes]:
    """Return the contents of the lines of an id; more than one means that a text was replaced."""
    return {content_of(records.read_kind("signal", line), digest_bytes(line)) for line in signal.lines}


def is_conflicting(signal: ThreadSignal) -> bool:
    """Return whether the lines of an id have different contents."""
    return len(signal.lines) > 1 and len(contents(signal)) > 1
