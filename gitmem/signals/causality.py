"""The causal order of facts, from the ids that their writers had seen and never from clocks.

A signal names in `after` and `reply_to` the signals of the thread that its writer had seen. A patch names in `after`
the patches of its nodes. A fact is earlier if it is reachable through these names.
"""

from __future__ import annotations

from . import DECISIONS, graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from ..records.record_types import SignalRecord
    from .bit_order import OrderedFact

    F = TypeVar("F", bound=OrderedFact)
    K = TypeVar("K", bound=Hashable)


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


def earlier(thread: Mapping[str, OrderedFact]) -> dict[str, set[str]]:
    """Return the direct predecessors of each signal, without unknown ids and without cycles."""
    return graph.without_cycles(_named(thread))


def _named(thread: Mapping[str, OrderedFact]) -> dict[str, set[str]]:
    known = thread.keys()
    return {id: set(known & signal.named) for id, signal in thread.items()}  # iterates over the shorter set


def latest(candidates: Iterable[F], edges: Mapping[str, set[str]]) -> F | None:
    """Return the candidate that precedes no other; of several, the one with the greatest `(at, bytes)`."""
    signals = list(candidates)
    if len(signals) < 2:
        return signals[0] if signals else None
    before = graph.before([item.id for item in signals], edges)
    return max((item for item in signals if item.id not in before), key=lambda item: item.line)


def latest_of_each(
    groups: Mapping[K, Sequence[F]], edges: Mapping[str, set[str]], among: Sequence[F] = ()
) -> dict[K, F]:
    """Return the `latest` of each group, for all groups together; no group is empty.

    Args:
        among: Further members of every group.
    """
    heads = heads_of_each(groups, edges, among)
    return {key: max(signals, key=lambda item: item.line) for key, signals in heads.items()}


def heads_of_each(
    groups: Mapping[K, Sequence[F]], edges: Mapping[str, set[str]], among: Sequence[F] = ()
) -> dict[K, Sequence[F]]:
    """Return the members of each group that precede no other member of it, for all groups; no group is empty.

    Args:
        among: Further members of every group; of these, only the greatest `(at, bytes)` is returned.
    """
    found = {key: signals for key, signals in groups.items() if len(signals) == 1 and not among}
    several = [(key, signals) for key, signals in groups.items() if key not in found]
    if not among and len(several) == 1:
        ((key, signals),) = several
        earlier_ids = graph.before([item.id for item in signals], edges)
        return {**found, key: [item for item in signals if item.id not in earlier_ids]}
    marks: dict[str, list[int]] = {}
    for number, (_, signals) in enumerate(several):
        for item in signals:
            marks.setdefault(item.id, []).append(number)
    before = graph.before([item.id for item in among], edges)
    last = sorted((item for item in among if item.id not in before), key=lambda item: item.line, reverse=True)
    for first, above in graph.marks_of_later(edges, marks):
        part = several[first : first + graph.BITS]
        shared = _first_free(last, above, len(part))
        for place, (key, signals) in enumerate(part):
            own = [
                item for item in signals if item.id not in before and not above.get(item.id, 0) >> place & 1
            ]
            found[key] = [*own, *shared.get(place, ())]
    return found


def _first_free(signals: Iterable[F], above: Mapping[str, int], count: int) -> dict[int, list[F]]:
    """Return, by the place of each group, a list of the first signal that no member of the group comes after."""
    found: dict[int, list[F]] = {}
    left = (1 << count) - 1
    for item in signals:
        taken = left & ~above.get(item.id, 0)
        left &= ~taken
        while taken:
            lowest = taken & -taken
            found[lowest.bit_length() - 1] = [item]
            taken ^= lowest
        if not left:
            break
    return found


def decision(
    reader: str, thread: Mapping[str, ThreadSignal], edges: Mapping[str, set[str]]
) -> ThreadSignal | None:
    """Return a reader's current decision in a thread, or None without one."""
    own = [signal for signal in thread.values() if signal.intent in DECISIONS and signal.is_by(reader)]
    return latest(own, edges)


def in_order(thread: Mapping[str, ThreadSignal], edges: Mapping[str, set[str]]) -> list[ThreadSignal]:
    """Return the signals by time, but no reply before the signal that it answers."""
    before = {id: sorted(names, key=lambda name: thread[name].line) for id, names in edges.items()}
    shown: dict[str, ThreadSignal] = {}
    for signal in sorted(thread.values(), key=lambda item: item.line):
        if signal.id in shown:
            continue
        todo = [(signal.id, iter(before[signal.id]))]
        while todo:
            here, names = todo[-1]
            for name in names:
                if name not in shown:
                    todo.append((name, iter(before[name])))
                    break
            else:
                todo.pop()
                shown[here] = thread[here]
    return list(shown.values())


def ids_for_after(
    reader: str, thread: Mapping[str, ThreadSignal], receipts: set[str], answered: str | None
) -> list[str]:
    """Return `after` of a reader's new signal: its last signal, its decision, and the heads of all signals seen.

    Args:
        receipts: The ids for which the reader has a receipt.
        answered: The id that the new signal answers.
    """
    edges = earlier(thread)
    seen = {id for id, signal in thread.items() if signal.is_by(reader) or id in receipts or id == answered}
    named = {name for id in seen for name in edges[id]}
    after = {id for id in seen if id not in named}
    own = [signal for signal in thread.values() if signal.is_by(reader)]
    for last in (latest(own, edges), decision(reader, thread, edges)):
        if last is not None:
            after.add(last.id)
    return sorted(after, key=lambda id: thread[id].line)


def root(thread: Mapping[str, ThreadSignal]) -> ThreadSignal:
    """Return the signal whose `reply_to` is missing or not in the thread.

    Of several, the lowest `(at, bytes)`, and signals that count before others.
    """
    tops = [signal for signal in thread.values() if signal.record.get("reply_to") not in thread]
    return min(tops or thread.values(), key=lambda signal: (not signal.counts, signal.line))
