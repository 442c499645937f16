"""The everyday check of a record, from the table that was compiled from the models.

It says "plainly right" or "ask the models", never "wrong": importing pydantic costs seven times an empty
Python. So it may know less than the models do, but must not accept what they refuse.
"""

from __future__ import annotations

from .table import FIELDS, REQUIRED

DEPTH = 32  # of lists and objects in unknown fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def plain(kind: str, fields: Mapping[str, object], *, writing: bool) -> bool:
    """Whether these fields of a known kind are plainly right; False means that the models must say.

    Fields that the contract does not know are kept. When they are written the models are asked all the same.
    """
    specs = FIELDS[kind]
    for name in REQUIRED[kind]:
        if name not in fields:
            return False
    for name, value in fields.items():
        spec = specs.get(name)
        if spec is None:
            if writing or not carried(value):
                return False
        elif value is None:
            if not spec[1]:
                return False
        elif not right(spec, value, writing):
            return False
    return True


def fits(kind: str, name: str, value: object) -> bool:
    """Whether a value is plainly right for a field of a known kind."""
    return right(FIELDS[kind][name], value, writing=True)


def carried(value: object, depth: int = 1) -> bool:
    """Whether JSON in UTF-8 carries the value, and every reader gets it back."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(value, float):
        return value - value == 0  # not for infinities and NaN
    if isinstance(value, int):
        return value.bit_length() <= 1024
    if depth > DEPTH:
        return False
    if isinstance(value, (list, tuple)):
        return all(carried(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(type(key) is str and carried(key) and carried(value[key], depth + 1) for key in value)
    return value is None


def right(spec: tuple[Any, ...], value: object, writing: bool) -> bool:  # noqa: C901  (one branch for each form of a field)
    """One value against (form, may be null, …), as `tools/compile_table.py` writes them."""
    form = spec[0]
    if form == "list":
        if type(value) is not list and type(value) is not tuple:
            return False
        item_spec = spec[2]
        for item in value:  # noqa: SIM110  (a generator costs more than the check)
            if not right(item_spec, item, writing):
                return False
        return True
    if form == "flag":
        return type(value) is bool
    if form == "object":
        return type(value) is dict and carried(value)
    if type(value) is not str:
        return False
    if form == "choice":
        return value in (spec[3] if writing and spec[3] else spec[2])
    _, _, least, most, shape, also = spec
    if not least <= len(value) <= most:
        return False
    if form == "line":
        if not value.isprintable():
            return False
        for refused in shape:
            if refused in value:
                return False
    elif form == "word":
        start, length, characters = shape
        if not value.startswith(start) or value[length:].lstrip(characters):
            return False
    elif form == "form":
        if not matches(shape, value):
            return False
    elif not carried(value):
        return False
    return not also or _also(also, value, writing)


def matches(shape: tuple[str, tuple[tuple[str, int, int], ...]], value: str) -> bool:
    """Whether the text is the start, then these runs of characters, each as long as it can be."""
    start, runs = shape
    if start:
        if not value.startswith(start):
            return False
        value = value[len(start) :]
    for characters, least, most in runs:
        rest = value.lstrip(characters)
        run = len(value) - len(rest)
        if run < least:
            return False
        value = rest if run <= most else value[most:]
    return not value


def _also(also: tuple[int, str, bool, tuple[str, ...]], value: str, writing: bool) -> bool:
    max_bytes, not_prefix, trimmed, written = also
    if max_bytes and len(value) * 4 > max_bytes and len(value.encode()) > max_bytes:
        return False
    if not_prefix and value.startswith(not_prefix):
        return False
    if trimmed and value != value.strip():
        return False
    return not written or not writing or value in written
