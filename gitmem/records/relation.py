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
    id: RelationId = Field(description="The id of this record.")
    from_id: NodeId = Field(description="The node at its start: the blocker, the parent, the new node.")
    to_id: NodeId = Field(description="The node at its end: the blocked one, the child, the source.")
    type: Literal["blocks", "parent_child", "related", "discovered_from"] = Field(
        description="The type of the relation."
    )
    supersedes: bool = Field(
        default=False,
        description="Whether `from_id` supersedes `to_id`; `type` is then only for versions without this field.",
    )
    removed: bool = Field(default=False, description="Whether the relation ends.")
    after: Annotated[tuple[RelationId, ...], Field(strict=False)] = Field(
        default=(), description="The earlier records of the same relation that its writer had seen."
    )
    metadata: dict[str, Any] = Field(default={}, description="Further data.")
    sender_identity: Address = Field(description="The writer.")
    sender_session: Address | None = Field(default=None, description="The session that wrote it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
