"""Send and answer signals, fold threads, read the inbox, check the gate.

May import sessions and the packages below it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records.shown_types import ShownSignal

# The kinds of signal in a thread; the first is the default.
INTENTS = ("INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT")
ASKS = ("PROPOSE", "COUNTER")  # intents that ask for decisions
DECISIONS = ("AGREE", "REJECT", "COUNTER")


def has_conflict(fields: ShownSignal) -> bool:
    """Return whether a signal is displayed as one of several conflicting lines. No command answers these."""
    return "conflict" in fields
