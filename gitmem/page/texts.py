"""Texts and times of the page: texts of peers are cut and sanitized, and all of them together have a limit."""

from __future__ import annotations

from ..log.lines import parse_at
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXT_MAX = 2_000  # characters of a signal, a node or the result of a task
SHORT_MAX = 200  # of a title, a path or a name
TITLE_MAX = 100
_KEPT = "\n\t"


class TextBudget:
    """How many bytes of long texts the page may still have.

    Args:
        most: Bytes of UTF-8. When they are used up, texts are empty, with all of their characters counted as left out.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def cut(self, text: str, most: int = TEXT_MAX) -> tuple[str, int]:
        """Return the beginning of a text, sanitized, and how many characters are left out.

        Args:
            text: What a peer wrote.
            most: Characters.
        """
        shown = sanitize(text[:most], _KEPT)
        size = len(shown) if shown.isascii() else len(shown.encode("utf-8", "backslashreplace"))
        if size > self._left:
            return "", len(text)
        self._left -= size
        return shown, max(0, len(text) - most)


def short(text: str, most: int = SHORT_MAX) -> str:
    """Return the beginning of a text, sanitized; `…` marks a cut."""
    return sanitize(text if len(text) <= most else text[: most - 1] + "…")


def title(text: str) -> str:
    """Return the beginning of the first line of a text, sanitized."""
    return short(text[: 4 * TITLE_MAX].strip().partition("\n")[0], TITLE_MAX)


def put(fields: Any, key: str, value: object) -> None:
    """Set a field to a short text, unless there is none."""
    if value:
        fields[key] = short(str(value))


def millis(micros: int) -> int:
    """Return milliseconds."""
    return micros // 1_000


def millis_of(at: str) -> int:
    """Return the milliseconds of the time of a line; 0 for a date that does not exist, in a line written by hand."""
    try:
        return parse_at(at) // 1_000
    except ValueError:
        return 0
