"""Signals: send and answer them, fold threads, read the inbox, pass the gate.

May import sessions and what is below it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What a signal does in its thread; the first where nothing else is said.
INTENTS = ("INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT")
ASKS = ("PROPOSE", "COUNTER")  # wants decisions
DECISIONS = ("AGREE", "REJECT", "COUNTER")


def has_conflict(fields: Mapping[str, object]) -> bool:
    """Return whether a signal is shown as one of several conflicting lines: no command answers it."""
    return bool(fields.get("conflict"))
