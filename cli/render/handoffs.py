"""Handoffs as text."""

from __future__ import annotations

from .claims import minute
from .output import sanitize
from .sessions import plain
from .text import SEPARATOR, plural, quote_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.handoffs.content import Checkpoint, HandoffContent, LeftOut
    from gitmem.handoffs.give import NewHandoff

SHOWN = 10  # of each kind
PATHS_SHOWN = 3


def given(found: NewHandoff) -> list[str]:
    """Return a new handoff: to whom, what it has, and what it leaves out."""
    told = f"told {', '.join(found.signaled[:3])}" if found.signal_id else ""
    parts = [
        found.task["task_id"] if found.recorded else "not written",
        f"from {found.task.get('sender_name') or found.task['sender_identity']}",
        f"to {found.to}",
        found.task.get("wu_id"),
        told,
        f"waits until {minute(found.until)}" if found.until else "",
        plural(found.bytes, "byte"),
    ]
    lines = [plain(SEPARATOR.join(str(each) for each in parts if each))]
    node = found.handoff.checkpoint
    lines += [plain(f"{_head(node)}: {_first_line(node.content)}")] if node is not None else []
    lines += _named(found.handoff)
    return [*lines, *_left_out(found.left_out), *(plain(f"note: {each}") for each in found.warnings)]


def content(found: HandoffContent) -> list[str]:
    """Return what a handoff has; texts of others are in a frame."""
    from gitmem.signals.message_frame import PEERS

    lines = []
    node = found.checkpoint
    if node is not None:
        lines.append(f"{_head(node)}. {PEERS}")
        texts = (node.content, node.progress, node.next_steps)
        for head, text in zip(("", "progress:", "next steps:"), texts, strict=True):
            if text:
                lines += [*([head] if head else []), *quote_lines(text)]
        if node.is_cut:
            lines.append(f"cut; all of it: {sanitize(node.next[0])}")
    return [*lines, *_named(found), *_left_out(found.left_out)]


def _named(found: HandoffContent) -> list[str]:
    """Return a line for each task, claim and thread."""
    tasks = [f"task {each.task_id}{SEPARATOR}{each.state}{SEPARATOR}{each.title}" for each in found.tasks]
    claims = []
    for each in found.claims:
        more = f" and {len(each.paths) - PATHS_SHOWN} more" if each.paths[PATHS_SHOWN:] else ""
        claims.append(f"claim {', '.join(each.paths[:PATHS_SHOWN])}{more} until {minute(each.until)}")
    threads = [
        f"thread {each.thread_id}{SEPARATOR}{each.sender} {each.intent}: {each.message}{SEPARATOR}{each.next[0]}"
        for each in found.threads
    ]
    return [
        line
        for some, word in ((tasks, "task"), (claims, "claim"), (threads, "thread"))
        for line in _some(some, word)
    ]


def _left_out(every: Sequence[LeftOut]) -> list[str]:
    return _some([f"left out: {each.id} {each.reason}" for each in every], "left out")


def _some(lines: Sequence[str], word: str) -> list[str]:
    """Return the first lines of a kind, and how many more there are."""
    more = len(lines) - SHOWN
    return [*map(plain, lines[:SHOWN]), *([f"{more} more: {word}"] if more > 0 else [])]


def _head(node: Checkpoint) -> str:
    return f"checkpoint {node.id} of {minute(node.created_at)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
