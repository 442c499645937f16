"""The node record: a finding, a step or a decision that an agent wrote into the memory for later readers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .base import Address, At, CommitId, Line, Message, NodeId, Path, Record, ShortLine, Tag, WorkUnit


class Node(Record):
    """A node as it was written. Its present state is computed from the patches that name it."""

    KIND: ClassVar[str] = "node"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["node"] = Field(default="node", description="Always `node`.")
    id: NodeId = Field(description="The id of this node.")
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] = Field(
        description="The type of its content."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] = Field(
        description="The lifetime; decay does not archive `project` nodes."
    )
    content: Message = Field(description="The text: 1 byte to 64 KiB in UTF-8.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = Field(
        default=None, description="The priority; P0 is the highest."
    )
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] = Field(
        default=(), description="Tags to find it by."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it belongs to.")
    session_id: Address | None = Field(default=None, description="The session that it belongs to.")
    lane: ShortLine | None = Field(
        default=None, description="The lane for which it is relevant; without one, every lane."
    )
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        default=(), description="Its files and folders, relative to the root of the work tree."
    )
    head: CommitId | None = Field(
        default=None, description="The commit of HEAD when its content was last known to be correct."
    )
    branch: Line | None = Field(default=None, description="The branch of HEAD at that time.")
    sensitive: bool = Field(default=False, description="Whether cleanup keeps it.")
    closed: bool = Field(default=False, description="Whether it is closed; a closed node blocks nothing.")
    archived: bool = Field(default=False, description="Whether it is archived: shown only on request.")
    deleted: bool = Field(default=False, description="Whether it is deleted; only its records remain.")
    reason: Line | None = Field(default=None, description="Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = Field(default=None, description="The summary that contains it.")
    updated_at: At | None = Field(default=None, description="The last change of an imported node.")
    metadata: dict[str, Any] = Field(default={}, description="Further data.")
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
