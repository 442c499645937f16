"""Algorithms on directed graphs of ids, whose cost is bounded by the lines that define the graph.

`edges` maps each id to the ids that it names, its predecessors. Every named id is a key. Searches keep their own
stacks: a chain of replies may be longer than Python's recursion limit.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    Edges = Mapping[str, Collection[str]]

BITS = 8_192  # marks in one pass over the graph: limits the size of the bit sets


def components(edges: Edges) -> dict[str, str]:
    """Return for each id the representative of its strongly connected component (Tarjan's algorithm).

    The keys are ordered: an id comes after all ids that it names outside its component.
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    found: dict[str, str] = {}
    waiting: list[str] = []
    for start in edges:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        waiting.append(start)
        todo = [(start, iter(edges[start]))]
        while todo:
            here, others = todo[-1]
            for other in others:
                if other not in number:
                    number[other] = low[other] = len(number)
                    waiting.append(other)
                    todo.append((other, iter(edges[other])))
                    break
                if other not in found and number[other] < low[here]:
                    low[here] = number[other]
            else:
                todo.pop()
                if todo and low[here] < low[todo[-1][0]]:
                    low[todo[-1][0]] = low[here]
                if low[here] == number[here]:
                    member = ""
                    while member != here:
                        member = waiting.pop()
                        found[member] = here
    return found


def cyclic_components(edges: Edges) -> list[set[str]]:
    """Return the strongly connected components that have a cycle: several ids, or one that names itself."""
    groups: dict[str, set[str]] = {}
    for id, component in components(edges).items():
        groups.setdefault(component, set()).add(id)
    return [ids for one, ids in groups.items() if len(ids) > 1 or one in edges[one]]


def find_cycles(leads: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return one cycle of each strongly connected component: from its lowest id the shortest way back to it.

    Args:
        leads: The successors of each id; an id without an entry has none.
    """
    found = []
    whole = {id: () for ids in leads.values() for id in ids} | dict(leads)
    for component in cyclic_components(whole):
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


def without_cycles(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the edges without those inside a strongly connected component."""
    component = components(edges)
    return {
        id: {name for name in names if component[name] != component[id]}
        if any(component[name] == component[id] for name in names)
        else names
        for id, names in edges.items()
    }


def ids_before(starts: Iterable[str], edges: Edges) -> set[str]:
    """Return `starts` and all ids that are earlier than one of them."""
    found = set(starts)
    todo = list(found)
    while todo:
        for name in edges[todo.pop()]:
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def before(ids: Collection[str], edges: Edges) -> set[str]:
    """Return all ids that are earlier than one of `ids`; the edges have no cycles."""
    return ids_before({name for id in ids for name in edges[id]}, edges)


def marks_of_later(edges: Edges, marks: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield the marks of all later ids for each id; the edges have no cycles.

    Args:
        marks: The numbers, counted from 0, with which each id is marked.

    Yields:
        The first number of a range of `BITS` numbers, and for each id the marks of later ids in that range, as bits
        of an integer. Ids without such marks are omitted.
    """
    order = list(components(edges))
    order.reverse()  # later ids first
    for first, own in _ranges(marks):
        above: dict[str, int] = {}
        for id in order:
            bits = above.get(id, 0) | own.get(id, 0)
            if bits:
                for name in edges[id]:
                    above[name] = above.get(name, 0) | bits
        yield first, above


def _ranges(marks: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, dict[str, int]]]:
    by_range: dict[int, dict[str, int]] = {}
    for id, numbers in marks.items():
        for number in numbers:
            own = by_range.setdefault(number // BITS, {})
            own[id] = own.get(id, 0) | 1 << number % BITS
    for part, own in sorted(by_range.items()):
        yield part * BITS, own
