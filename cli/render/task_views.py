"""Trees and counts of tasks as text."""

from __future__ import annotations

from . import tasks
from .output import paint
from .sessions import plain
from .text import SEPARATOR, plural, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitmem.tasks.stuck import StuckPage
    from gitmem.tasks.task_stats import Durations, TaskStats
    from gitmem.tasks.task_tree import TaskTree, TreeRow

INDENTED_MAX = 10  # levels


def tree(found: TaskTree) -> list[str]:
    """Return a heading for each initiative and work unit, and its tasks with those within them indented."""
    if not found.groups:
        return ["No tasks."]
    lines = []
    for group in found.groups:
        heading = SEPARATOR.join(filter(None, (group.initiative_id, group.wu_id)))
        lines.append(paint(plain(heading or "without initiative and work unit"), "head"))
        lines += table([_row(each) for each in group.tasks], shortened=(4, 3, 2))
    if found.more or found.cut:
        lines.append(f"{found.more}{' or more' if found.cut else ''} more not shown; use --limit N")
    return lines


def stuck(found: StuckPage) -> list[str]:
    """Return a line for each stuck task, and whom it was told to."""
    if not found.stuck:
        return ["No stuck tasks."]
    rows = [
        tuple(
            plain(str(cell))
            for cell in (each.task.task_id, each.level, each.why, each.text, each.task.title or "")
        )
        for each in found.stuck
    ]
    lines = table(rows, shortened=(4, 3))
    lines += [f"{found.more} more not shown; use --limit N"] if found.more else []
    lines += [f"escalated: {plain(', '.join(found.escalated))}"] if found.escalated else []
    return [*lines, *(plain(f"note: {each}") for each in found.warnings)]


def stats(found: TaskStats) -> list[str]:
    """Return the counts, a line for each kind."""
    notes = {"replaced": found.replaced, "in conflict": found.conflicts, "launched": found.launches}
    lines = [SEPARATOR.join([plural(found.tasks, "task"), f"{found.open} open", *_counts(notes)])]
    lines += [
        f"{name}: {', '.join(_counts(counts))}"
        for name, counts in (("states", found.states), ("outcomes", found.outcomes))
        if counts
    ]
    lines += [
        f"role {each.role}: {plural(each.tasks, 'task')}, {each.open} open, {each.completed} completed"
        for each in found.roles
    ]
    lines += _durations("first taken after", found.to_first_take) + _durations("done after", found.to_end)
    return [plain(line) for line in lines]


def _counts(counts: Mapping[str, int]) -> list[str]:
    return [f"{count} {name}" for name, count in counts.items() if count]


def _durations(what: str, found: Durations) -> list[str]:
    if not found.count:
        return []
    median, p90, longest = (span(each) for each in (found.median, found.p90, found.longest))
    return [f"{what} {median} (median), 90% within {p90}, at most {longest}; {plural(found.count, 'task')}"]


def span(seconds: float | None) -> str:
    """Return a time span such as `40 min`."""
    whole = int(seconds or 0)
    for size, word in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {word}"
    return f"{whole} s"


def _row(each: TreeRow) -> tuple[str, ...]:
    id, state, *others = tasks.row(each.task)
    indent = "  " * (1 + min(each.depth, INDENTED_MAX))
    notes = [
        plural(each.launches, "attempt") if each.launches else "",
        "within itself" if each.in_cycle else "",
    ]
    return (f"{indent}{id}", ", ".join(filter(None, (state, *notes))), *others)
