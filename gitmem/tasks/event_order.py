"""The causal order of a task's events: what each writer had seen, as bits of integers."""

from __future__ import annotations

from ..signals import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .task_facts import Sender, TaskEvent


class EventOrder:
    """The events that the writer of each event had seen, directly or not.

    An event that, by the ids they name, comes before itself is not ordered with the others of its cycle.
    """

    def __init__(self, events: Mapping[str, TaskEvent]) -> None:
        self._bit: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        if not self._fill({id: each.named & events.keys() for id, each in events.items()}):
            edges = graph.without_cycles({id: each.named & events.keys() for id, each in events.items()})
            self._bit, self._seen = {}, {}
            order = graph.components(edges)  # an id comes after all ids that it names
            self._fill({id: edges[id] for id in order})
        self.events = [events[id] for id in self._bit]  # each after all that its writer had seen

    def _fill(self, edges: Mapping[str, set[str]]) -> bool:
        """Number the events in this order; return whether each comes after all that it names, as honest clocks have it."""
        for number, (id, names) in enumerate(edges.items()):
            seen = 0
            for name in names:
                if name not in self._bit:
                    return False
                seen |= self._seen[name] | self._bit[name]
            self._seen[id] = seen
            self._bit[id] = 1 << number
        return True

    def has_seen(self, later: TaskEvent, earlier: str) -> bool:
        """Return whether the writer of an event had seen the event with this id."""
        return bool(self._seen[later.id] & self._bit.get(earlier, 0))

    def reports_seen(self, later: TaskEvent, events: Iterable[TaskEvent]) -> list[TaskEvent]:
        """Return those of some events that the writer of an event had seen, and the take of each as well."""
        seen, bits = self._seen[later.id], self._bit
        known = (each for each in events if seen & bits[each.id])
        return [each for each in known if seen & bits.get(each.take or "", 0)]

    def has_seen_any(self, later: TaskEvent, bits: int) -> bool:
        """Return whether the writer of an event had seen one of the events of these bits."""
        return bool(self._seen[later.id] & bits)

    def has_seen_all(self, later: TaskEvent, bits: int) -> bool:
        """Return whether the writer of an event had seen all events of these bits."""
        return not bits & ~self._seen[later.id]

    def bits(self, events: Iterable[TaskEvent]) -> int:
        """Return the bits of events."""
        found = 0
        for each in events:
            found |= self._bit[each.id]
        return found

    def bits_by_sender(self, events: Iterable[TaskEvent]) -> dict[Sender, int]:
        """Return the bits of the events of each sender."""
        found: dict[Sender, int] = {}
        for each in events:
            found[each.sender] = found.get(each.sender, 0) | self._bit[each.id]
        return found

    def seen_by(self, events: Iterable[TaskEvent]) -> int:
        """Return the bits of what the writers of events had seen."""
        found = 0
        for each in events:
            found |= self._seen[each.id]
        return found

    def heads(self, events: Iterable[TaskEvent]) -> list[TaskEvent]:
        """Return those events that no writer of another one of them had seen, the lowest first."""
        found = list(events)
        seen = self.seen_by(found)
        return in_order(each for each in found if not seen & self._bit[each.id])

    def first(self, events: Iterable[TaskEvent]) -> TaskEvent | None:
        """Return the event whose writer had seen none of the others; of several the lowest."""
        found = list(events)
        bits = self.bits(found)
        return min(
            (each for each in found if not bits & self._seen[each.id]),
            key=lambda each: each.line,
            default=None,
        )


def in_order(events: Iterable[TaskEvent]) -> list[TaskEvent]:
    """Return events by `(at, bytes)`."""
    return sorted(events, key=lambda each: each.line)
