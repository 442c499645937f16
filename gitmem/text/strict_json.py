"""Parse a line's JSON, and quote its texts, without the json package, whose import of `re` costs a third of an empty Python.

Parsing is stricter than that package: NaN and the infinities are rejected. Errors are ValueErrors (RecursionError for too
deep nesting).
"""

from __future__ import annotations

from _json import encode_basestring, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]


quote = encode_basestring


def json_list(values: Iterable[str | int]) -> str:
    """Return ids or numbers as JSON, for `json_each`. A session that a signal names may be any text without spaces and commas."""
    return f"[{','.join(quote(value) if isinstance(value, str) else str(value) for value in values)}]"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("duplicate name")
    return record


class _Any:
    """Settings of the scanner, under the attribute names that it reads."""

    strict = True  # no raw control characters in strings
    object_hook = None
    object_pairs_hook: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_refuse)


class _Once(_Any):
    object_pairs_hook = staticmethod(_once)


# The scanner asks for the attributes alone.
_any: Scan = make_scanner(_Any)  # type: ignore[arg-type]
_only_once: Scan = make_scanner(_Once)  # type: ignore[arg-type]


def read(text: str, *, once: bool = False) -> Any:
    """Parse a text that is one JSON value, without surrounding white space.

    Args:
        once: Reject objects with a repeated name, because readers could choose different values. Otherwise the last
            value counts.
    """
    try:
        value, end = (_only_once if once else _any)(text, 0)
    except (StopIteration, SystemError) as error:
        # The scanner gets its exception from the json package and cannot raise it if that is not imported.
        raise ValueError("truncated or invalid JSON") from error
    if end != len(text):
        raise ValueError("extra data after the value")
    return value
