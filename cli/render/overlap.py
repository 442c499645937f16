"""Branches that change the same files, as text."""

from __future__ import annotations

from .output import paint
from .sessions import plain
from .text import plural, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.history.overlap import Overlap, Overlaps, Side

PAIRS_SHOWN = 20
FILES_SHOWN = 3
STATES = {True: "conflict", None: "unknown", False: "clean"}


def overlap(found: Overlaps) -> list[str]:
    """Return a line for each pair, those that conflict first, and how many were told."""
    shown = found.overlaps[:PAIRS_SHOWN]
    rows = [("MERGE", "BRANCHES", "", "FILES"), *map(_row, shown)] if shown else []
    lines = table(rows, shortened=(3,), painted=lambda row, _, cell: cell if row else paint(cell, "head"))
    more = len(found.overlaps) - len(shown) + found.more
    listed = f"; --json has {len(found.overlaps)}" if len(found.overlaps) > len(shown) else ""
    lines += [f"{plural(more, 'more pair')} not shown{listed}"] if more else []
    lines.append(_summary(found))
    if found.sent:
        lines.append(f"told by {plural(len(found.sent), 'signal')}: {', '.join(found.sent)}")
    return [*lines, *map(plain, found.warnings)]


def _summary(found: Overlaps) -> str:
    """Return a sentence about all pairs."""
    branches = f"{found.compared} branches"
    if found.compared < 2:
        only = "One branch has" if found.compared else "No branch has"
        return f"{only} recent commits, a session or uncommitted files: nothing to compare"
    if not found.overlaps:
        return f"No two of {branches} change the same file"
    pairs = plural(len(found.overlaps) + found.more, "pair")
    return f"{branches}: {pairs} with the same files, {found.conflicts} in conflict"


def _row(each: Overlap) -> tuple[str, ...]:
    files = each.conflicting or each.files
    count = len(files) + (each.more_conflicting if each.conflicting else each.more)
    rest = f" and {count - FILES_SHOWN} more" if count > FILES_SHOWN else ""
    note = "" if each.conflicting or not each.uncommitted else " (uncommitted)"
    one, other = map(_side, each.sides)
    return STATES[each.conflicts], one, other, plain(", ".join(files[:FILES_SHOWN])) + rest + note


def _side(side: Side) -> str:
    names = f" ({', '.join(side.sessions)})" if side.sessions else ""
    return plain(f"{side.branch}{names}")
