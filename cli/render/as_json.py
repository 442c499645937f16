"""One line of JSON, written without the json package, which imports `re`."""

from __future__ import annotations

from gitmem.text.sanitize import sanitize_json

try:
    from _json import encode_basestring as _quote
except ImportError:  # not CPython
    from json.encoder import encode_basestring as _quote


def as_json(value: object) -> str:
    """Return a value as JSON on one line; characters that could do harm where it is shown are escaped."""
    return sanitize_json(encode(value))


def encode(value: object) -> str:
    """Return a value as JSON on one line, not yet sanitized."""
    if isinstance(value, str):
        return _quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quote(str(key))}: {encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(encode(item) for item in value) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    as_value = getattr(value, "as_json", None)
    if as_value is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return encode(as_value())
