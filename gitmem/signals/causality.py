"""The signals of a thread, and what a new one names."""

from __future__ import annotations

from ..order.causal import CausalOrder, by_id
from . import DECISIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    reader: str, thread: Mapping[str, ThreadSignal], receipts: set[str], answered: str | None
) -> list[str]:
    """Return `after` of a reader's new signal: its last signal, its decision, and the heads of all signals seen.

    Args:
        receipts: The ids for which the reader has a receipt.
        answered: The id that the new signal answers.
    """
    order = CausalOrder(thread.values())
    own = [each for each in thread.values() if each.is_by(reader)]
    seen = [each for id, each in thread.items() if each.is_by(reader) or id in receipts or id == answered]
    after = order.unnamed(seen)
    decided = [each for each in own if each.intent in DECISIONS]
    after += filter(None, (order.latest(own), order.latest(decided)))
    return list(by_id(after))


def root(thread: Mapping[str, ThreadSignal]) -> ThreadSignal:
    """Return the signal whose `reply_to` is missing or not in the thread.

    Of several, the lowest `(at, bytes)`, and signals that count before others.
    """
    tops = [signal for signal in thread.values() if signal.record.get("reply_to") not in thread]
    return min(tops or thread.values(), key=lambda signal: (not signal.counts, signal.line))
