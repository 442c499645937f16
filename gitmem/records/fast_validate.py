"""Validation of everyday records by the table that was compiled from the models.

The result is "certainly valid" or "ask the models", never "invalid": importing pydantic takes seven times as long as
starting an empty Python. So it may accept less than the models do, but nothing that they reject.
"""

from __future__ import annotations

from .ids import unit_key
from .table import FIELDS, REQUIRED

DEPTH = 32  # of lists and objects in unknown fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def is_certainly_valid(kind: str, fields: Mapping[str, object], *, writing: bool) -> bool:
    """Return whether these fields of a known kind are certainly valid; if False, the models must decide.

    Fields that the contract does not define are kept. When writing, the models decide about them.
    """
    specs = FIELDS[kind]
    for name in REQUIRED[kind]:
        if name not in fields:
            return False
    for name, value in fields.items():
        spec = specs.get(name)
        if spec is None:
            if writing or not is_json_safe(value):
                return False
        elif value is None:
            if not spec[1]:
                return False
        elif not is_valid_value(spec, value, writing):
            return False
    return True


def fits(kind: str, name: str, value: object) -> bool:
    """Return whether a value is certainly valid for a field of a known kind."""
    return is_valid_value(FIELDS[kind][name], value, writing=True)


def is_json_safe(value: object, depth: int = 1) -> bool:
    """Return whether JSON in UTF-8 can represent the value, so that every reader gets the same value."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(value, float):
        return value - value == 0  # False for infinities and NaN
    if isinstance(value, int):
        return value.bit_length() <= 1024
    if depth > DEPTH:
        return False
    if isinstance(value, (list, tuple)):
        return all(is_json_safe(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(
            type(key) is str and is_json_safe(key) and is_json_safe(value[key], depth + 1) for key in value
        )
    return value is None


def is_valid_value(spec: tuple[Any, ...], value: object, writing: bool) -> bool:  # noqa: C901  (one branch for each form of a field)
    """Validate one value by (form, may be null, …), as `tools/compile_table.py` writes it."""
    form = spec[0]
    if form == "list":
        if type(value) is not list and type(value) is not tuple:
            return False
        item_spec = spec[2]
        for item in value:  # noqa: SIM110  (a generator costs more than the check)
            if not is_valid_value(item_spec, item, writing):
                return False
        return True
    if form == "flag":
        return type(value) is bool
    if form == "object":
        return type(value) is dict and is_json_safe(value)
    if type(value) is not str:
        return False
    if form == "choice":
        return value in (spec[3] if writing and spec[3] else spec[2])
    _, _, least, most, shape, text_rule = spec
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
    elif not is_json_safe(value):
        return False
    return not text_rule or _fits_text_rule(text_rule, value, writing)


def matches(shape: tuple[str, tuple[tuple[str, int, int], ...]], value: str) -> bool:
    """Return whether a text is the start and then these runs of characters, each matched greedily."""
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


def _fits_text_rule(
    text_rule: tuple[int, str, bool, tuple[str, ...], str], value: str, writing: bool
) -> bool:
    max_bytes, not_prefix, trimmed, written, not_written = text_rule
    if max_bytes and len(value) * 4 > max_bytes and len(value.encode()) > max_bytes:
        return False
    if not_prefix and value.startswith(not_prefix):
        return False
    if trimmed and value != value.strip():
        return False
    if writing and not_written and unit_key(value) == not_written:
        return False
    return not written or not writing or value in written
