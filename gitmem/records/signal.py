"""The signal record: a message of an agent or a person to others (the contract's A2ASignalV1)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    Digest,
    Line,
    Message,
    Path,
    Record,
    ShortLine,
    SignalId,
    TextRule,
    ThreadId,
    WorkUnit,
)

INTERRUPTS = ("priority", "advisory")
RESOLUTIONS = ("exact", "folded", "alias", "prefix", "fuzzy")


class Signal(Record):
    """A message with its sender, recipients and subject."""

    KIND: ClassVar[str] = "signal"
    STREAM: ClassVar[str] = "signals"
    KEPT: ClassVar[tuple[str, ...]] = ("recipients",)
    FIRST_OF: ClassVar[dict[str, str]] = {"target_agent": "recipients"}

    kind: Literal["signal"] = Field(default="signal", description="Always `signal`.")
    signal_id: SignalId = Field(description="The name of this signal, for replies and receipts.")
    sender_identity: Address = Field(
        description="Who says it: an agent identity, else a session id, else `human:<mail>`."
    )
    sender_session: Address | None = Field(default=None, description="The session that sent it.")
    sender_name: Line | None = Field(default=None, description="The sender's display name when it was sent.")
    sender_headline: Line | None = Field(
        default=None, description="What others saw of the sender when it was sent."
    )
    via: Address | None = Field(
        default=None, description="The session that recorded this in the sender's name."
    )
    recipients: Annotated[tuple[Address, ...], Field(strict=False)] = Field(
        default=(), description="Whom it is for: agent identities, session ids, people; empty is a broadcast."
    )
    target_agent: Address | None = Field(
        default=None,
        description="Deprecated alias of the first recipient; read where `recipients` is missing.",
        deprecated=True,
    )
    requested_to: Annotated[tuple[Line, ...], Field(strict=False)] = Field(
        default=(), description="What the sender typed for each recipient."
    )
    resolved_by: Annotated[
        tuple[Annotated[Line, AfterValidator(TextRule(written=RESOLUTIONS))], ...], Field(strict=False)
    ] = Field(default=(), description="How each was resolved: exact, folded, alias, prefix or fuzzy.")
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    thread_id: ThreadId | None = Field(default=None, description="The conversation that it belongs to.")
    reply_to: SignalId | None = Field(default=None, description="Id of the signal to answer.")
    after: Annotated[tuple[SignalId, ...], Field(strict=False)] = Field(
        default=(), description="What its writer had last seen of the thread: the edges of causality."
    )
    answers_digest: Digest | None = Field(
        default=None, description="Digest of the line that it answers, so that its text can't be swapped."
    )
    intent: Literal["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"] = Field(
        default="INFO", description="What it does in its thread."
    )
    interrupt_class: Annotated[ShortLine, AfterValidator(TextRule(written=INTERRUPTS))] = Field(
        default="advisory",
        description="`priority` or `advisory`; other values are accepted on read.",
        examples=list(INTERRUPTS),
    )
    requires_ack: bool = Field(default=False, description="Whether the sender waits for AGREE or REJECT.")
    message: Message = Field(description="The text, as it was written: 1 byte to 64 KiB of UTF-8.")
    idempotency_key: Line | None = Field(
        default=None, description="The same key of the same sender is the same signal, sent once."
    )
    origin: ShortLine = Field(
        default="local", description="`local`, or the name of the adapter that imported it."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it is about.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative that it is about.")
    lane: ShortLine | None = Field(default=None, description="The lane that it is about.")
    sender_role: ShortLine | None = Field(default=None, description="The role that its sender has.")
    target_role: ShortLine | None = Field(default=None, description="The role that it is meant for.")
    delegation_id: ShortLine | None = Field(default=None, description="The delegation that it belongs to.")
    artifact_path: Path | None = Field(default=None, description="A file that it points to.")
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had and that no other broadcast names; written even when empty.",
    )
