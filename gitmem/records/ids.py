"""Ids, bound to the writer that makes them or free; and what else of a text no pattern can say."""

from __future__ import annotations

import os

from ..text.addresses import BOUND_CHARACTERS, suffix_of, writer_of
from ..text.digests import ALPHABET, b32, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Characters of an id: what makes it unique, and what binds it to its writer.
BOUND_LENGTH, _RANDOM_LENGTH = BOUND_CHARACTERS, 10
_HASH_LENGTH = BOUND_LENGTH - _RANDOM_LENGTH
_TO_PYTHON = str.maketrans(f"{ALPHABET}ilou", "0123456789abcdefghijklmnopqrstuv!!!!")  # its digits of base 32
_ID_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_UNIT_CHARACTERS = f"{_ID_CHARACTERS}ABCDEFGHIJKLMNOPQRSTUVWXYZ._/#-"
_UNIT_MAX = 100
NO_UNIT = "unlinked"  # in filters: records without a work unit
UNIT_FORM = "1 to 100 letters, digits or characters of ._/#-, such as WU-123, #123 or fix-login"
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_days: set[str] = set()  # some that were found to be in the calendar
_DAYS_KNOWN = 1_000


def new_id(prefix: str, writer: str, random: Callable[[int], bytes] = os.urandom) -> str:
    """Return a new id that is bound to its writer, such as `sig-3f9k2m7q1xj4w8c0v5t2nr`.

    Args:
        prefix: The kind of id: `sig`, `sess`, `thread`, …
        writer: The id of the key that will attest the line.
        random: Returns that many secure random bytes.
    """
    return _bound(prefix, b32(random(7), _RANDOM_LENGTH), writer)


def own_id(prefix: str, writer: str, *parts: str) -> str:
    """Return the id, bound to a writer, that is always the same for the same parts; without a writer, the free one."""
    if not writer:
        return keyed_id(prefix, *parts)
    return _bound(prefix, b32(_digest(*parts), _RANDOM_LENGTH), writer)


def keyed_id(prefix: str, *parts: str) -> str:
    """Return the free id that is always the same for the same parts, whoever writes it."""
    return f"{prefix}-{b32(_digest(*parts), _HASH_LENGTH)}"


def is_bound(id: str, writer: str) -> bool:
    """Return whether what `is_of_somebody` is bound to this writer."""
    head = id[:-_HASH_LENGTH]
    try:  # on numbers: this is part of reading each line, and `b32` takes three times as long
        named = int(id[len(head) :].translate(_TO_PYTHON), 32)
    except ValueError:
        return False
    return int.from_bytes(_digest(writer, head)[:8], "big") >> 64 - _HASH_LENGTH * 5 == named


def is_of_somebody(prefix: str, text: str) -> bool:
    """Return whether a text is an id with that prefix that is bound to a writer, whichever that is."""
    return len(text) == len(prefix) + 1 + BOUND_LENGTH and is_id(prefix, text)


def is_of_writer(address: str, writer: str) -> bool:
    """Return whether an address, or the id of a session, is that of a writer; "" is whoever wrote lines without one."""
    return writer_of(address) == writer or (writer != "" and is_bound(address, writer))


def thread_named(name: str, writer: str) -> str:
    """Return the id of the thread to which a writer gives a name; an id that is bound to a writer, or names one, as it is."""
    is_whose = suffix_of(name) or any(is_of_somebody(kind, name) for kind in ("thread", "sig"))
    return name if is_whose else f"{name}@{writer}"


def _bound(prefix: str, rest: str, writer: str) -> str:
    head = f"{prefix}-{rest}"
    return head + b32(_digest(writer, head), _HASH_LENGTH)


def _digest(*parts: str) -> bytes:
    """Return the SHA-256 of texts joined by LF."""
    return sha256("\n".join(parts).encode()).digest()


def is_id(prefix: str, text: str) -> bool:
    """Return whether a text is an id with that prefix: ours, or another of 4 to 32 lower-case letters or digits."""
    head = f"{prefix}-"
    if not text.startswith(head):
        return False
    rest = text[len(head) :]
    return 4 <= len(rest) <= 32 and not rest.lstrip(_ID_CHARACTERS)


def is_work_unit(text: str) -> bool:
    """Return whether a text can name a work unit: an issue's key or a branch, such as `WU-123`, `#123` or `fix-login`."""
    return 1 <= len(text) <= _UNIT_MAX and not text.strip(_UNIT_CHARACTERS) and unit_key(text) != NO_UNIT


def unit_key(text: str | None) -> str:
    """Return the form in which work units are compared: in lower case, without a leading `#`; "" for none."""
    text = text or ""
    return (text[1:] if text[:1] == "#" and text[1:] else text).lower()


def unit_key_sql(column: str) -> str:
    """Return the SQL expression of `unit_key`."""
    return f"lower(substr({column}, 1 + ({column} GLOB '#?*')))"


def role_id(lifecycle_role: str | None, specialty_profile: str | None) -> str | None:
    """Return how a role is shown, such as `a/b`; None without a lifecycle role. The two parts are what counts."""
    return "/".join(filter(None, (lifecycle_role, specialty_profile))) if lifecycle_role else None


def role_of(record: Mapping[str, str | None]) -> str | None:
    """Return the role that a folded session states; None if it states none, whatever label its agent identity has."""
    return role_id(record.get("lifecycle_role"), record.get("specialty_profile"))


def implied_role(identity: str | None) -> str | None:
    """Return the label in the middle of `owner:role:purpose`; None for people and without an identity."""
    if identity is None or identity.startswith("human:"):
        return None
    parts = identity.split(":")
    return parts[1] if len(parts) == 3 else None


def is_time(text: str) -> bool:
    """Return whether a text is a time since 1970 in the fixed-width form of `log.lines`."""
    hour, minute, second = text[11:13], text[14:16], text[17:19]
    digits = hour + minute + second + text[20:26]
    rest = text[10:11] + text[13:14] + text[16:17] + text[19:20] + text[26:]
    if rest != "T::.Z" or len(digits) != 12 or not (digits.isascii() and digits.isdecimal()):
        return False
    if hour > "23" or minute > "59" or second > "59":
        return False
    day = text[:10]
    if day not in _days:
        if not _is_day(day):
            return False
        if len(_days) == _DAYS_KNOWN:
            _days.clear()
        _days.add(day)
    return True


def _is_day(text: str) -> bool:
    """Return whether a text such as `2026-11-21` is a day of the calendar since 1970."""
    digits = text[:4] + text[5:7] + text[8:]
    if text[4] + text[7] != "--" or not (digits.isascii() and digits.isdecimal()) or digits < "1970":
        return False
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:])
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]):
        return False
    return (month, day) != (2, 29) or not (year % 4 or (year % 100 == 0 and year % 400))
