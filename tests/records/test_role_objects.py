"""The objects of roles have a schema that other programs can check, without the words of any pack."""

from __future__ import annotations

import json

import pytest

from gitmem import records
from gitmem.agents import descriptors, vocabulary


def test_a_descriptor_and_a_scope_have_the_fields_of_the_contract() -> None:
    """R6, R7: which are required, and which are not."""
    role, owned = records.schema("AgentRoleDescriptor"), records.schema("OwnershipScope")

    assert role["required"] == ["lifecycle_role", "specialty_profile", "capabilities"]
    assert set(role["properties"]) - set(role["required"]) == {"role_alias"}
    assert owned["required"] == ["responsibility_kinds"]
    assert set(owned["properties"]) - set(owned["required"]) == {"initiative_id", "wu_ids", "lane", "paths"}
    assert set(descriptors.KEYS.values()) == set(owned["properties"])


def test_the_schemas_have_no_vocabulary() -> None:
    """R1: a pack has it."""
    text = json.dumps([records.schema(name) for name in records.OBJECTS])

    assert not any(f'"{word}"' in text for word in vocabulary.builtin().lifecycle_roles)
    with pytest.raises(records.RecordError):
        records.schema("role")


def test_r8_a_role_id_is_rendered_and_never_stored() -> None:
    """No record has one, and one that somebody writes into a record changes nothing: the two parts count."""
    assert not [kind for kind in records.KINDS if "role_id" in records.schema(kind)["properties"]]
    assert "role_id" not in records.schema("AgentRoleDescriptor")["properties"]
    asked = {"lifecycle_role": "implementer", "specialty_profile": "test", "role_id": "reviewer/docs"}
    actual = {"lifecycle_role": "reviewer", "specialty_profile": "docs", "role_id": "reviewer/docs"}

    assert (descriptors.role_text(asked), descriptors.role_text(actual)) == (
        "implementer/test",
        "reviewer/docs",
    )
    assert descriptors.compare(asked, actual).role_mismatch is True


@pytest.mark.parametrize("kind", ["signal", "task"])
def test_r30_a_message_stays_required(kind: str) -> None:
    """The fields beside it do not replace what people read."""
    assert "message" in records.schema(kind)["required"]
    assert records.schema(kind)["properties"]["message"]["minLength"] == 1
