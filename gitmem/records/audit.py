"""The audit record: a caller bypassed a rule, and gave a reason."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .base import Address, AuditId, Line, Message, Record, ShortLine, SignalId, WorkUnit


class Audit(Record):
    """One exception to a rule, with its reason. It changes no state."""

    KIND: ClassVar[str] = "audit"
    STREAM: ClassVar[str] = "audits"

    kind: Literal["audit"] = Field(default="audit", description="Always `audit`.")
    audit_id: AuditId = Field(description="The id of this record.")
    action: ShortLine = Field(description="The rule that was bypassed: `gate` or `checkpoint-gate`.")
    reason: Message = Field(description="The reason, in the sender's words.")
    reader_identity: Address = Field(description="The reader whose signals blocked it.")
    signal_ids: Annotated[tuple[SignalId, ...], Field(strict=False)] = Field(
        default=(), description="The signals that blocked."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative.")
    sender_identity: Address = Field(description="The agent or person that did it.")
    sender_session: Address | None = Field(default=None, description="The session that did it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
