"""Sync, init and doctor as text."""

from __future__ import annotations

from .out import harmless
from .text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.doctor import Report
    from gitmem.operations.sync import RemoteState, Synced


def sync(found: Synced) -> list[str]:
    return [_remote(each) for each in found.remotes] or [
        "There is no remote to sync with; the log is here alone"
    ]


def _remote(each: RemoteState) -> str:
    name = harmless(each.name, keep="")
    said = f": {harmless(each.message)}" if each.message else ""
    if each.state == "up-to-date":
        return f"{name}: up to date{said}"
    if each.state == "synced":
        return f"{name}: received {plural(each.received, 'line')}, sent {each.sent}{said}"
    return f"{name}: {each.state}{said}"


def doctor(found: Report) -> list[str]:
    if not found.findings:
        return ["All is well"]
    lines = []
    for each in found.findings:
        where = f" ({harmless(str(each.where), keep='')})" if each.where else ""
        lines.append(f"{each.code}: {harmless(each.what)}{where}")
        lines.append(f"  do: {harmless(each.fix)}")
    return lines
