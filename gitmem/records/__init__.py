"""The kinds of record: a frozen model of each, and their one-line form.

`line` and `read` convert records to bytes and back. Importing this package imports neither pydantic nor json.
"""

from __future__ import annotations

from ..errors import RecordError, SecretError
from .lines import (
    FORGOTTEN,
    LINE_MAX_BYTES,
    SALT_CHARACTERS,
    addressed,
    explain_unreadable,
    fits,
    line,
    read,
)
from .table import CLEARABLE, FILLED, KEYED, MODELS, NAMELESS, NOT_SHOWN, NOUNS, REQUIRED, STREAMS, TEXTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .kinds import (
        Access,
        Attestation,
        Audit,
        Claim,
        Commit,
        Forget,
        Node,
        Patch,
        Receipt,
        Relation,
        Session,
        Signal,
        Task,
        TaskEvent,
        Trust,
    )
    from .record_types import ReadKind, Show

KINDS = tuple(MODELS)
ID_FIELDS = {kind: fields[0] for kind, fields in REQUIRED.items()}  # the id is each model's first field

__all__ = [
    "CLEARABLE",
    "FORGOTTEN",
    "ID_FIELDS",
    "KEYED",
    "KINDS",
    "LINE_MAX_BYTES",
    "NAMELESS",
    "NOUNS",
    "SALT_CHARACTERS",
    "STREAMS",
    "TEXTS",
    "Access",
    "Attestation",
    "Audit",
    "Claim",
    "Commit",
    "Forget",
    "Node",
    "Patch",
    "Receipt",
    "RecordError",
    "Relation",
    "SecretError",
    "Session",
    "Signal",
    "Task",
    "TaskEvent",
    "Trust",
    "addressed",
    "explain_unreadable",
    "fits",
    "is_forgotten",
    "line",
    "read",
    "read_kind",
    "schema",
    "shown",
]


def _read_kind(kind: str, line: bytes) -> Any:
    """Return the record of a line if it is of this kind, else None."""
    record = read(line)
    return record if record is not None and record["kind"] == kind else None


read_kind: ReadKind = _read_kind


def is_forgotten(record: Mapping[str, object]) -> bool:
    """Return whether the texts of a record were forgotten: others stand in their place."""
    return record.get("texts") is not None


OBJECTS = ("AgentRoleDescriptor", "OwnershipScope")  # in fields of records, with a schema of their own
_NOT_SHOWN = {kind: frozenset(names) for kind, names in NOT_SHOWN.items()}


def _shown(record: Mapping[str, object], *, kind: bool = False) -> Any:
    """Return a record with the contract's field names and `created_at`, without empty fields that its lines may lack.

    Args:
        kind: Whether to name its kind, too.
    """
    kind_of = str(record["kind"])
    left_out = _NOT_SHOWN[kind_of]
    fields: dict[str, object] = {"kind": kind_of} if kind else {}
    fields["created_at"] = record["at"]
    fields.update(
        (key, value)
        for key, value in record.items()
        if key not in left_out
        and value is not None
        and value != ""
        and (value != [] or key in FILLED[kind_of])
    )
    if is_forgotten(record):
        fields["forgotten"] = True
    return fields


shown: Show = _shown


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the lines of a kind, as they are read, or of one of `OBJECTS` in them.

    Raises:
        RecordError: There is no such kind.
    """
    if kind not in MODELS and kind not in OBJECTS:
        named = ", ".join((*KINDS, *OBJECTS))
        raise RecordError(f"{kind!a} is not a kind of record or an object in one; valid are {named}")
    from . import kinds

    return kinds.schema(kind)


def __getattr__(name: str) -> Any:
    """Import a model by its class name on first use."""
    if name in MODELS.values():
        from . import kinds

        return getattr(kinds, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
