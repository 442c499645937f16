"""Cycles of directed graphs, such as of nodes that block each other; their cost is bounded by the lines that define the graph.

`edges` maps each id to the ids that it leads to, each of which is a key. Searches keep their own stacks: a chain of
replies may be longer than Python's recursion limit.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    Edges = Mapping[str, Collection[str]]


def _components(edges: Edges) -> dict[str, str]:
    """Return for each id the representative of its strongly connected component (Tarjan's algorithm)."""
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


def components(edges: Edges) -> list[set[str]]:
    """Return the strongly connected components, each after those that it leads to."""
    groups: dict[str, set[str]] = {}
    for id, component in _components(edges).items():
        groups.setdefault(component, set()).add(id)
    return [*groups.values()]


def cyclic_components(edges: Edges) -> list[set[str]]:
    """Return the strongly connected components that have a cycle: several ids, or one that names itself."""
    return [ids for ids in components(edges) if len(ids) > 1 or not ids.isdisjoint(edges[min(ids)])]


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
