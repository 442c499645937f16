"""The session record: an agent's run in one worktree, from its start to its end."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    AgentIdentity,
    DisplayName,
    Path,
    Record,
    SessionId,
    ShortLine,
    SignalId,
    TextRule,
    WorkUnit,
)

CLEARABLE = ("wu_id", "initiative_id", "lane", "activity")


class Session(Record):
    """A session starts, changes or ends; with its fields at that moment."""

    KIND: ClassVar[str] = "session"
    STREAM: ClassVar[str] = "sessions"

    kind: Literal["session"] = Field(default="session", description="Always `session`.")
    session_id: SessionId = Field(description="The name of this session.")
    event: Literal["start", "change", "end"] = Field(description="What happened to it.")
    agent_identity: AgentIdentity | None = Field(
        default=None, description="`owner:role:purpose`: who the agent is, beyond this session."
    )
    display_name: DisplayName = Field(description="What others call it: 1 to 64 characters.")
    name_chosen: bool = Field(
        default=False, description="Whether that name was asked for, rather than given by the pool."
    )
    clone_id: ShortLine = Field(description="The clone that it works in.")
    worktree: Path | None = Field(
        default=None, description="The worktree that it works in; none in a bare repository."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it works on.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative that it works on.")
    lane: ShortLine | None = Field(default=None, description="The lane that it works in.")
    client: ShortLine | None = Field(
        default=None, description="The harness that runs it, such as `claude-code`."
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    harness_session: Address | None = Field(default=None, description="The harness's own id of it.")
    activity: ShortLine | None = Field(default=None, description="What it does now, in its own words.")
    clear: Annotated[
        tuple[Annotated[ShortLine, AfterValidator(TextRule(written=CLEARABLE))], ...], Field(strict=False)
    ] = Field(
        default=(),
        description="Fields that it has no longer; one that is merely not there stays as it was.",
    )
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had and that no other broadcast names; written even when empty.",
    )
