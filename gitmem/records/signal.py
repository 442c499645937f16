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
    TaskId,
    TextRule,
    ThreadId,
    WorkUnit,
)

INTERRUPTS = ("priority", "advisory")
RESOLUTIONS = ("exact", "folded", "alias", "role", "prefix", "fuzzy")


class Signal(Record):
    """A message with its sender, recipients and subject."""

    KIND: ClassVar[str] = "signal"
    STREAM: ClassVar[str] = "signals"
    KEPT: ClassVar[tuple[str, ...]] = ("recipients",)
    FIRST_OF: ClassVar[dict[str, str]] = {"target_agent": "recipients"}
    MAY_DIFFER: ClassVar[tuple[str, ...]] = (
        "sender_session", "sender_name", "sender_headline", "sender_role", "target_agent", "requested_to", "resolved_by", "after",
        "answers_digest", "seen", "interrupt_class",  # the turn limit of one clone may lower it
    )  # fmt: skip

    kind: Literal["signal"] = Field(default="signal", description="Always `signal`.")
    signal_id: SignalId = Field(description="The id of this signal, for replies and receipts.")
    sender_identity: Address = Field(
        description="The sender: an agent identity, else a session id, else `human:<mail>`."
    )
    sender_session: Address | None = Field(default=None, description="The session that sent it.")
    sender_name: Line | None = Field(default=None, description="The sender's display name when it was sent.")
    sender_headline: Line | None = Field(default=None, description="The sender's headline when it was sent.")
    via: Address | None = Field(
        default=None, description="The session that recorded this in the sender's name."
    )
    recipients: Annotated[tuple[Address, ...], Field(strict=False)] = Field(
        default=(),
        description="The recipients: agent identities, session ids, people; empty for a broadcast.",
    )
    target_agent: Address | None = Field(
        default=None,
        description="Deprecated alias of the first recipient; used if `recipients` is missing.",
        deprecated=True,
    )
    requested_to: Annotated[tuple[Line, ...], Field(strict=False)] = Field(
        default=(), description="The recipients as the sender typed them."
    )
    resolved_by: Annotated[
        tuple[Annotated[Line, AfterValidator(TextRule(written=RESOLUTIONS))], ...], Field(strict=False)
    ] = Field(
        default=(),
        description="How each recipient was resolved: exact, folded, alias, role, prefix or fuzzy.",
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    thread_id: ThreadId | None = Field(default=None, description="The conversation that it belongs to.")
    reply_to: SignalId | None = Field(default=None, description="Id of the signal to answer.")
    after: Annotated[tuple[SignalId, ...], Field(strict=False)] = Field(
        default=(), description="The latest signals of the thread that its writer had seen."
    )
    answers_digest: Digest | None = Field(
        default=None, description="Digest of the answered line, so that its text cannot be replaced."
    )
    intent: Literal["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"] = Field(
        default="INFO", description="The role of the signal in its thread."
    )
    interrupt_class: Annotated[ShortLine, AfterValidator(TextRule(written=INTERRUPTS))] = Field(
        default="advisory",
        description="`priority` or `advisory`; other values are accepted on read.",
        examples=list(INTERRUPTS),
    )
    requires_ack: bool = Field(default=False, description="Whether the sender waits for AGREE or REJECT.")
    message: Message = Field(description="The text, unchanged: 1 byte to 64 KiB of UTF-8.")
    idempotency_key: Line | None = Field(
        default=None, description="Signals of one sender with one key are the same signal."
    )
    origin: ShortLine = Field(
        default="local", description="`local`, or the name of the adapter that imported it."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative.")
    lane: ShortLine | None = Field(default=None, description="The lane.")
    sender_role: ShortLine | None = Field(default=None, description="The role of the sender.")
    target_role: ShortLine | None = Field(default=None, description="The role of the recipient.")
    delegation_id: ShortLine | None = Field(default=None, description="The delegation that it belongs to.")
    task_id: TaskId | None = Field(default=None, description="The task that it is about.")
    artifact_path: Path | None = Field(default=None, description="A file that it points to.")
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had, and that no other broadcast names; written even if empty.",
    )
