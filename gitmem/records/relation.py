"""The relation record: a link between two nodes of the memory."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .base import Address, Line, NodeId, Record, RelationId


class Relation(Record):
    """One node gets or loses a relation to another. The causally last record counts."""

    KIND: ClassVar[str] = "relation"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["relation"] = Field(default="relation", description="Always `relation`.")
    id: RelationId = Field(description="The name of this record.")
    from_id: NodeId = Field(
        description="The node that it starts from: the blocker, the parent, what was made."
    )
    to_id: NodeId = Field(description="The node that it leads to: the blocked, the child, the source.")
    type: Literal["blocks", "parent_child", "related", "discovered_from"] = Field(
        description="Which relation."
    )
    removed: bool = Field(default=False, description="Whether it ends.")
    after: Annotated[tuple[RelationId, ...], Field(strict=False)] = Field(
        default=(), description="The records of this very relation that its writer had seen."
    )
    metadata: dict[str, Any] = Field(default={}, description="Whatever else belongs to it.")
    sender_identity: Address = Field(description="Who said so.")
    sender_session: Address | None = Field(default=None, description="The session that said so.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
