"""Ids: a prefix, a dash and 12 characters of lower-case Crockford base32 (60 bits); and what else of a text no pattern can say."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 12
_ID_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_UNIT_CHARACTERS = f"{_ID_CHARACTERS}ABCDEFGHIJKLMNOPQRSTUVWXYZ._/#-"
_UNIT_MAX = 100
NO_UNIT = "unlinked"  # in filters: records without a work unit
UNIT_FORM = "1 to 100 letters, digits or characters of ._/#-, such as WU-123, #123 or fix-login"


def new_id(prefix: str, random: Callable[[int], bytes] = os.urandom) -> str:
    """Return a new id such as `sig-3f9k2m7q1x0z`.

    Args:
        prefix: The kind of id: `sig`, `sess`, `thread`, …
        random: Returns that many secure random bytes.
    """
    return f"{prefix}-{_crockford(random(8))}"


def keyed_id(prefix: str, *parts: str) -> str:
    """Return the id that is always the same for the same parts: from the SHA-256 of the parts joined by LF."""
    from ..text.digests import sha256

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


def _crockford(data: bytes) -> str:
    number = int.from_bytes(data[:8], "big") >> 64 - 5 * _LENGTH
    return "".join([_ALPHABET[number >> shift & 31] for shift in range(5 * _LENGTH - 5, -1, -5)])


def is_real(time: str) -> bool:
    """Return whether a time in the form of `at` is one that the calendar and the clock have."""
    from datetime import datetime

    try:
        datetime.fromisoformat(time)
    except ValueError:
        return False
    return True
