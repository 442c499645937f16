"""Claims on paths as text."""

from __future__ import annotations

from . import output
from .text import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.claims.claim_answers import (
        ClaimChange,
        ClaimCheck,
        ClaimPage,
        ClaimRow,
        ClaimsReleased,
        EditRow,
    )
    from gitmem.claims.claim_guard import Guard

PATHS_SHOWN, GUARDED_SHOWN = 3, 20


def change(found: ClaimChange) -> list[str]:
    """Return a claim that was made or renewed."""
    verb = "renewed" if found.event == "renew" else "yours"
    line = f"{found.claim_id}{SEPARATOR}{verb} until {minute(found.until)}{SEPARATOR}{_paths(found.paths)}"
    if found.task_id:
        line += f"{SEPARATOR}ends with {found.task_id}"
    return [output.sanitize(line), *(f"note: {output.sanitize(each)}" for each in found.warnings)]


def page(found: ClaimPage) -> list[str]:
    """Return the claims that stand, a line each."""
    lines = [row(each) for each in found.claims] or ["Nothing is claimed."]
    if found.more:
        lines.append(f"{found.more} more not shown")
    lines += [_edit(each) for each in found.edits]
    return [*lines, *(f"note: {output.sanitize(each)}" for each in found.warnings)]


def check(found: ClaimCheck) -> list[str]:
    """Return who claims the paths."""
    lines = [row(each) for each in found.claims] or [
        output.sanitize(f"Nobody else claims {_paths(found.paths)}.")
    ]
    lines += [_edit(each) for each in found.edits]
    return [*lines, *(f"note: {output.sanitize(each)}" for each in found.warnings)]


def _edit(found: EditRow) -> str:
    paths = _paths(found.paths, found.more)
    return output.sanitize(
        f"{found.name or found.session_id} edits, unclaimed: {paths}{SEPARATOR}{found.worktree or ''}"
    )


def released(found: ClaimsReleased) -> list[str]:
    """Return the claims that were released."""
    lines = [f"{each.claim_id}{SEPARATOR}released{SEPARATOR}{_paths(each.paths)}" for each in found.released]
    return list(map(output.sanitize, lines)) or ["You have no claims."]


def row(found: ClaimRow) -> str:
    """Return one claim: who, what, until when, its status and why."""
    parts = [
        f"{found.name or found.owner} claims {_paths(found.paths)}",
        f"until {minute(found.until)}",
        *([found.status] if found.status != "held" else []),
        *([found.mode] if found.mode != "exclusive" else []),
        *([f'"{found.reason}"'] if found.reason else []),
        *([str(found.wu_id)] if found.wu_id else []),
        found.claim_id,
    ]
    return output.sanitize(SEPARATOR.join(parts))


def guard(found: Guard, *, pre_commit: bool = False) -> list[str]:
    """Return which claims block changes, and which are only shown."""
    if not found.blocks and not found.warns:
        return found.warnings or ["guard open: nobody else claims these paths"]
    state = "closed" if not found.open else "passed" if found.audit_id else "open"
    head = f"guard {state}: others claim paths that you change"
    if pre_commit and not found.open:
        head = "The commit was stopped: others claim paths that you change. Ask, or give a reason, as below; then commit again."
    return [
        head,
        *_rows("", found.blocks),
        *_rows("warning: ", found.warns),
        *found.remarks,
    ]


def _rows(word: str, found: Sequence[ClaimRow]) -> list[str]:
    """Return the first claims, a line each, and how many more there are."""
    more = [f"  {word}{len(found) - GUARDED_SHOWN} more claims"] if found[GUARDED_SHOWN:] else []
    return [*(f"  {word}{row(each)}" for each in found[:GUARDED_SHOWN]), *more]


def minute(until: str | None) -> str:
    """Return a time as date and minute, in UTC."""
    return f"{until[:10]} {until[11:16]} UTC" if until else ""


def _paths(paths: list[str], further: int = 0) -> str:
    left = max(0, len(paths) - PATHS_SHOWN) + further
    more = f" and {left} more" if left else ""
    return ", ".join(paths[:PATHS_SHOWN]) + more
