"""The claim record: a session says which paths it is about to change, and until when."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    At,
    ClaimId,
    Line,
    Path,
    Record,
    ShortLine,
    TaskId,
    TextRule,
    WorkUnit,
)

CLAIM_EVENTS = ("claim", "renew", "release")
MODES = ("exclusive", "shared")


class Claim(Record):
    """A claim on paths begins, gets more time, or ends. Claims are advice and always expire."""

    KIND: ClassVar[str] = "claim"
    STREAM: ClassVar[str] = "claims"

    kind: Literal["claim"] = Field(default="claim", description="Always `claim`.")
    claim_id: ClaimId = Field(description="The id of the claim, the same in all its records.")
    event: Annotated[ShortLine, AfterValidator(TextRule(written=CLAIM_EVENTS))] = Field(
        description="claim, renew or release; other values are accepted on read and ignored."
    )
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        description="Paths from the root of the work tree, with `*`, `?` and `**`; a folder covers its content."
    )
    mode: Annotated[ShortLine, AfterValidator(TextRule(written=MODES))] = Field(
        default="exclusive", description="`exclusive` or `shared`; other values are accepted on read."
    )
    until: At | None = Field(default=None, description="Its end; missing in a release.")
    reason: Line | None = Field(default=None, description="Why, in the sender's words.")
    task_id: TaskId | None = Field(default=None, description="The task that it belongs to; it ends with it.")
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    after: Annotated[tuple[ClaimId, ...], Field(strict=False)] = Field(
        default=(), description="The claims on the same paths that its writer had seen."
    )
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
