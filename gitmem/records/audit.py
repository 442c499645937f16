"""The audit record: a caller bypassed a rule, and gave a reason."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .base import Address, AuditId, Line, Message, Record, ShortLine, SignalId, WorkUnit


class Audit(Record):
    """One exception from a rule, with the reason. It changes no state: it documents the exception for readers."""

    KIND: ClassVar[str] = "audit"
    STREAM: ClassVar[str] = "audits"

    kind: Literal["audit"] = Field(default="audit", description="Always `audit`.")
    audit_id: AuditId = Field(description="The name of this record.")
    action: ShortLine = Field(description="The rule that was passed by; `gate` is the one that there is.")
    reason: Message = Field(description="Why, in the words of whoever did.")
    reader_identity: Address = Field(description="Whose signals stood in the way.")
    signal_ids: Annotated[tuple[SignalId, ...], Field(strict=False)] = Field(
        default=(), description="The signals that stood in the way."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it was about.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative that it was about.")
    sender_identity: Address = Field(description="Who did it.")
    sender_session: Address | None = Field(default=None, description="The session that did it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
