"""Compatibility form of a text without invisible characters and combining marks, only for comparisons."""

from __future__ import annotations

from unicodedata import category, normalize

from .ignorable import IGNORABLE

_CACHE_MAX = 65_536  # code points
_PLANE_2, _PLANE_14 = 0x20000, 0xE0000


class _Compatible(dict[int, str]):
    """A table for `str.translate` that is filled on demand."""

    def __missing__(self, code: int) -> str:
        value = _compatible(code)
        if len(self) < _CACHE_MAX:
            self[code] = value
        return value


def _compatible(code: int) -> str:
    char = chr(code)
    if code < 0x80 or _PLANE_2 <= code < _PLANE_14:
        return char
    if any(first <= code <= last for first, last in IGNORABLE) or category(char) in ("Mn", "Me"):
        return ""
    return normalize("NFKC", char)


COMPATIBLE = _Compatible()
