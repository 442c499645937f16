"""The state of the gate of a work unit, as `gitmem gate` answers."""

from __future__ import annotations

from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..records.shown_types import BlockingSignal


class Gate(Outcome):
    """The state of the gate of a work unit for one reader.

    Attributes:
        open: Whether no signal blocks the reader, or the reader passed the gate with a reason.
        unread: The number of unread directed signals on the work unit; after a pass, those that were passed.
        unanswered: The number of further signals to which the reader owes an answer; likewise.
        signals: The blocking signals, oldest first, without their text: `why` is `unread` or `unanswered`,
            `commands` settle the signal.
        more: The number of blocking signals not listed.
        passed: Whether the reader passed the closed gate, now or before, with the record `audit_id`.
        warnings: Reasons why the answer may be wrong: lines are missing from the log.
    """

    def __init__(self, caller: Caller, wu: str | None, initiatives: Sequence[str]) -> None:
        self.open = True
        self.reader = caller.reader
        self.wu_id = wu
        self.initiatives = list(initiatives)
        self.unread = 0
        self.unanswered = 0
        self.signals: list[BlockingSignal] = []
        self.more = 0
        self.passed = False
        self.audit_id: str | None = None
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def about(self) -> str:
        """The work unit and the initiatives, for messages."""
        parts = [self.wu_id or "", *self.initiatives]
        return ", ".join(part for part in parts if part)
