"""Launches of workers, and the briefs that they start with, as text."""

from __future__ import annotations

from gitmem.roles import mismatch

from .sessions import plain
from .text import SEPARATOR, format_ago, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.tasks.brief import BriefCheck
    from gitmem.tasks.launch import Launched
    from gitmem.tasks.launches import LaunchReceipt


def attempt(found: LaunchReceipt) -> list[str]:
    """Return what is said of an attempt beside its task: number and label, wave, and where it works."""
    number = f"attempt {found.attempt_number}" if found.attempt_number is not None else "attempt"
    parts = [
        f"{number} ({found.attempt})" if found.attempt else number,
        f"wave {found.wave}" if found.wave else None,
        f"branch {found.branch}" if found.branch else None,
        f"worktree {found.worktree}" if found.worktree else None,
    ]
    return [part for part in parts if part]


def launched(found: Launched) -> list[str]:
    """Return a recorded launch: which attempt it is, where, and in which role."""
    numbered = attempt(found)
    if found.initiative_id:
        numbered[0] += f" of {found.initiative_id}"
    what = "relaunched" if found.relaunch_reason else "launched"
    parts = [
        found.task_id, what, *numbered, found.wu_id, found.lane, found.claimed_mode, found.client, found.requested_model,
        found.handoff_path,
    ]  # fmt: skip
    asked, last = mismatch.role_text(found.requested_role), mismatch.role_text(found.last_actual_role)
    actual = mismatch.role_text(found.actual_role)
    roles = [
        f"asked for {asked}" if asked else None,
        f"starts as {actual}" if actual else None,
        f"the last worker was {last}" if last else None,
    ]
    lines = [SEPARATOR.join(filter(None, parts)), SEPARATOR.join(filter(None, roles))]
    if found.role_mismatch:
        lines.append(f"mismatch: asked for {asked}, starts as {actual}")
    return [plain(line) for line in [*lines, *(f"note: {each}" for each in found.warnings)] if line]


def brief(found: BriefCheck) -> list[str]:
    """Return whether a brief is the attested one, and what was attested."""
    size = plural(found.attested_length, "byte") if found.attested_length is not None else None
    via = f"with {found.attested_client}" if found.attested_client else None
    attested = [f"attested {format_ago(found.attested_at)}", via, size, f"SHA-256 {found.attested_sha256}"]
    lines = [
        plain(SEPARATOR.join((found.task_id, found.path, found.status))),
        plain(SEPARATOR.join(filter(None, attested))),
    ]
    return [*lines, *([plain(f"note: {found.sentence}")] if found.sentence else [])]
