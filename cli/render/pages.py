"""Pages for a browser, and figures, as text."""

from __future__ import annotations

from .output import paint
from .sessions import plain
from .task_views import span
from .text import SEPARATOR, plural, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.history.figures import Spread, Stats
    from gitmem.page.view import View

DAYS_SHOWN = 14
WORDS = {
    "agents": "agent",
    "signals": "signal",
    "tasks": "task",
    "claims": "claim",
    "commits": "commit",
    "nodes": "memory node",
}


def view(found: View) -> list[str]:
    """Return the path of a page, what it has and what it lacks."""
    has = ", ".join(plural(found.counts[name], word) for name, word in WORDS.items())
    lines = [f"wrote {plain(found.path)}", f"{has}; {(found.bytes + 1023) // 1024:,} KiB"]
    left = [f"{count:,} {name}" for name, count in found.omitted.items()]
    lines += (
        [f"left out: {', '.join(left)}, the oldest; --since, --wu or --agent choose others"] if left else []
    )
    return [*lines, *map(plain, found.warnings)]


def stats(found: Stats) -> list[str]:
    """Return a table of the last days, and a line for each other figure."""
    if not found.days and not found.tasks and not found.ahead:
        return [plain(found.remark) or "Nothing was said, and there are no tasks."]
    shown = found.days[-DAYS_SHOWN:]
    rows: list[tuple[str, ...]] = [("DAY", "SIGNALS", "AGENTS", "PROPOSALS", "ANSWERS")] if shown else []
    rows += [
        (
            each["day"],
            *(
                f"{number:,}"
                for number in (each["signals"], each["agents"], each["proposals"], each["answers"])
            ),
        )
        for each in shown
    ]
    lines = table(rows, painted=lambda row, _, cell: cell if row else paint(cell, "head"))
    if len(found.days) > len(shown):
        lines.append(
            f"{len(found.days) - len(shown)} earlier days not shown; --json has the last {len(found.days)}"
        )
    lines += (
        [f"{plural(found.ahead, 'signal')} with a date more than a day ahead; no day counts them"]
        if found.ahead
        else []
    )
    lines += _took("first answer after", found.first_answer, "question")
    lines += _took("agreement after", found.agreement, "thread")
    lines += _took("unread for", found.unread_age, "signal")
    lines += [f"answers owed: {found.unanswered:,}"] if found.unanswered else []
    counts = SEPARATOR.join(f"{count:,} {plain(name)}" for name, count in found.tasks.items())
    lines += [f"tasks: {counts}"] if counts else []
    if found.older:
        lines.append(
            f"answers and agreements are those of the newest signals; {found.older:,} older ones were not read"
        )
    return lines


def _took(what: str, found: Spread, noun: str) -> list[str]:
    """Return the line of a time; nothing without any."""
    if not found["n"]:
        return []
    median, p90 = (span(each / 1_000) for each in (found["median_ms"], found["p90_ms"]))
    return [f"{what} {median} (median), 90% within {p90}; {plural(found['n'], noun)}"]
