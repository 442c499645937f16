"""Standard input: one text, or JSON lines."""

from __future__ import annotations

import sys

from gitmem.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXT_MAX_BYTES = 1024 * 1024
LINES_MAX_BYTES = 256 * 1024 * 1024
_read: dict[str, Any] = {}


def text(what: str, most: int = TEXT_MAX_BYTES) -> str:
    """Return all of standard input.

    Args:
        what: The name of the input in errors: `message`.
        most: The limit in bytes; the rest is not read.

    Raises:
        UsageError: There is no standard input, or it is not UTF-8.
    """
    if sys.stdin is None:
        raise UsageError(f"No standard input to read the {what} from. Nothing was written.")
    if _read.get("from") is not sys.stdin:  # a repeated command uses the first read
        _read.update({"from": sys.stdin, "data": sys.stdin.buffer.read(most)})
    data: bytes = _read["data"]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The {what} on standard input is not valid UTF-8 (byte {error.start}). Nothing was written.",
            hint="Convert it with iconv, or send the name of the file instead of its content.",
            code="not-utf8",
        ) from None


def objects(what: str) -> list[dict[str, Any]]:
    """Return a JSON object for each line that is not blank.

    Raises:
        UsageError: A line is not a JSON object; the message has its number.
    """
    import json

    found = []
    for number, line in enumerate(text(f"{what}s", LINES_MAX_BYTES).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UsageError(
                f"Line {number} of standard input is not a JSON object. Nothing was written.",
                hint='Each line must be a JSON object, such as {"content":"The parser drops tabs","type":"bug"}',
                code="bad-json",
            )
        found.append(value)
    return found
