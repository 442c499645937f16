"""The words that answers share: how long ago, who, and the frame around what peers say."""

from __future__ import annotations

import time

from .out import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BAR = "| "
SEPARATOR = " · "


def ago(at: str) -> str:
    """How long ago a time such as `2026-11-21T20:00:00.123456Z` was; the time itself when it is ahead."""
    from datetime import datetime

    try:
        seconds = time.time() - datetime.fromisoformat(at).timestamp()
    except ValueError:
        return harmless(at)
    if seconds < -60:
        return f"at {at[:16]}Z"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h ago"
    return f"{int(seconds // 86400)} days ago"


def who(name: object, identity: object) -> str:
    """`Planck (codex:implementer:host42)`, or the one of them that there is."""
    shown = harmless(str(name or ""), keep="")
    exact = harmless(str(identity or ""), keep="")
    if shown and exact and shown != exact:
        return f"{shown} ({exact})"
    return shown or exact or "nobody"


def framed(signal: Mapping[str, object], *, note: str = "") -> list[str]:
    """A signal inside its frame: a head that says whose words these are, and each line of them barred."""
    intent = str(signal.get("intent") or "INFO")
    head = [
        str(signal.get("signal_id")),
        intent,
        str(signal.get("interrupt_class") or "") if signal.get("interrupt_class") == "priority" else "",
        "from "
        + who(signal.get("sender_name") or signal.get("sender_display"), signal.get("sender_identity")),
        str(signal.get("wu_id") or ""),
        str(signal.get("lane") or ""),
        str(signal.get("thread_id") or ""),
        f"answers {signal['reply_to']}" if signal.get("reply_to") else "",
        ago(str(signal.get("created_at"))),
        f"file {signal['artifact_path']}" if signal.get("artifact_path") else "",
        "needs AGREE or REJECT" if signal.get("requires_ack") else "",
        note,
    ]
    return [
        "[" + SEPARATOR.join(harmless(part, keep="") for part in head if part) + "]",
        *barred(str(signal.get("message") or "")),
    ]


def barred(message: str) -> list[str]:
    """Each line of a message behind a bar, so that none of it can be taken for ours."""
    parts = message.replace("\r\n", "\n").split("\n")
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [(BAR + harmless(part)).rstrip() for part in parts]


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
