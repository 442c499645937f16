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
    id: NodeId = Field(description="The name of this node.")
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] = Field(
        description="What sort of thing it says."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] = Field(
        description="How long it matters; `project` nodes are not archived by decay."
    )
    content: Message = Field(description="The text: 1 byte to 64 KiB in UTF-8.")
    priority: Literal["P0", "P1", "P2", "P3"] | None = Field(
        default=None, description="How important it is, P0 most."
    )
    tags: Annotated[tuple[Tag, ...], Field(strict=False)] = Field(
        default=(), description="Words to find it by."
    )
    wu_id: WorkUnit | None = Field(default=None, description="The work unit that it belongs to.")
    session_id: Address | None = Field(default=None, description="The session that it belongs to.")
    lane: ShortLine | None = Field(
        default=None, description="The lane that it matters in; every lane without one."
    )
    paths: Annotated[tuple[Path, ...], Field(strict=False)] = Field(
        default=(), description="Files and folders that it is about, from the root of the work tree."
    )
    head: CommitId | None = Field(
        default=None, description="The commit that HEAD was at when this was known to be right."
    )
    branch: Line | None = Field(default=None, description="The branch that HEAD was on.")
    sensitive: bool = Field(default=False, description="Whether a cleanup leaves it alone.")
    closed: bool = Field(default=False, description="Whether it is dealt with; it blocks nothing then.")
    archived: bool = Field(
        default=False, description="Whether it is only shown when archived ones are asked for."
    )
    deleted: bool = Field(default=False, description="Whether it is gone for all purposes but this record.")
    reason: Line | None = Field(default=None, description="Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = Field(default=None, description="The summary that holds what it says.")
    updated_at: At | None = Field(
        default=None, description="Of an imported node: when it had last been changed."
    )
    metadata: dict[str, Any] = Field(default={}, description="Whatever else belongs to it.")
    sender_identity: Address = Field(description="Who wrote it.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
