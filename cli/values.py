"""Values as people type them, such as times, durations, numbers and texts, and standard input."""

from __future__ import annotations

import sys
import time

from gitmem.errors import UsageError, bad_number
from gitmem.settings import UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeVar

    from .environment import Environment

    Text = TypeVar("Text", str, str | None)


SECONDS_MAX = 100 * 365 * 86400


def duration(text: str, option: str = "") -> float:
    """Return the seconds of `30s`, `5m`, `1h`, `2d`, `1w`, or of a bare number of seconds.

    Args:
        option: The option that has it, for the error.

    Raises:
        UsageError: The text is not a duration.
    """
    word = text.strip().lower()
    unit = UNITS.get(word[-1:])
    figure = word[:-1] if unit else word
    try:
        seconds = float(figure) * (unit or 1)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= SECONDS_MAX:
        raise UsageError(
            f"Invalid duration: {f'{option} ' if option else ''}{text!r}.",
            hint="Use a form such as 30s, 5m, 1h or 2d.",
            code="bad-duration",
        )
    return seconds


def lease(option: str, text: str, *, least: int = 0) -> int:
    """Return the time of a take or claim in microseconds.

    Args:
        least: The shortest one in seconds; 0 for any above that.

    Raises:
        UsageError: The text is not a duration, or too short or too long.
    """
    from gitmem.order.task import LEASE_MAX_MICROS

    micros = int(duration(text, option) * 1_000_000)
    if not max(1, least * 1_000_000) <= micros <= LEASE_MAX_MICROS:
        limits = f"{least}s to 24h" if least else "more than 0 and at most 24h"
        raise UsageError(
            f"Invalid time: {option} {text}; it lasts {limits}. Nothing was written.", code="bad-lease"
        )
    return micros


def choice(option: str, text: str | None, allowed: Sequence[str]) -> str | None:
    """Return an option's value, which is one of a few words, or None without the option.

    Raises:
        UsageError: It is none of these words.
    """
    if text is not None and text not in allowed:
        raise UsageError(
            f"Invalid {option}: {text!r}; choose from {', '.join(allowed)}. Nothing was written.",
            code="bad-choice",
        )
    return text


def parse_moment(text: str) -> int:
    """Return a time in microseconds since the epoch, from an ISO time (UTC by default) or a duration before now.

    Raises:
        UsageError: The text is neither.
    """
    from datetime import UTC, datetime

    word = text.strip()
    if word[-1:].lower() in UNITS and word[:1].isdigit() and "-" not in word:
        return int((time.time() - duration(word)) * 1_000_000)
    try:
        found = datetime.fromisoformat(word)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return max(0, int(found.timestamp() * 1_000_000))
    except (ValueError, OverflowError):
        raise UsageError(
            f"Invalid time: {text!r}.",
            hint="Use a form such as 1h, 2d or 2026-11-21T20:00:00Z.",
            code="bad-time",
        ) from None


def number(option: str, text: str | None, otherwise: int) -> int:
    """Return an option's whole number of 1 or more.

    Raises:
        UsageError: The text is not such a number.
    """
    if text is None:
        return otherwise
    if not (text.isascii() and text.isdigit() and int(text[:12]) > 0 and len(text) <= 12):
        raise bad_number(option, text)
    return int(text)


def typed(text: Text, what: str) -> Text:
    """Return the typed text, or all of standard input for `-`."""
    if text != "-":
        return text

    return stdin_text(what)


def words(options: Mapping[str, str | bool | Sequence[str] | None]) -> list[str]:
    """Return options with their values as words of a command line, without those that were not given."""
    found = []
    for name, value in options.items():
        if isinstance(value, bool) or value is None:
            found += [name] if value else []
        else:
            found += [
                word for each in ([value] if isinstance(value, str) else value) for word in (name, each)
            ]
    return found


def parts(values: Sequence[str] | None) -> list[str]:
    """Return the parts of comma-separated lists."""
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]


def metadata(values: Sequence[str] | None, option: str = "--meta") -> dict[str, object]:
    """Return entries such as `attempts=3`; for nodes null removes an entry.

    Raises:
        UsageError: A value is not of the form KEY=VALUE.
    """
    found: dict[str, object] = {}
    for value in values or ():
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise UsageError(
                f"Invalid {option}: {value!r}; it must be KEY=VALUE. Nothing was written.",
                code="bad-metadata",
            )
        import json

        try:
            found[key] = json.loads(text)
        except (ValueError, RecursionError):
            found[key] = text
    return found


def check_utf8(args: Sequence[str]) -> None:
    """Reject arguments whose bytes are not UTF-8. The folder of -C may be any bytes.

    Raises:
        UsageError: An argument is not UTF-8.
    """
    for at, arg in enumerate(args):
        try:
            arg.encode("utf-8")
        except UnicodeEncodeError:
            if at and args[at - 1] == "-C":
                continue
            raise UsageError(
                f"Argument {at + 1} is not valid UTF-8. Nothing was written.",
                hint="You can also send the message as UTF-8 on standard input: `gitmem signal -`.",
                code="not-utf8",
            ) from None


def named_unit(at: Environment, wu: str | None) -> str | None:
    """Return the work unit of `--wu`. Print a note if no record names it yet, because the answer may not show that."""
    if wu:
        from gitmem.agents import session_view

        from .render import output

        output.note(list(filter(None, [session_view.unit_remark(at.store(), wu)])))
    return wu


def own_task() -> str | None:
    """Return the task in GITMEM_TASK, for which this worker was started; None if there is none."""
    from .environment import variable

    return variable("GITMEM_TASK")


TEXT_MAX_BYTES = 1024 * 1024
_stdin: dict[str, Any] = {}


def stdin_text(what: str, most: int = TEXT_MAX_BYTES) -> str:
    """Return all of standard input.

    Args:
        what: The name of the input in errors: `message`.
        most: The limit in bytes; the rest is not read.

    Raises:
        UsageError: There is no standard input, or it is not UTF-8.
    """
    if sys.stdin is None:
        raise UsageError(f"No standard input to read the {what} from. Nothing was written.")
    if _stdin.get("from") is not sys.stdin:  # a repeated command uses the first read
        _stdin.update({"from": sys.stdin, "data": sys.stdin.buffer.read(most)})
    data: bytes = _stdin["data"]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The {what} on standard input is not valid UTF-8 (byte {error.start}). Nothing was written.",
            hint="Convert it with iconv, or send the name of the file instead of its content.",
            code="not-utf8",
        ) from None
