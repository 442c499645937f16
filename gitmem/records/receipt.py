"""The receipt record: a signal has reached a reader (the contract's A2AReceiptV1)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .base import Address, Digest, Line, Record, SignalId


class Receipt(Record):
    """One reader has received one signal. The reader's decision is computed from signals, not from receipts."""

    KIND: ClassVar[str] = "receipt"
    STREAM: ClassVar[str] = "receipts"
    MAY_DIFFER: ClassVar[tuple[str, ...]] = ("reader_session", "seen")

    kind: Literal["receipt"] = Field(default="receipt", description="Always `receipt`.")
    signal_id: SignalId = Field(description="The signal that was read.")
    reader_identity: Address = Field(
        description="The reader: an agent identity, else a session id, else `human:<mail>`."
    )
    reader_session: Address | None = Field(default=None, description="The session of the reader.")
    delivery_state: Literal["delivered", "acked", "rejected"] = Field(
        default="delivered",
        description="`acked` and `rejected` are those of importers; decisions override them.",
    )
    answers_digest: Digest = Field(description="Digest of the line that was read.")
    idempotency_key: Line | None = Field(default=None, description="The key of an importing adapter.")
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had, and that no other broadcast names; written even if empty.",
    )
