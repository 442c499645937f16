"""The results of memory upkeep as text."""

from __future__ import annotations

from ..output import sanitize
from ..text import SEPARATOR, format_ago, plural
from .nodes import SHOWN, end, kept, notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.memory.accesses import Accessed
    from gitmem.memory.archive import Archived
    from gitmem.memory.cleanup import CleanupResult
    from gitmem.memory.delete import Deleted


def archived(found: Archived) -> list[str]:
    """Return the nodes that were archived for their low scores, with the scores."""
    verb = "would archive" if found.dry_run else "archived"
    head = (
        f"{verb} {len(found.archived_ids)} of {plural(found.total_processed, 'node')}"
        f"{SEPARATOR}{len(found.retained_ids)} kept{SEPARATOR}{len(found.skipped_ids)} skipped"
    )
    each = [f"{id}  {found.scores[id]:.3g}" for id in found.archived_ids[:SHOWN]]
    return [
        head + end(found.commit, found.recorded),
        *each,
        *_more(found.archived_ids),
        *kept(found.protected),
        *notes(found.warnings),
    ]


def cleaned(found: CleanupResult) -> list[str]:
    """Return the nodes that cleanup deleted, with counts by reason."""
    every = len(found.removed_ids) + len(found.retained_ids)
    verb = "would delete" if found.dry_run else "deleted"
    head = f"{verb} {len(found.removed_ids)} of {plural(every, 'node')}"
    why = found.breakdown
    counts = [
        (why.ttl_expired, "expired"),
        (why.ephemeral, "ephemeral"),
        (why.session, "session nodes"),
        (why.wu, "summarized"),
        (why.sensitive, "sensitive, kept"),
        (why.urgent, "open P0 or P1, kept (--force deletes them)"),
        (why.active_session_protected, "of active sessions, kept"),
        (why.decay_archived, "to archive" if found.dry_run else "archived"),
    ]
    reasons = SEPARATOR.join(f"{count} {what}" for count, what in counts if count)
    lines = [head + end(found.commit, found.recorded), *([reasons] if reasons else [])]
    return [*lines, *found.removed_ids[:SHOWN], *_more(found.removed_ids), *notes(found.warnings)]


def deleted(found: Deleted) -> list[str]:
    """Return the nodes that were deleted, now or before."""
    verb = "would delete" if found.dry_run else "deleted"
    head = f"{verb} {plural(len(found.ids), 'node')}" if found.ids else "nothing to delete"
    lines = [head + end(found.commit, found.recorded), *found.ids[:SHOWN], *_more(found.ids)]
    lines += [f"{id}: already deleted" for id in found.already]
    return [*lines, *notes(found.warnings)]


def accessed(found: Accessed) -> list[str]:
    """Return how often and when each node was read, and its score."""
    lines = []
    for each in found.accesses:
        last = f", last {format_ago(each.last_accessed_at)}" if each.last_accessed_at else ""
        lines.append(
            f"{sanitize(each.node_id)}: read {plural(each.count, 'time')}{last}{SEPARATOR}score {each.score:.3g}"
        )
    return lines


def _more(ids: Sequence[str]) -> list[str]:
    return [f"… {len(ids) - SHOWN} more; --json lists all"] if len(ids) > SHOWN else []
