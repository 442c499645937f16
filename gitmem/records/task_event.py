"""The task event record: one step in the life of a task."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    At,
    Digest,
    EventId,
    Line,
    Message,
    Path,
    Record,
    ShortLine,
    TaskId,
    TextRule,
)

EVENTS = ("launch", "take", "renew", "release", "status", "artifact", "message", "cancel", "seal", "close", "escalate")  # fmt: skip
STATES = ("working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected")
LEVELS = ("warning", "error", "critical")


class TaskEvent(Record):
    """Somebody takes a task, works on it, answers, or decides its outcome."""

    KIND: ClassVar[str] = "task_event"
    STREAM: ClassVar[str] = "tasks"

    kind: Literal["task_event"] = Field(default="task_event", description="Always `task_event`.")
    event_id: EventId = Field(description="The id of this event.")
    task_id: TaskId = Field(description="The task.")
    event: Annotated[ShortLine, AfterValidator(TextRule(written=EVENTS))] = Field(
        description="What happened; other values than those of format.md are accepted on read and ignored."
    )
    after: Annotated[tuple[EventId, ...], Field(strict=False)] = Field(
        default=(), description="The latest events of the task that its writer had seen."
    )
    take: EventId | None = Field(default=None, description="The take under which its writer works.")
    until: At | None = Field(default=None, description="The end of the lease that a take or a renewal gives.")
    state: Annotated[ShortLine, AfterValidator(TextRule(written=STATES))] | None = Field(
        default=None, description="The state that a status reports, or that a seal or close decides."
    )
    outcome: EventId | None = Field(
        default=None, description="The event whose result a seal or close makes the outcome."
    )
    answers_digest: Digest | None = Field(
        default=None, description="Digest of the line of that event, so that its text cannot be replaced."
    )
    message: Message | None = Field(default=None, description="The text, unchanged.")
    payload: dict[str, Any] = Field(
        default={}, description="Content beyond the text: `error`, `artifact`, `commit`, `branch`."
    )
    append: bool = Field(default=False, description="Whether an artifact continues the one before.")
    last_chunk: bool = Field(default=False, description="Whether an artifact is complete.")
    reason: Line | None = Field(default=None, description="Why.")
    level: Annotated[ShortLine, AfterValidator(TextRule(written=LEVELS))] | None = Field(
        default=None, description="Of an escalation: warning, error or critical."
    )
    actual_role: dict[str, Any] = Field(
        default={}, description="Of a take or launch: the role of the worker, in parts as in a task."
    )
    actual_ownership_scope: dict[str, Any] = Field(
        default={}, description="Of a take or launch: what the worker covers, as in a task."
    )
    requested_model: ShortLine | None = Field(
        default=None, description="Of a launch: the model that was asked for."
    )
    model: ShortLine | None = Field(default=None, description="The model of the worker.")
    client: ShortLine | None = Field(default=None, description="The client of the worker.")
    worktree: Path | None = Field(default=None, description="The folder's name of the worker's worktree.")
    branch: Line | None = Field(default=None, description="The branch of the worker's worktree.")
    launch: EventId | None = Field(default=None, description="Of a take: the launch that led to it.")
    relaunch_of: EventId | None = Field(default=None, description="Of a launch: the launch that it repeats.")
    attempt: ShortLine | None = Field(default=None, description="Of a launch: the label of this attempt.")
    wave: ShortLine | None = Field(default=None, description="Of a launch: its wave.")
    lane: ShortLine | None = Field(default=None, description="Of a launch: its lane.")
    claimed_mode: ShortLine | None = Field(
        default=None, description="Of a launch: how the work unit was claimed."
    )
    handoff_path: Path | None = Field(default=None, description="Of a launch: the file with the brief.")
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
