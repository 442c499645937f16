"""The name record: a change of the pool from which sessions get their display names."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from .base import Address, DisplayName, Line, Record


class Name(Record):
    """A name is added to the pool or removed from it."""

    KIND: ClassVar[str] = "name"
    STREAM: ClassVar[str] = "names"

    kind: Literal["name"] = Field(default="name", description="Always `name`.")
    name: DisplayName = Field(description="The name: 1 to 64 characters.")
    event: Literal["add", "remove"] = Field(description="Whether the pool gains or loses it.")
    sender_identity: Address | None = Field(
        default=None, description="The agent or person that changed the pool."
    )
    sender_session: Address | None = Field(default=None, description="The session that changed it.")
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
