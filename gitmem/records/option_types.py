"""The options that set fields of signals. Written by `tools/compile_kinds.py`: don't edit."""

# One option, one line:
# fmt: off
from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (the types are evaluated for commands and tools)
from typing import NotRequired, TypedDict


class ReplyFieldOptions(TypedDict):
    """The options that set fields of a reply.

    Attributes:
        requires_ack: Ask for AGREE or REJECT.
        idempotency_key: Repeating a signal with the same key and content records nothing new.
    """
    requires_ack: NotRequired[bool]
    idempotency_key: NotRequired[str | None]


class SignalFieldOptions(ReplyFieldOptions):
    """The options that set fields of a signal.

    Attributes:
        intent: INFO, PROPOSE, COUNTER, AGREE or REJECT.
        need: How many recipients of a PROPOSE have to agree (default: all).
        veto: With --need: recipients, also without --to, without whose AGREE it is not agreed on.
        interrupt: Urgency: advisory or priority.
        wu: Work unit: WU-123, #123 or fix-login.
        initiative: Initiative.
        lane: Lane.
        target_role: Role that the signal is meant for; selects no recipients.
        delegation_id: Delegation that the signal belongs to.
        artifact: File that the signal refers to.
    """
    intent: NotRequired[str | None]
    need: NotRequired[int | str | None]
    veto: NotRequired[Sequence[str] | None]
    interrupt: NotRequired[str | None]
    wu: NotRequired[str | None]
    initiative: NotRequired[str | None]
    lane: NotRequired[str | None]
    target_role: NotRequired[str | None]
    delegation_id: NotRequired[str | None]
    artifact: NotRequired[str | None]
