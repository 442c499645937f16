"""Outcomes: results of operations, as values whose fields are those of their JSON form."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Outcome:
    """Base of all outcomes. The slots, in order, are the fields of the JSON form."""

    __slots__: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return all fields, always; nested outcomes become objects."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


def plain(value: object) -> object:
    """Return a value in JSON form: outcomes become objects, tuples and sets become lists."""
    if isinstance(value, Outcome):
        return value.as_json()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)  # type: ignore[type-var]  # sets here hold strings
    return value


# Fields of the line format, and names that answers use for properties of a record.
_LEFT_OUT = frozenset(("at", "kind", "mac", "unverified", "seen", "conflict", "counts", "decides"))


def shown(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record with the contract's field names and `created_at`, without empty fields."""
    fields: dict[str, object] = {"created_at": record["at"]}
    fields.update(
        (key, value)
        for key, value in record.items()
        if key not in _LEFT_OUT and value is not None and value != "" and value != []
    )
    return fields
