"""Many lines of a kind made at once: the bytes are those of `form.line`, in a third of the time.

Fields are checked column by column, and texts are searched for secrets some at a time. Both only ever say "plainly
right": for anything else there is no answer here, and `form.line` says of each record what is wrong with it.
"""

from __future__ import annotations

from itertools import chain

from .bulk import column_is_right
from .codec import LINE_MAX_BYTES, RecordError, as_json, format_time
from .secrets import SHORTEST, has_mark, locate
from .table import FIELDS, FILLED, FIRST_OF, MODELS, REQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..digests import Mac
    from .groups import Group, Record

SEARCHED_AT_ONCE = 32  # texts
_EMPTY = {type(None), str, bool, list}
_NOT_HERE = ("mac", "seen")  # nobody gives the one, and an empty list says something in the other


def lines(
    kind: str, first: int, columns: Mapping[str, Sequence[Any]], *, allow_secret: bool, mac: Mac | None
) -> tuple[list[bytes], Group] | None:
    """Return the lines of records, and what `read` gives of them; None where any of them is not plainly right.

    Args:
        kind: One of `gitmem.records.KINDS`.
        first: When the first one is written, in microseconds since 1970-01-01 UTC; each other is one later.
        columns: Of each field the value that each record has; empty ones count as not given.
        allow_secret: Whether text that looks like a secret may pass.
        mac: The clone's key; without it the lines get no code.
    """
    given = _given(kind, columns)
    if given is None:
        return None
    if not allow_secret and any(locate(text) for text in _suspects(list(_texts(given.values())))):
        return None
    count = len(given["schema_version"])
    names = ("at", "kind", *(name for name in FIELDS[kind] if name in given))
    try:
        table: list[Sequence[Any]] = [
            _times(first, count),
            [kind] * count,
            *(given[name] for name in names[2:]),
        ]
        parts = [_written(name, values) for name, values in zip(names, table, strict=True)]
        made = [f"{{{''.join(row)[1:]}}}".encode() for row in zip(*parts, strict=True)]
    except (ValueError, RecordError):
        return None  # half a character
    found: list[Record] = [
        {name: value for name, value in zip(names, row, strict=True) if value}
        for row in zip(*table, strict=True)
    ]
    whole: dict[str, Sequence[Any]] = dict(zip(names, table, strict=True))
    if mac is not None:
        made, codes = mac.sign_all(made)
        for record, code in zip(found, codes, strict=True):
            record["mac"] = code
        whole["mac"] = codes
    if max(map(len, made)) > LINE_MAX_BYTES:
        return None
    return made, (kind, range(count), found, whole)


def _given(kind: str, columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]] | None:
    """Return the fields that `form.line` would write as they are, with None for empty values; None where it would not."""
    if kind not in MODELS or FIRST_OF[kind] or not columns.keys() >= {*REQUIRED[kind], *FILLED[kind]}:
        return None
    specs = FIELDS[kind]
    found: dict[str, Sequence[Any]] = {}
    for name, values in columns.items():
        if name not in specs or specs[name][0] == "object" or name in _NOT_HERE:
            return None
        different = values[:1] if _is_constant(values) else values
        some = [value for value in different if value]
        if len(some) < len(different):
            if (
                name in REQUIRED[kind]
                or name in FILLED[kind]
                or not {type(each) for each in different if not each} <= _EMPTY
            ):
                return None
            values = [value or None for value in values]
        if some:
            if not column_is_right(specs[name], some, writing=True):
                return None
            found[name] = values
    return found


def _is_constant(values: Sequence[Any]) -> bool:
    """Say whether all records have the same object."""
    return len(set(map(id, values))) == 1


def _texts(columns: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Return the texts that may hold a secret, those of a field each once."""
    for values in columns:
        if list in set(map(type, values)):
            values = list(chain.from_iterable(filter(None, values)))
        for text in set(values):
            if type(text) is str and len(text) >= SHORTEST:
                yield text


def _suspects(texts: Sequence[str], most: int = SEARCHED_AT_ONCE) -> list[str]:
    """Return which of these texts must be looked at one by one."""
    found: list[str] = []
    for start in range(0, len(texts), most):
        some = texts[start : start + most]
        if has_mark("\n".join(some)):
            found += _suspects(some, -(-len(some) // 4)) if len(some) > 1 else some
    return found


def _times(first: int, count: int) -> list[str]:
    """Return times that follow each other."""
    found: list[str] = []
    seconds = None
    for at in range(first, first + count):
        if at // 1_000_000 != seconds:
            seconds, start = at // 1_000_000, format_time(at)[:20]
        found.append(f"{start}{at % 1_000_000:06d}Z")
    return found


def _written(name: str, values: Sequence[Any]) -> list[str]:
    """Return what stands for a field in each line; nothing where it is empty."""
    start = f",{as_json(name)}:"
    if list not in set(map(type, values)):
        different = set(values)
        if len(different) * 2 <= len(values):
            texts = {value: start + as_json(value) if value else "" for value in different}
            return [texts[value] for value in values]
    return [start + as_json(value) if value else "" for value in values]
