"""Send and answer signals, fold threads, read the inbox, check the gate.

May import sessions and the packages below it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records.record_types import ShownSignal, SignalRecord

# The kinds of signal in a thread; the first is the default.
INTENTS = ("INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT")


def check_intent(name: str) -> str:
    """Return an intent in upper case.

    Raises:
        UsageError: It is not one of INTENTS.
    """
    upper = name.upper()
    if upper not in INTENTS:
        from ..commit_message import sanitize
        from ..errors import UsageError

        raise UsageError(
            f"Invalid intent: {sanitize(upper)}. Nothing was written.",
            hint=f"Choose from {', '.join(INTENTS)}.",
            code="bad-intent",
            suggestions=[each for each in INTENTS if each[:1] == upper[:1]],
        )
    return upper


def may_contradict(record: SignalRecord) -> bool:
    """Return whether a signal names a task, or may say that a work unit is done: see `task_records`."""
    return bool(
        record.get("task_id")
        or record.get("delegation_id")
        or (record.get("idempotency_key") and not record["recipients"])
    )


def has_conflict(fields: ShownSignal) -> bool:
    """Return whether a signal is displayed as one of several conflicting lines. No command answers these."""
    return "conflict" in fields
