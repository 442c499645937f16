"""What displaying a thread and asking for its convergence returns."""

from __future__ import annotations

from ..outcome import Outcome
from ..text.sanitize import title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.presence import ShownNames
    from ..order.thread import FoldedThread, ThreadSignal
    from ..records.record_types import ShownSignal


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
        signal_id: Its latest decision.
        proposal: The proposal that this decision answers.
        delivery_state: What became of the root at this party.
    """

    def __init__(self, identity: str, found: FoldedThread, names: ShownNames | None) -> None:
        self.identity = identity
        self.display_name = names.get(identity) if names is not None else None
        self.decision, at = found.stands(identity)
        self.signal_id = at.signal.id if at is not None else None
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
    """

    __slots__ = (
        "thread_id", "root", "proposal", "converged", "agreed_on", "in_force", "settled", "replaced", "withdrawn", "recipients", "agreed",
        "rejected", "countered", "pending", "ambiguous", "commit", "warnings", "next",
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
        self.commit: str | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def is_settled(self) -> bool:
        """Whether waiting changes nothing: it has converged, the proposal is not in force, or nobody is asked any more."""
        return self.converged or self.replaced or self.withdrawn or bool(self.settled) or not self.recipients

    def _those(self, *decisions: str) -> Sequence[str]:
        return [each.identity for each in self.recipients if each.decision in decisions]
