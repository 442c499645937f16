"""The objects of roles that fields of records and answers contain, for `gitmem schema`.

They contain no vocabulary: its words belong to packs, and readers accept others. What is not a text or a list of texts
is ignored on read (`gitmem.roles.scope.read`), so these models check nothing.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class AgentRoleDescriptor(BaseModel):
    """The role of an agent. Its two parts count; `lifecycle_role/specialty_profile` only shows them."""

    model_config = ConfigDict(extra="allow")

    lifecycle_role: str = Field(description="The phase of the work that the agent owns.")
    specialty_profile: str = Field(description="The specialized view that it brings.")
    role_alias: str | None = Field(default=None, description="The name that the role was given by.")
    capabilities: list[str] = Field(description="What it can do: no substitute for the role.")


class OwnershipScope(BaseModel):
    """What an agent is responsible for."""

    model_config = ConfigDict(extra="allow")

    responsibility_kinds: list[str] = Field(description="The kinds of responsibility; empty if unknown.")
    initiative_id: str | None = Field(default=None, description="The initiative.")
    wu_ids: list[str] = Field(default=[], description="The work units.")
    lane: str | None = Field(default=None, description="The lane.")
    paths: list[str] = Field(default=[], description="Paths from the top of the work tree; `*` and `**`.")


OBJECTS = (AgentRoleDescriptor, OwnershipScope)


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an object by the name of its model."""
    (model,) = (each for each in OBJECTS if each.__name__ == name)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
