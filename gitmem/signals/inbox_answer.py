"""The answer of an inbox: signals, and what waits for the reader beside them."""

from __future__ import annotations

from ..agents import delivery
from ..outcome import Outcome, PartOfAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..records.record_types import ShownSignal
    from ..store import Store
    from .inbox_owner import InboxOwner

CONTESTED = "contested: "  # how a sentence about a contested claim begins


class Inbox(Outcome):
    """Signals for a reader, oldest first.

    Attributes:
        unread: The number of all unread signals.
        more: The number of matching signals not in `signals`.
        work: The tasks, handoffs and claims that wait for the reader (`history.open_work`); None if there are none.
    """

    __slots__ = ("reader", "unread", "signals", "more", "work", "warnings", "next")

    def __init__(self, reader: str, unread: int) -> None:
        self.reader = reader
        self.unread = unread
        self.signals: list[ShownSignal] = []
        self.more = 0
        self.work: PartOfAnswer | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []

    def add_work(self, store: Store, caller: Caller | None) -> None:
        """Add what waits for the reader beside signals, with the commands for it if there are no signals."""
        self.work = store.domain.waiting_work(store, caller)
        if self.work is None or caller is None:
            return
        if any(line.startswith(CONTESTED) for line in self.work.lines()):
            delivery.drop_notices(store.repo.state, caller.session_id or "", CONTESTED)
        if not self.signals:
            self.next = [*self.work.steps, *self.next]


class InboxResult(Inbox):
    """An inbox with the data to mark it as read.

    Attributes:
        peek: Why no receipts are recorded; None if they are.
        to_mark: The receipts to record after `signals` were displayed: address, signal id and digest of the line.
    """

    def __init__(self, target: InboxOwner, unread: int) -> None:
        super().__init__(target.reader, unread)
        self.target = target
        self.peek = target.peek
        self.remark = target.remark
        self.to_mark: list[tuple[str, str, str]] = []  # address, signal id, digest
