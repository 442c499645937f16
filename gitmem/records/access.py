"""The access record: nodes of the memory were shown to a reader."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .base import AccessId, Address, NodeId, Record


class Access(Record):
    """One reading, with the nodes that it showed. Nodes that are read often decay more slowly."""

    KIND: ClassVar[str] = "access"
    STREAM: ClassVar[str] = "memory"

    kind: Literal["access"] = Field(default="access", description="Always `access`.")
    id: AccessId = Field(description="The id of this access.")
    node_ids: Annotated[tuple[NodeId, ...], Field(strict=False)] = Field(
        description="The nodes that were shown."
    )
    reader_identity: Address = Field(description="The reader.")
    reader_session: Address | None = Field(default=None, description="The session of the reader.")
