"""The events of a task in an answer: all of them, or of too many the ones that decide and the latest, with long fields cut."""

from __future__ import annotations

from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from ..records.shown_types import ShownTaskEvent
    from .task_facts import TaskEvent

BYTES_MAX = 96 * 1024  # of all events in one answer
LONG = 4_000  # bytes of an event whose texts may be cut
TEXT_MAX = 500  # characters that are left of a cut text
IDS_MAX = 20


def select(
    events: Sequence[TaskEvent], first: Collection[str], most: int = BYTES_MAX
) -> tuple[list[ShownTaskEvent], int]:
    """Return events in their order as answers show them, and how many are left out.

    Args:
        events: All events, in order.
        first: The ids of those that an answer must have rather than others, which are the latest.
        most: The greatest size of the lines of all of them, in bytes.
    """
    if sum(len(each.line) for each in events) <= most:
        return [records.shown(each.record) for each in events], 0
    left = most
    found: dict[str, ShownTaskEvent] = {}
    for each in [*(one for one in events if one.id in first), *reversed(events)]:
        if each.id in found:
            continue
        left -= min(len(each.line), LONG)
        if left < 0:
            break
        found[each.id] = shorter(each)
    return [found[each.id] for each in events if each.id in found], len(events) - len(found)


def shorter(event: TaskEvent) -> ShownTaskEvent:
    """Return an event with its long fields cut; `cut` has the size that each of them had."""
    shown: Any = records.shown(event.record)
    if len(event.line) <= LONG:
        return shown  # type: ignore[no-any-return]
    sizes: dict[str, int] = {}
    for name, value in list(shown.items()):
        if isinstance(value, str) and len(value) > TEXT_MAX:
            sizes[name], shown[name] = len(value), value[:TEXT_MAX]
        elif isinstance(value, list) and len(value) > IDS_MAX:
            sizes[name], shown[name] = len(value), value[:IDS_MAX]
        elif isinstance(value, dict) and len(size := repr(value)) > TEXT_MAX:
            sizes[name], shown[name] = len(size), {}
    shown["cut"] = sizes
    return shown  # type: ignore[no-any-return]


def shorter_or_none(event: TaskEvent | None) -> ShownTaskEvent | None:
    """Return an event with its long fields cut; None without one."""
    return shorter(event) if event is not None else None
