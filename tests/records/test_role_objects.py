"""The objects of roles have a schema that other programs can check, without the words of any pack."""

from __future__ import annotations

import json

import pytest

from gitmem import records
from gitmem.roles import roles_file, scope


def test_a_descriptor_and_a_scope_have_the_fields_of_the_contract() -> None:
    """R6, R7: which are required, and which are not."""
    role, owned = records.schema("AgentRoleDescriptor"), records.schema("OwnershipScope")

    assert role["required"] == ["lifecycle_role", "specialty_profile", "capabilities"]
    assert set(role["properties"]) - set(role["required"]) == {"role_alias"}
    assert owned["required"] == ["responsibility_kinds"]
    assert set(owned["properties"]) - set(owned["required"]) == {"initiative_id", "wu_ids", "lane", "paths"}
    assert set(scope.KEYS.values()) == set(owned["properties"])


def test_the_schemas_have_no_vocabulary() -> None:
    """R1: a pack has it."""
    text = json.dumps([records.schema(name) for name in records.OBJECTS])

    assert not any(f'"{word}"' in text for word in roles_file.builtin().lifecycle_roles)
    with pytest.raises(records.RecordError):
        records.schema("role")
