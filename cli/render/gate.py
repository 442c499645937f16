"""The gate as text."""

from __future__ import annotations

from .out import sanitize
from .text import SEPARATOR, ago, who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitmem.operations.gate import Gate
    from gitmem.operations.work_units import Unchecked


def gate(found: Gate) -> list[str]:
    from gitmem.operations.gate import counted

    reader = sanitize(found.reader, keep="")
    about = sanitize(found.about, keep="")
    notes = [f"note: {sanitize(each)}" for each in found.warnings]
    if found.open and not found.passed:
        return [f"gate open: nothing on {about} is unread or unanswered by {reader}", *notes]
    if found.passed:
        where = f"commit {found.commit[:12]}" if found.commit else "recorded"
        head = f"gate passed: {counted(found)} on {about} for {reader}{SEPARATOR}{found.audit_id}{SEPARATOR}{where}"
    else:
        head = f"gate closed: {counted(found)} on {about} for {reader}"
    lines = [head]
    for signal in found.signals:
        lines += _signal(signal)
    if found.more:
        lines.append(f"and {found.more} more")
    return [*lines, *notes]


def unchecked(found: Unchecked) -> list[str]:
    about = f"on {sanitize(found.wu_id, keep='')}" if found.wu_id else "for this push"
    notes = [f"note: {sanitize(each)}" for each in found.warnings]
    return [f"gate: nothing was checked {about}: {sanitize(found.reason)}", *notes]


def _signal(signal: Mapping[str, object]) -> list[str]:
    parts = [
        str(signal["signal_id"]),
        str(signal["intent"]),
        f"from {who(signal['sender_name'], signal['sender_identity'])}",
        str(signal["wu_id"] or signal["initiative_id"] or ""),
        ago(str(signal["created_at"])),
        str(signal["why"]),
        "needs AGREE or REJECT" if signal["requires_ack"] else "",
    ]
    commands = signal["commands"]
    assert isinstance(commands, list)
    return [
        SEPARATOR.join(sanitize(part, keep="") for part in parts if part),
        *(f"  {sanitize(each)}" for each in commands),
    ]
