"""The task record: work that somebody asks another to do, a delegation or a handoff."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    At,
    ClaimId,
    Digest,
    EventId,
    Line,
    Message,
    NodeId,
    Path,
    Record,
    ShortLine,
    TaskId,
    TextRule,
    ThreadId,
    WorkUnit,
)

PURPOSES = ("call", "delegation", "handoff")
SEMANTICS = ("at-least-once", "at-most-once")
PRIORITIES = ("P0", "P1", "P2", "P3")


class Task(Record):
    """A task as its caller wrote it. Its state is computed from the task events that name it."""

    KIND: ClassVar[str] = "task"
    STREAM: ClassVar[str] = "tasks"
    MAY_DIFFER: ClassVar[tuple[str, ...]] = (
        "sender_session", "sender_name", "requested_to", "resolved_by", "deadline", "chain", "context",  # what is given of it counts
    )  # fmt: skip

    kind: Literal["task"] = Field(default="task", description="Always `task`.")
    task_id: TaskId = Field(description="The id of this task.")
    thread_id: ThreadId = Field(description="The conversation that it belongs to.")
    message: Message = Field(description="What is to be done: 1 byte to 64 KiB of UTF-8.")
    purpose: Annotated[ShortLine, AfterValidator(TextRule(written=PURPOSES))] = Field(
        default="call", description="`call`, `delegation` or `handoff`; other values are accepted on read."
    )
    agent: Address | None = Field(
        default=None, description="Whom it is for; without it, anybody with `target_role` may take it."
    )
    requested_to: Line | None = Field(default=None, description="The addressee as the caller typed it.")
    resolved_by: Line | None = Field(
        default=None, description="How the addressee was resolved, as in a signal."
    )
    target_role: ShortLine | None = Field(
        default=None, description="The role that it is for, such as `reviewer/docs`."
    )
    requested_role: dict[str, Any] = Field(
        default={},
        description="The role in parts, which count: `lifecycle_role`, `specialty_profile`, `role_alias`, `capabilities`.",
    )
    requested_ownership_scope: dict[str, Any] = Field(
        default={},
        description="What it covers: `responsibility_kinds`, `initiative_id`, `wu_ids`, `lane`, `paths`.",
    )
    requested_model: ShortLine | None = Field(default=None, description="The model that it is for.")
    priority: Annotated[ShortLine, AfterValidator(TextRule(written=PRIORITIES))] | None = Field(
        default=None, description="P0 to P3, P0 is the highest; other values are accepted on read."
    )
    blocked_by: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="The tasks that must be finished before it."
    )
    payload: dict[str, Any] = Field(
        default={}, description="Content beyond the text: A2A parts and metadata."
    )
    context: dict[str, Any] = Field(default={}, description="The working memory that the caller hands over.")
    brief_digest: Digest | None = Field(
        default=None, description="SHA-256 of the brief that the caller attests."
    )
    artifact_path: Path | None = Field(default=None, description="The file of the brief.")
    semantics: Annotated[ShortLine, AfterValidator(TextRule(written=SEMANTICS))] = Field(
        default="at-least-once",
        description="How often it may begin, over all clones; other values are accepted on read.",
    )
    deadline: At | None = Field(default=None, description="The time after which nobody begins it.")
    chain: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="The tasks within which it was written, outermost first."
    )
    references: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="Other tasks that it refers to."
    )
    supersedes: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="Earlier tasks of its caller that it replaces."
    )
    handoff_takes: Annotated[tuple[EventId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the giver's takes of the tasks that it hands over."
    )
    handoff_tasks: Annotated[tuple[TaskId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the task of each of these takes."
    )
    handoff_claims: Annotated[tuple[ClaimId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the claims that it hands over."
    )
    handoff_threads: Annotated[tuple[ThreadId, ...], Field(strict=False)] = Field(
        default=(), description="Of a handoff: the open threads."
    )
    checkpoint: NodeId | None = Field(default=None, description="Of a handoff: the giver's last checkpoint.")
    idempotency_key: Line | None = Field(
        default=None, description="Tasks of one caller with one key are the same task."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit.")
    initiative_id: ShortLine | None = Field(default=None, description="The initiative.")
    lane: ShortLine | None = Field(default=None, description="The lane.")
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    sender_identity: Address = Field(description="The caller: an agent identity, a session id or a person.")
    sender_session: Address | None = Field(
        default=None, description="The session that wrote it, which alone may seal it."
    )
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
