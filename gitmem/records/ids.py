"""Ids: a prefix, a dash and 12 characters of lower-case Crockford base32 (60 bits)."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 12
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"
_WORK_UNIT_MAX = 64
_ID_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(prefix: str, random: Callable[[int], bytes] = os.urandom) -> str:
    """Return a new id such as `sig-3f9k2m7q1x0z`.

    Args:
        prefix: The kind of id: `sig`, `sess`, `thread`, …
        random: Returns that many secure random bytes.
    """
    return f"{prefix}-{_crockford(random(8))}"


def new_ids(prefix: str, count: int, random: Callable[[int], bytes] = os.urandom) -> list[str]:
    """Return `count` new ids, from one call for random bytes."""
    data = random(8 * count)
    pairs = [high + low for high in _ALPHABET for low in _ALPHABET]
    found = []
    for start in range(0, 8 * count, 8):
        bits = int.from_bytes(data[start : start + 8], "big")
        found.append(
            f"{prefix}-{pairs[bits >> 54]}{pairs[bits >> 44 & 1023]}{pairs[bits >> 34 & 1023]}"
            f"{pairs[bits >> 24 & 1023]}{pairs[bits >> 14 & 1023]}{pairs[bits >> 4 & 1023]}"
        )
    return found


def keyed_id(prefix: str, *parts: str) -> str:
    """Return the id that is always the same for the same parts: from the SHA-256 of the parts joined by LF."""
    from ..digests import sha256

    digest = sha256("\n".join(parts).encode()).digest()
    return f"{prefix}-{_crockford(digest)}"


def is_id(prefix: str, text: str) -> bool:
    """Return whether a text is an id with that prefix: ours, or another of 4 to 32 lower-case letters or digits."""
    head = f"{prefix}-"
    if not text.startswith(head):
        return False
    rest = text[len(head) :]
    return 4 <= len(rest) <= 32 and not rest.lstrip(_ID_CHARACTERS)


def is_work_unit(text: str) -> bool:
    """Return whether a text is the name of a work unit, such as `WU-123`."""
    word, dash, number = text.rpartition("-")
    plain = bool(dash) and not word.strip(_CAPITALS + _DIGITS) and word[:1] in _CAPITALS
    return plain and bool(word and number) and not number.strip(_DIGITS) and len(text) <= _WORK_UNIT_MAX


def _crockford(data: bytes) -> str:
    number = int.from_bytes(data[:8], "big") >> 64 - 5 * _LENGTH
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(5 * _LENGTH - 5, -1, -5))
