"""The session record: an agent's run in one worktree, from its start to its end."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    AgentIdentity,
    DisplayName,
    Line,
    Path,
    Record,
    SessionId,
    ShortLine,
    SignalId,
    TaskId,
    TextRule,
    WorkUnit,
)

CLEARABLE = (
    "wu_id", "initiative_id", "lane", "activity", "lifecycle_role", "specialty_profile", "role_alias", "role_pack",
    "capabilities", "actual_ownership_scope", "model", "branch", "task_id",
)  # fmt: skip


class Session(Record):
    """A session starts, changes or ends; with its fields at that moment."""

    KIND: ClassVar[str] = "session"
    STREAM: ClassVar[str] = "sessions"

    kind: Literal["session"] = Field(default="session", description="Always `session`.")
    session_id: SessionId = Field(description="The id of this session.")
    event: Literal["start", "change", "end"] = Field(description="The event.")
    agent_identity: AgentIdentity | None = Field(
        default=None, description="`owner:role:purpose`: who the agent is, beyond this session."
    )
    display_name: DisplayName = Field(description="The display name: 1 to 64 characters.")
    name_chosen: bool = Field(
        default=False, description="Whether the name was requested, not assigned from the pool."
    )
    clone_id: ShortLine = Field(description="The clone of the session.")
    worktree: Path | None = Field(
        default=None, description="The worktree of the session; none in a bare repository."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit of the session.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative of the session.")
    lane: ShortLine | None = Field(default=None, description="The lane of the session.")
    client: ShortLine | None = Field(
        default=None, description="The client that runs it, such as `claude-code`."
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    harness_session: Address | None = Field(
        default=None, description="The digest of the client's session id."
    )
    activity: ShortLine | None = Field(default=None, description="The current work, in its own words.")
    summary: Line | None = Field(default=None, description="What it did, said at its end.")
    lifecycle_role: ShortLine | None = Field(
        default=None, description="The part that it plays in the work, such as `reviewer`; any value is read."
    )
    specialty_profile: ShortLine | None = Field(
        default=None, description="What it is good at, such as `docs`; any value is read."
    )
    role_alias: ShortLine | None = Field(default=None, description="The alias that its role was given by.")
    role_pack: ShortLine | None = Field(
        default=None, description="The name of the vocabulary that its role was looked up in."
    )
    capabilities: Annotated[tuple[ShortLine, ...], Field(strict=False)] = Field(
        default=(), description="What it can do; capabilities give no role."
    )
    actual_ownership_scope: dict[str, Any] = Field(
        default={},
        description="What it works on: `responsibility_kinds`, `initiative_id`, `wu_ids`, `lane`, `paths`.",
    )
    model: ShortLine | None = Field(default=None, description="The model that runs it.")
    branch: Line | None = Field(default=None, description="The branch of its worktree.")
    task_id: TaskId | None = Field(default=None, description="The task that it works on.")
    clear: Annotated[
        tuple[Annotated[ShortLine, AfterValidator(TextRule(written=CLEARABLE))], ...], Field(strict=False)
    ] = Field(
        default=(),
        description="Fields that are removed; a missing field is unchanged.",
    )
    seen: Annotated[tuple[SignalId, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The broadcasts that its writer had, and that no other broadcast names; written even if empty.",
    )
