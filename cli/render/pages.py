"""Pages for a browser, and figures, as text."""

from __future__ import annotations

from .sessions import plain
from .text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.page.view import View

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
