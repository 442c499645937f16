"""The models as others see them: frozen values and JSON Schemas."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gitmem import records


@pytest.mark.parametrize("kind", records.KINDS)
def test_a_schema_describes_every_field(kind: str) -> None:
    """Each field of each kind says what it means, and unknown ones are allowed."""
    schema = records.schema(kind)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is True
    assert schema["properties"]["kind"]["const"] == kind
    assert [name for name, field in schema["properties"].items() if not field.get("description")] == []


def test_a_schema_of_no_kind_is_refused() -> None:
    """An unknown kind is the asker's error."""
    with pytest.raises(records.RecordError, match="not a kind"):
        records.schema("rumour")


def test_models_are_frozen_and_keep_what_they_do_not_know() -> None:
    """A record is a value; a field of a newer contract stays with it."""
    fields = {"at": "2026-11-21T20:00:00.123456Z", "name": "Planck", "event": "add", "later": 1}
    record = records.Name.model_validate(fields)

    assert record.model_extra == {"later": 1}
    with pytest.raises(ValidationError):
        record.name = "Curie"


def test_there_is_no_other_name() -> None:
    """The room gives its models by name and nothing else."""
    models = (records.Signal, records.Receipt, records.Session, records.Name, records.Node, records.Patch,
              records.Relation, records.Access, records.Audit, records.Task, records.TaskEvent, records.Claim,
                  records.Commit)  # fmt: skip
    assert {model.KIND for model in models} == set(records.KINDS)
    with pytest.raises(AttributeError):
        records.Rumour  # noqa: B018
