"""Compare what was requested with what a worker says it is. Both stay in the records; the difference is only computed.

Aliases and capabilities are not compared: they say how a worker is called and what it could do, not what its role is.
"""

from __future__ import annotations

from ..outcome import Outcome
from ..records.ids import role_id, unit_key
from ..text.name_matching import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .scope import OwnershipScope

    Descriptor = Mapping[str, Any]

PARTS = ("lifecycle_role", "specialty_profile")
REQUESTED = ("requested_role", "requested_ownership_scope", "requested_model")
ACTUAL = ("actual_role", "actual_ownership_scope", "model")
VALUES_SHOWN, VALUE_SHOWN = 3, 80  # values of a list, and characters of each
_LABELS = {
    "initiative_id": "the initiative", "wu_ids": "the work units", "lane": "the lane",
    "responsibility_kinds": "the responsibilities", "paths": "the paths",
}  # fmt: skip
# The fields of every answer about a task and whoever works on it.
COMPARED = (*REQUESTED, *ACTUAL, "role_mismatch", "scope_mismatch", "scope_fields", "model_mismatch")


class Mismatch(Outcome):
    """The differences between a request and a worker. Each is None if one side says nothing of it.

    Attributes:
        role_mismatch: Whether the role differs, by its two parts.
        scope_mismatch: Whether the worker's scope lacks something of the requested one.
        scope_fields: The fields in which it does.
        model_mismatch: Whether the model differs.
    """

    def __init__(self) -> None:
        self.role_mismatch: bool | None = None
        self.scope_mismatch: bool | None = None
        self.scope_fields: list[str] = []
        self.model_mismatch: bool | None = None

    @property
    def is_any(self) -> bool:
        """Whether anything differs."""
        return bool(self.role_mismatch or self.scope_mismatch or self.model_mismatch)


def fields_of(asked: Descriptor, said: Descriptor) -> dict[str, Any]:
    """Return the fields `COMPARED` of a task and a take of it.

    Args:
        asked: The task, or the part of it that requests something.
        said: The take, or the part of it that says what the worker is; empty while nobody has the task.
    """
    values: dict[str, Any] = {
        **{name: asked.get(name) for name in REQUESTED},
        **{name: said.get(name) for name in ACTUAL},
    }
    found = compare_fields(values)
    return {**values, **found.as_json()}


def set_fields(answer: object, values: Descriptor) -> None:
    """Set the fields `COMPARED` in an answer that has them as attributes."""
    for name in COMPARED:
        setattr(answer, name, values[name])


def compare_fields(values: Descriptor) -> Mismatch:
    """Return the differences between the fields `REQUESTED` and `ACTUAL` of one object, which anybody may have written."""
    from . import scope

    return compare(
        *(values.get(name) for name in ("requested_role", "actual_role")),
        *(scope.read(values.get(f"{side}_ownership_scope")) for side in ("requested", "actual")),
        *(values.get(name) for name in ("requested_model", "model")),
    )


def compare(
    requested_role: Descriptor | None,
    actual_role: Descriptor | None,
    requested_scope: OwnershipScope | None = None,
    actual_scope: OwnershipScope | None = None,
    requested_model: str | None = None,
    actual_model: str | None = None,
) -> Mismatch:
    """Return the differences.

    Args:
        requested_role: An object with `lifecycle_role` and `specialty_profile`; one without a profile means any.
        actual_role: Such an object of the worker.
        requested_scope: Read by `scope.read`.
        actual_scope: That of the worker.
        requested_model: A name or a part of it, such as a family.
        actual_model: The worker's.
    """
    found = Mismatch()
    requested, actual = _parts(requested_role), _parts(actual_role)
    if requested[0] and actual[0]:
        found.role_mismatch = requested[0] != actual[0] or requested[1] not in (None, actual[1])
    if requested_scope is not None and actual_scope is not None:
        found.scope_fields = _missing(requested_scope, actual_scope)
        found.scope_mismatch = bool(found.scope_fields)
    if requested_model and actual_model:
        found.model_mismatch = f"-{fold(requested_model)}-" not in f"-{fold(actual_model)}-"
    return found


def role_text(role: Descriptor | None) -> str | None:
    """Return a role as it is shown; None if there is none."""
    return role_id(*_parts(role))


def sentence(name: str, values: Descriptor, instead_of: str | None = None) -> str | None:
    """Return the differences in a sentence about the worker of this name; None if there are none.

    Args:
        name: The worker's name.
        values: The fields `COMPARED`.
        instead_of: Who was asked, if that is somebody else.
    """
    who = f"{name}, who took it over from {instead_of}," if instead_of else name
    parts = []
    actual: Descriptor = values["actual_role"] or {}
    if values["role_mismatch"]:
        alias = actual.get("role_alias")
        called = f" (as {alias})" if isinstance(alias, str) and alias else ""
        asked, is_now = role_text(values["requested_role"]), role_text(actual)
        if instead_of:
            who = f"The task asks for {asked}; {who}"
            parts.append(f"works as {is_now}{called}")
        else:
            parts.append(f"was asked as {asked} and works as {is_now}{called}")
    if values["scope_mismatch"]:
        parts += _scope_parts(values)
    if values["model_mismatch"]:
        parts.append(f"runs {listed(values['model'])} instead of {listed(values['requested_model'])}")
    return f"{who} {'; '.join(parts)}" if parts else None


def short(*, role: bool | None, scope: bool | None, model: bool | None) -> str:
    """Return the differences in a few words, such as `other role, model`; "" if there are none."""
    named = [name for name, differs in (("role", role), ("scope", scope), ("model", model)) if differs]
    return f"other {', '.join(named)}" if named else ""


def listed(value: object) -> str:
    """Return a value of a scope, or the first ones of a list, as text of bounded length."""
    every = value if isinstance(value, (list, tuple)) else [value]
    more = len(every) - VALUES_SHOWN
    texts = [str(each) for each in every[:VALUES_SHOWN]]
    shown = ", ".join(each if len(each) <= VALUE_SHOWN else f"{each[: VALUE_SHOWN - 1]}…" for each in texts)
    return f"{shown} and {more} more" if more > 0 else shown


def _scope_parts(values: Descriptor) -> list[str]:
    """Return a sentence's part for each field in which the scopes differ, with both values."""
    from . import scope

    asked, actual = (scope.read(values[f"{side}_ownership_scope"]) for side in ("requested", "actual"))
    return [
        f"has {_LABELS[name]} {listed(getattr(actual, name))} instead of {listed(getattr(asked, name))}"
        for name in values["scope_fields"]
    ]


def _parts(role: Descriptor | None) -> tuple[str | None, str | None]:
    """Return the two parts of a role; what is no text counts as not said."""
    found = [(role or {}).get(name) for name in PARTS]
    first, second = (each if isinstance(each, str) and each else None for each in found)
    return first, second


def _missing(requested: OwnershipScope, actual: OwnershipScope) -> list[str]:
    """Return the fields of a requested scope that an actual one says, and does not cover."""
    found = []
    if requested.initiative_id and actual.initiative_id and requested.initiative_id != actual.initiative_id:
        found.append("initiative_id")
    if requested.wu_ids and actual.wu_ids and not _keys(requested) <= _keys(actual):
        found.append("wu_ids")
    if requested.lane and actual.lane and fold(requested.lane) != fold(actual.lane):
        found.append("lane")
    kinds = set(requested.responsibility_kinds)
    if kinds and actual.responsibility_kinds and not kinds <= set(actual.responsibility_kinds):
        found.append("responsibility_kinds")
    if requested.paths and actual.paths:
        uncovered = [
            path for path in requested.paths if not any(_covers(each, path) for each in actual.paths)
        ]
        found += ["paths"] if uncovered else []
    return found


def _keys(scope: OwnershipScope) -> set[str]:
    return set(map(unit_key, scope.wu_ids))


def _covers(pattern: str, path: str) -> bool:
    """Return whether a path or pattern has another one in it, as far as their texts show."""
    folder = pattern.removesuffix("/**").rstrip("/")
    return pattern in (path, "**") or path == folder or path.startswith(f"{folder}/")
