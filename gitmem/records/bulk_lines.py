"""Many lines of a kind made at once: the bytes are those of `form.line`, in a third of the time.

Fields are checked column by column, and texts are searched for secrets some at a time. Both only ever say "plainly
right": for anything else there is no answer here, and `form.line` says of each record what is wrong with it.
"""

from __future__ import annotations

from itertools import chain

from .bulk import column_is_right
from .form import LINE_MAX_BYTES, RecordError, format_time
from .secrets import SHORTEST, has_mark, locate
from .table import FIELDS, FILLED, FIRST_OF, MODELS, REQUIRED

try:
    from _json import encode_basestring as _quote
    from _json import make_encoder
except ImportError:  # not CPython
    make_encoder = None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    given = _given(kind, columns) if make_encoder is not None else None
    if given is None:
        return None
    if not allow_secret and any(locate(text) for text in _suspects(list(_texts(given.values())))):
        return None
    names = ("at", "kind", *(name for name in FIELDS[kind] if name in given))
    count = len(given["schema_version"])
    encode = _encoder()
    try:
        table: list[Sequence[Any]] = [
            _times(first, count),
            [kind] * count,
            *(given[name] for name in names[2:]),
        ]
        found: list[Record] = [
            {name: value for name, value in zip(names, row, strict=True) if value}
            for row in zip(*table, strict=True)
        ]
        made = [b"".join([part.encode() for part in encode(record, 0)]) for record in found]
    except (ValueError, RecordError):
        return None  # half a character
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
        some = [value for value in values if value]
        if len(some) < len(values):
            if (
                name in REQUIRED[kind]
                or name in FILLED[kind]
                or not {type(each) for each in values if not each} <= _EMPTY
            ):
                return None
            values = [value or None for value in values]
        if some:
            if not column_is_right(specs[name], some, writing=True):
                return None
            found[name] = values
    return found


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


def _encoder() -> Callable[[Record, int], Sequence[str]]:
    """Return what writes an object as `form.line` does."""

    def refuse(value: object) -> object:
        raise ValueError(f"{type(value)} is nothing that JSON carries")

    encoder: Callable[[Record, int], Sequence[str]] = make_encoder(
        None, refuse, _quote, None, ":", ",", False, False, False
    )
    return encoder
