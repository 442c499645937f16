"""What a thread says now, as the sentences of the contract have it, and without regard to time: for the reference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from .adapter import Convergence, Signal
from .definitions import Called, is_by, named_by, root_of, without_own

RANK = {"AGREE": 0, "PROPOSE": 1, "COUNTER": 1, "REJECT": 2}


class Agreement:
    """The parties of a thread, their proposals, and where each stands.

    Args:
        signals: The signals of the thread by id; those that do not count are INFO.
        called: The other names of sessions, see `without_own`.
    """

    def __init__(self, signals: Mapping[str, Signal], called: Called) -> None:
        self.signals = without_own(signals, called)
        self.root = root_of(signals)
        edges = {id: {each for each in named_by(one) if each in signals} for id, one in signals.items()}
        self._edges = {id: {to for to in names if id not in _reach(to, edges)} for id, names in edges.items()}
        self.parties = self.parties_of(self.root)
        self.proposals = [
            each
            for each in self.signals.values()
            if each["signal_id"] == self.root["signal_id"]
            or (each["intent"] in ("PROPOSE", "COUNTER") and self.may_propose(each))
        ]
        self.ids = {each["signal_id"] for each in self.proposals}
        self.agreed_on = self._agreed_on()
        self.in_force = [self.agreed_on] if self.agreed_on else self._latest_proposals()

    def parties_of(self, root: Signal) -> list[str]:
        """Return the parties: the root's sender and its other recipients; none if there are no others."""
        others = [each for each in root["recipients"] if not is_by(root, each)]
        return list(dict.fromkeys([root["sender_identity"], *others])) if others else []

    def may_propose(self, signal: Signal) -> bool:
        """Return whether a signal is of a party."""
        return any(is_by(signal, party) for party in self.parties)

    def last(self, signals: Iterable[Signal]) -> list[Signal]:
        """Return those of these signals that none of the others follows."""
        every = list(signals)
        before = {id for each in every for id in _reach(each["signal_id"], self._edges, start=False)}
        return [each for each in every if each["signal_id"] not in before]

    def proposal_of(self, id: str | None) -> str | None:
        """Return the first proposal reached through `reply_to`; a signal without that field answers the root."""
        seen: set[str] = set()
        while id in self.signals and id not in seen and id not in self.ids:
            seen.add(id)
            id = self.signals[id].get("reply_to") or self.root["signal_id"]
        return id if id in self.ids else None

    def position(self, reader: str) -> tuple[str, set[str]]:
        """Return the strongest intent of a reader's latest decisions, and the proposals that these answer."""
        own = [
            each
            for each in self.signals.values()
            if (each["signal_id"] in self.ids or each["intent"] in ("AGREE", "REJECT"))
            and is_by(each, reader)
            and self.proposal_of(each["signal_id"])
        ]
        last = self.last(own)
        most = max(map(self._rank, last), default=-1)
        on = {self.proposal_of(each["signal_id"]) or "" for each in last if self._rank(each) == most}
        return ("pending", "agree", "counter", "reject")[most + 1], on

    def answer(self, reader: str, id: str) -> Signal | None:
        """Return a reader's latest decision on a signal: it answers that signal, or one that belongs to it."""
        own = [
            each
            for each in self.signals.values()
            if (each["intent"] in ("AGREE", "REJECT", "COUNTER") or each["signal_id"] in self.ids)
            and is_by(each, reader)
            and id in (each.get("reply_to"), self._answered(each), self.ids & {each["signal_id"]} and each["signal_id"])
        ]  # fmt: skip
        return max(self.last(own), key=lambda each: (self._rank(each), each["signal_id"]), default=None)

    def convergence(self, ambiguous: Collection[str], asked: str) -> Convergence:
        """Return the answer to the question whether a thread, or one of its proposals, has converged."""
        agreed = None if ambiguous else self.agreed_on
        found: Convergence = {
            "converged": agreed is not None and (asked not in self.ids or asked == agreed),
            "agreed_on": agreed, "in_force": list(self.in_force), "agreed": [], "rejected": [], "countered": [],
            "pending": [], "ambiguous": list(ambiguous),
        }  # fmt: skip
        lists = {"agree": "agreed", "reject": "rejected", "counter": "countered", "pending": "pending"}
        sender, root = self.root["sender_identity"], self.root["signal_id"]
        for party in self.parties if self.in_force else ():
            how, on = self.position(party)
            if party == sender and how != "reject" and on == {root} == {*self.in_force}:
                continue  # nobody asks it
            if not on & {*self.in_force} or (how != "reject" and len(on) > 1):
                how = "pending"
            if how == "counter" and (agreed or on == {root}):
                how = "agree"
            of: list[str] = found[lists[how]]  # type: ignore[literal-required]
            of.append(party)
            if how == "counter":
                found["agreed"].append(party)
        return found

    def _rank(self, signal: Signal) -> int:
        return 1 if signal["signal_id"] in self.ids else RANK[signal["intent"]]

    def _answered(self, signal: Signal) -> str | None:
        parent = signal.get("reply_to")
        return self.proposal_of(parent) if parent else self.proposal_of(signal["signal_id"])

    def _agreed_on(self) -> str | None:
        stands = [self.position(each) for each in self.parties]
        agreed = (id for id in self.ids if all(how != "reject" and on == {id} for how, on in stands))
        return next(agreed, None) if stands else None

    def _latest_proposals(self) -> list[str]:
        left = [each for each in self.proposals if not self._is_withdrawn(each)]
        return [each["signal_id"] for each in self.last(left)]

    def _is_withdrawn(self, proposal: Signal) -> bool:
        id, writers = proposal["signal_id"], (proposal["sender_identity"], proposal.get("sender_session"))
        last = [self.answer(each, id) for each in writers if each]
        return any(
            each is not None and each["intent"] == "REJECT" and each["signal_id"] != id for each in last
        )


def _reach(id: str, edges: Mapping[str, Collection[str]], *, start: bool = True) -> set[str]:
    """Return the ids that can be reached from an id, with itself if `start` is set."""
    found, todo = ({id} if start else set()), [id]
    while todo:
        new = set(edges[todo.pop()]) - found
        found |= new
        todo += new
    return found
