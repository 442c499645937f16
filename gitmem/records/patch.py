"""The patch record: new values for fields of nodes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .base import (
    Address,
    CommitId,
    Line,
    Message,
    NodeId,
    PatchId,
    Path,
    Record,
    ShortLine,
    Tag,
    WorkUnit,
)


class Patch(Record):
    """A change of some fields of one or more nodes. For each field the causally last change counts."""

    KIND: ClassVar[str] = "patch"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["patch"] = Field(default="patch", description="Always `patch`.")
    id: PatchId = Field(description="The id of this patch.")
    node_ids: Annotated[tuple[NodeId, ...], Field(strict=False)] = Field(
        description="The nodes that it changes."
    )
    after: Annotated[tuple[PatchId, ...], Field(strict=False)] = Field(
        default=(),
        description="The latest patches of these nodes that its writer had seen.",
    )
    clear: Annotated[
        tuple[Literal[
            "priority", "tags", "wu_id", "session_id", "lane", "paths", "sensitive", "closed", "archived",
            "deleted", "reason", "summarized_into", "metadata",
        ], ...],
        Field(strict=False),
    ] = Field(default=(), description="Fields that become empty.")  # fmt: skip
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] | None = Field(
        default=None, description="The type of its content."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] | None = Field(
        default=None, description="The lifetime."
    )
    content: Message | None = Field(default=None, description="The text.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = Field(default=None, description="The priority.")
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] = Field(default=(), description="All its tags.")
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it belongs to.")
    session_id: Address | None = Field(default=None, description="The session that it belongs to.")
    lane: ShortLine | None = Field(default=None, description="The lane for which it is relevant.")
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        default=(), description="All its files and folders."
    )
    head: CommitId | None = Field(
        default=None, description="The commit of HEAD when the node was last known to be correct."
    )
    branch: Line | None = Field(default=None, description="The branch of HEAD at that time.")
    sensitive: bool = Field(default=False, description="Whether cleanup keeps it.")
    closed: bool = Field(default=False, description="Whether it is closed.")
    archived: bool = Field(default=False, description="Whether it is archived.")
    deleted: bool = Field(default=False, description="Whether it is deleted.")
    reason: Line | None = Field(default=None, description="Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = Field(default=None, description="The summary that contains it.")
    metadata: dict[str, Any] = Field(
        default={}, description="Entries to change one by one; null removes an entry."
    )
    sender_identity: Address = Field(description="The agent or person that changed it.")
    sender_session: Address | None = Field(default=None, description="The session that changed it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
