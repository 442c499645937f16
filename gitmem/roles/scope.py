"""What an agent is responsible for: work units, an initiative, a lane, paths and kinds of responsibility.

The form is that of the field `scope` of records; there it is untrusted.
"""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Outcome
from ..records.ids import is_work_unit
from ..text.sanitize import is_unsafe, sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .pack import Pack

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

    def __init__(self) -> None:
        self.responsibility_kinds: list[str] = []
        self.initiative_id: str | None = None
        self.wu_ids: list[str] = []
        self.lane: str | None = None
        self.paths: list[str] = []

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


def parse(texts: Iterable[str]) -> OwnershipScope:
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


def read(value: object) -> OwnershipScope | None:
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
        from .pack import WORD  # lists of tasks read scopes without a pack

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
