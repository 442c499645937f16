"""What an agent is responsible for, and how what was requested of it differs from what it says it is.

The scope is work units, an initiative, a lane, paths and kinds of responsibility. Both descriptors stay in the records; the
difference is only computed. Aliases and capabilities are not compared: they say how a worker is called and what it could
do, not what its role is.
"""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Outcome
from ..records.ids import is_work_unit, role_id, unit_key
from ..text.name_matching import fold
from ..text.sanitize import first_of, is_unsafe, sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from .vocabulary import Pack

    Descriptor = Mapping[str, Any]


# What may stand before `=` in an option, and the field that it sets.
KEYS = {
    "paths": "paths",
    "wu": "wu_ids",
    "initiative": "initiative_id",
    "lane": "lane",
    "kinds": "responsibility_kinds",
}
VALUES_MAX = 64  # of each list
PATH_MAX = 1_024  # characters
LINE_MAX = 200


class OwnershipScope(Outcome):
    """A scope. `responsibility_kinds` is empty if nothing is known of them."""

    responsibility_kinds: list[str] = []
    initiative_id: str | None = None
    wu_ids: list[str] = []
    lane: str | None = None
    paths: list[str] = []

    def as_json(self) -> dict[str, object]:
        """Return the object of a record: without empty fields, but always with the kinds of responsibility."""
        kept = {name: value for name, value in super().as_json().items() if value}
        return {"responsibility_kinds": self.responsibility_kinds, **kept}

    @property
    def text(self) -> str:
        """The scope in one line, as an option names it."""
        values = {key: getattr(self, field) for key, field in KEYS.items()}
        words = {
            key: value if isinstance(value, str) else ",".join(value or ()) for key, value in values.items()
        }
        return " ".join(f"{key}={word}" for key, word in words.items() if word)


def parse_scope(texts: Iterable[str]) -> OwnershipScope:
    """Return the scope that options name: paths, or `KEY=VALUE` with commas between values.

    One text may have several of them, as `OwnershipScope.text` does.

    Raises:
        UsageError: `bad-scope`.
    """
    import re

    found = OwnershipScope()
    begins = re.compile(rf"[\s,]+(?=(?:{'|'.join(KEYS)})=)")
    for text in (part for each in texts for part in begins.split(each.strip())):
        key, equals, value = text.partition("=")
        if key not in KEYS:
            if equals and key.isidentifier():
                raise _bad(
                    text, f"unknown key {sanitize(key)[:80]}; a path with = is paths={sanitize(text)[:80]}"
                )
            key, value = "paths", text
        if other := key != "paths" and re.search(r"[\s,]([^\W\d]\w*)=", value):
            raise _bad(text, f"unknown key {sanitize(other[1])[:80]}; known are {', '.join(KEYS)}")
        values = [each.strip() for each in value.split(",")]
        if not all(values):
            raise _bad(text, "it has an empty value")
        field = KEYS[key]
        if field in ("initiative_id", "lane"):
            if len(values) > 1 or getattr(found, field) not in (None, values[0]):
                raise _bad(text, f"there can be only one {key}")
            setattr(found, field, _checked(field, values[0], text))
        else:
            known = getattr(found, field)
            known += [_checked(field, each, text) for each in values]
            setattr(found, field, list(dict.fromkeys(known)))
            if len(getattr(found, field)) > VALUES_MAX:
                raise _bad(text, f"there are more than {VALUES_MAX} of {key}")
    return found


def read_scope(value: object) -> OwnershipScope | None:
    """Return the scope in a record's field, without what has another form; None if there is none."""
    if not isinstance(value, dict) or not value:
        return None
    given: dict[str, Any] = value
    found = OwnershipScope()
    for field in KEYS.values():
        texts = given.get(field)
        if field in ("initiative_id", "lane"):
            if isinstance(texts, str) and 0 < len(texts) <= LINE_MAX:
                setattr(found, field, texts)
        elif isinstance(texts, (list, tuple)):
            valid = [
                each for each in texts[:VALUES_MAX] if isinstance(each, str) and 0 < len(each) <= PATH_MAX
            ]
            setattr(found, field, list(dict.fromkeys(valid)))
    return found


def with_default_kinds(scope: OwnershipScope, lifecycle_role: str | None, pack: Pack) -> OwnershipScope:
    """Fill in the kinds of responsibility of a lifecycle role, if the scope has none; return the scope."""
    scope.responsibility_kinds = scope.responsibility_kinds or list(
        pack.lifecycle_roles.get(lifecycle_role or "", ())
    )
    return scope


def unknown_kinds(scope: OwnershipScope, pack: Pack) -> list[str]:
    """Return the kinds of responsibility that the pack does not have."""
    return [each for each in scope.responsibility_kinds if each not in pack.responsibility_kinds]


def _checked(field: str, value: str, text: str) -> str:
    """Return one value as it is recorded."""
    if field == "paths":
        return _path(value, text)
    if any(map(is_unsafe, value)) or len(value) > LINE_MAX:
        raise _bad(text, f"a value must be one line of up to {LINE_MAX} characters")
    if field == "wu_ids" and not is_work_unit(value):
        raise _bad(text, f"{sanitize(value)[:80]} is not a work unit, such as WU-123, #123 or fix-login")
    if field == "responsibility_kinds":
        from .vocabulary import WORD  # lists of tasks read scopes without a pack

        if not WORD.fullmatch(value):
            raise _bad(text, "a kind of responsibility has lower-case letters, digits and dashes")
    return value


def _path(value: str, text: str) -> str:
    path = value.removeprefix("./").rstrip("/")
    parts: Sequence[str] = path.split("/")
    if (
        not path
        or path.startswith(("/", "~"))
        or "\\" in path
        or path[1:2] == ":"
        or {"..", ".", ""} & set(parts)
    ):
        raise _bad(text, "a path is relative to the top of the work tree, without ., .. and \\")
    if len(path) > PATH_MAX or any(map(is_unsafe, path)):
        raise _bad(text, f"a path is one line of up to {PATH_MAX} characters")
    return path


def _bad(text: str, reason: str) -> UsageError:
    return UsageError(
        f"Invalid scope: {sanitize(text)[:80] or '(empty)'}: {reason}. Nothing was written.",
        hint=f"Name paths such as 'docs/**', or {', '.join(f'{key}=…' for key in KEYS)}.",
        code="bad-scope",
    )


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

    role_mismatch: bool | None = None
    scope_mismatch: bool | None = None
    scope_fields: list[str] = []
    model_mismatch: bool | None = None

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
    return compare(
        *(values.get(name) for name in ("requested_role", "actual_role")),
        *(read_scope(values.get(f"{side}_ownership_scope")) for side in ("requested", "actual")),
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
        requested_scope: Read by `descriptors.read_scope`.
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


def mismatch_sentence(name: str, values: Descriptor, instead_of: str | None = None) -> str | None:
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


def short_mismatch(*, role: bool | None, scope: bool | None, model: bool | None) -> str:
    """Return the differences in a few words, such as `other role, model`; "" if there are none."""
    named = [name for name, differs in (("role", role), ("scope", scope), ("model", model)) if differs]
    return f"other {', '.join(named)}" if named else ""


def listed(value: object) -> str:
    """Return a value of a scope, or the first ones of a list, as text of bounded length."""
    every = value if isinstance(value, (list, tuple)) else [value]
    texts = [str(each) for each in every]
    return first_of(
        texts,
        VALUES_SHOWN,
        shown=lambda each: each if len(each) <= VALUE_SHOWN else f"{each[: VALUE_SHOWN - 1]}…",
    )


def _scope_parts(values: Descriptor) -> list[str]:
    """Return a sentence's part for each field in which the scopes differ, with both values."""
    asked, actual = (read_scope(values[f"{side}_ownership_scope"]) for side in ("requested", "actual"))
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
