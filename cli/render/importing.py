"""The result of an import as text."""

from __future__ import annotations

from .output import record_position, sanitize
from .text import SEPARATOR, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.importers.lumenflow.import_result import Imported, LineNote


def imported(found: Imported) -> list[str]:
    """Return the counts of each kind as a table, followed by skipped lines and notes."""
    counts = found.counts
    columns = list(next(iter(counts.values())))
    rows = [["", *columns]]
    rows += [[kind, *(str(each[column]) for column in columns)] for kind, each in counts.items()]
    return [
        _head(found),
        *table(rows),
        *_counts_line("skipped", found.problems, found.problems_more),
        *_counts_line("note", found.remarks, found.remarks_more),
        *(f"note: {sanitize(each)}" for each in found.warnings),
    ]


def _head(found: Imported) -> str:
    folder = sanitize(found.folder, keep="")
    if found.dry_run:
        return f"{folder}: dry run, nothing was written"
    if found.commit is not None or found.recorded:
        return folder + SEPARATOR + record_position(found.commit)
    return f"{folder}: nothing new"


def _counts_line(word: str, every: Sequence[LineNote], more: int) -> list[str]:
    lines = []
    for each in every:
        where = sanitize(f"{each.file}:{each.line}" if each.line else each.file, keep="")
        lines.append(f"{word}: {where}: {sanitize(each.reason)}")
    return [*lines, *([f"{word}: and {more} more"] if more else [])]
