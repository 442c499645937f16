"""Find cycles: nodes that block each other, so that none of them ever becomes ready."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def find_cycles(leads: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return one cycle of each strongly connected component: from its lowest id the shortest way back to it.

    Args:
        leads: The successors of each id; an id without an entry has none.
    """
    found = []
    for component in strong_components(leads):
        start = min(component)
        came: dict[str, str] = {}
        todo = [start]
        for here in todo:
            for other in sorted(set(leads.get(here, ())) & component):
                if other not in came:
                    came[other] = here
                    todo.append(other)
        way = [came[start]]
        while way[-1] != start:
            way.append(came[way[-1]])
        found.append(way[::-1])
    return sorted(found)


def strong_components(leads: Mapping[str, Collection[str]]) -> list[set[str]]:
    """Return the strongly connected components that contain a cycle."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_ids: dict[str, None] = {}
    found = []
    for start in sorted(leads):
        if start in number:
            continue
        # An explicit stack: chains may be deeper than Python's recursion limit.
        todo = [(start, iter(sorted(leads[start])))]
        number[start] = low[start] = len(number)
        open_ids[start] = None
        while todo:
            here, others = todo[-1]
            other = next(others, None)
            if other is None:
                todo.pop()
                if todo:
                    above = todo[-1][0]
                    low[above] = min(low[above], low[here])
                if low[here] == number[here]:
                    component = _taken(open_ids, here)
                    if len(component) > 1 or here in leads.get(here, ()):
                        found.append(component)
            elif other not in number:
                number[other] = low[other] = len(number)
                open_ids[other] = None
                todo.append((other, iter(sorted(leads.get(other, ())))))
            elif other in open_ids:
                low[here] = min(low[here], number[other])
    return found


def _taken(open_ids: dict[str, None], down_to: str) -> set[str]:
    taken = set()
    while True:
        id, _ = open_ids.popitem()
        taken.add(id)
        if id == down_to:
            return taken
