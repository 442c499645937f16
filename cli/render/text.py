"""The words that answers share: how long ago, who, and the frame around what peers say."""

from __future__ import annotations

import time

from gitmem.signals import message_frame
from gitmem.signals.message_frame import BAR as BAR
from gitmem.signals.message_frame import SEPARATOR as SEPARATOR
from gitmem.signals.message_frame import barred as barred
from gitmem.signals.message_frame import who as who

from .out import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.sync.autosync import Trouble


def ago(at: str, now: int | None = None) -> str:
    """How long ago a time such as `2026-11-21T20:00:00.123456Z` was; the time itself when it is ahead.

    Args:
        now: Microseconds since the epoch, where the clock was read before.
    """
    try:
        seconds = (time.time() if now is None else now / 1e6) - _seconds(at)
    except ValueError:
        return sanitize(at)
    if seconds < -60:
        return f"at {at[:16]}Z"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h ago"
    return f"{int(seconds // 86400)} days ago"


def _seconds(at: str) -> float:
    """A time as seconds since the epoch. ValueError for what is none."""
    from gitmem.agents.presence import micros

    try:
        return micros(at) / 1e6
    except ValueError:  # of another form: what was said elsewhere, before
        from datetime import datetime

        return datetime.fromisoformat(at).timestamp()


def framed(signal: Mapping[str, object], *, note: str = "", line: str | None = None) -> list[str]:
    """A signal inside its frame, as lines.

    Args:
        line: The line to reply by, where the reader gets one.
    """
    text = message_frame.signal_text(signal, age=ago(str(signal.get("created_at"))), note=note)
    return message_frame.handed(text, line).split("\n")


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width, two spaces apart."""
    if not rows:
        return []
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def trouble(found: Trouble | None) -> list[str]:
    """What went wrong in the last sync, in a line."""
    if found is None:
        return []
    return [f"{found.what}, {ago(found.at)}: {sanitize(found.message)}"]
