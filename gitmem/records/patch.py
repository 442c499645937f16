"""The patch record: new values for fields of nodes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .base import Address, CommitId, Line, Message, NodeId, PatchId, Path, Record, ShortLine, Tag, WorkUnit


class Patch(Record):
    """A change of some fields of one or more nodes. For each field the causally last change counts."""

    KIND: ClassVar[str] = "patch"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["patch"] = Field(default="patch", description="Always `patch`.")
    id: PatchId = Field(description="The name of this patch.")
    node_ids: Annotated[tuple[NodeId, ...], Field(strict=False)] = Field(
        description="The nodes that it changes."
    )
    after: Annotated[tuple[PatchId, ...], Field(strict=False)] = Field(
        default=(),
        description="The patches of these nodes that its writer had seen, but for those before them.",
    )
    clear: Annotated[
        tuple[Literal[
            "priority", "tags", "wu_id", "session_id", "lane", "paths", "sensitive", "closed", "archived",
            "deleted", "reason", "summarized_into", "metadata",
        ], ...],
        Field(strict=False),
    ] = Field(default=(), description="Fields that become empty.")  # fmt: skip
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] | None = Field(
        default=None, description="What sort of thing it says."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] | None = Field(
        default=None, description="How long it matters."
    )
    content: Message | None = Field(default=None, description="The text.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = Field(default=None, description="How important it is.")
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] = Field(default=(), description="All of its tags.")
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it belongs to.")
    session_id: Address | None = Field(default=None, description="The session that it belongs to.")
    lane: ShortLine | None = Field(default=None, description="The lane that it matters in.")
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        default=(), description="All files and folders that it is about."
    )
    head: CommitId | None = Field(
        default=None, description="The commit that HEAD was at when the node was known to be right."
    )
    branch: Line | None = Field(default=None, description="The branch that HEAD was on.")
    sensitive: bool = Field(default=False, description="Whether a cleanup leaves it alone.")
    closed: bool = Field(default=False, description="Whether it is dealt with.")
    archived: bool = Field(default=False, description="Whether it is archived.")
    deleted: bool = Field(default=False, description="Whether it is deleted.")
    reason: Line | None = Field(default=None, description="Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = Field(default=None, description="The summary that holds what it says.")
    metadata: dict[str, Any] = Field(
        default={}, description="Entries that get other values, each by itself; null takes one out."
    )
    sender_identity: Address = Field(description="Who changed it.")
    sender_session: Address | None = Field(default=None, description="The session that changed it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
