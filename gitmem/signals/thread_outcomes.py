"""What displaying a thread and asking for its convergence returns."""

from __future__ import annotations

from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..records.shown_types import ShownSignal


class Recipient(Outcome):
    """The decision of a recipient of a thread's root.

    Attributes:
        decision: agree, reject, counter or pending.
        stale: Whether its AGREE does not come after every proposal.
        unseen: The latest proposal that its stale AGREE does not come after.
        unsent: Whether no such proposal was sent to it.
    """

    __slots__ = (
        "identity",
        "display_name",
        "decision",
        "signal_id",
        "stale",
        "unseen",
        "unsent",
        "delivery_state",
    )

    def __init__(self, identity: str, display_name: str | None) -> None:
        self.identity = identity
        self.display_name = display_name
        self.decision = "pending"
        self.signal_id: str | None = None
        self.stale = False
        self.unseen: str | None = None
        self.unsent = False
        self.delivery_state: str | None = None


class Thread(Outcome):
    """A thread: its signals (but for `more` after the first), each after those it answers, and its root's recipients."""

    __slots__ = ("thread_id", "root", "signals", "more", "recipients", "ambiguous", "warnings", "next")

    def __init__(self, thread_id: str, root: str, recipients: Sequence[Recipient]) -> None:
        self.thread_id = thread_id
        self.root = root
        self.signals: list[ShownSignal] = []
        self.more = 0
        self.recipients = list(recipients)
        self.ambiguous: list[str] = []
        self.warnings: list[str] = []
        self.next: list[str] = []


class Converged(Outcome):
    """Whether the current decision of every recipient of the root is AGREE; identities are reader identities."""

    __slots__ = (
        "thread_id", "root", "converged", "recipients", "agreed", "rejected", "countered", "pending",
        "ambiguous", "commit", "warnings", "next",
    )  # fmt: skip

    def __init__(self, thread_id: str, root: str, recipients: Sequence[Recipient], *, strict: bool) -> None:
        self.thread_id = thread_id
        self.root = root
        self.recipients = list(recipients)
        self.agreed = [each.identity for each in recipients if each.decision == "agree"]
        self.rejected = [each.identity for each in recipients if each.decision == "reject"]
        self.countered = [each.identity for each in recipients if each.decision == "counter"]
        self.pending = [each.identity for each in recipients if each.decision == "pending"]
        self.ambiguous: list[str] = []
        self.converged = len(self.agreed) == len(self.recipients) and not (
            strict and any(each.stale for each in recipients)
        )
        self.commit: str | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []
