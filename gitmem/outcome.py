"""Outcomes: results of operations, as values whose fields are those of their JSON form."""

from __future__ import annotations


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
