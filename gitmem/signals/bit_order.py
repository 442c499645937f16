"""The causal order of many subsets of the same facts, such as patches that each change thousands of nodes.

Facts are numbered, and sets of facts are bits of integers. A subset then costs a few operations per member, however
many other facts the members name.
"""

from __future__ import annotations

from . import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    class OrderedFact(Protocol):
        """A record that folds order, a signal or a patch: its id, one of its lines, and the ids that its writer had seen."""

        @property
        def id(self) -> str:
            """The id of the record."""
            ...

        @property
        def line(self) -> bytes:
            """One of its lines, which starts with the time; it orders facts that causality does not order."""
            ...

        @property
        def named(self) -> frozenset[str]:
            """The ids that its writer had seen."""
            ...


class BitOrder:
    """All facts, numbered, with the bits of the direct predecessors and successors of each."""

    def __init__(self, facts: Sequence[OrderedFact]) -> None:
        self.number = {fact.line: at for at, fact in enumerate(facts)}
        of_id: dict[str, int] = {}
        for at, fact in enumerate(facts):
            of_id[fact.id] = of_id.get(fact.id, 0) | 1 << at
        self.before = [0] * len(facts)
        self.behind = [0] * len(facts)
        edges: dict[str, set[str]] = {id: set() for id in of_id}
        for at, fact in enumerate(facts):
            names = of_id.keys() & fact.named
            edges[fact.id] |= names
            for name in names:
                self.before[at] |= of_id[name]
            for other in _bits(self.before[at]):
                self.behind[other] |= 1 << at
        self.knotted = 0  # facts that may be on a cycle of a subset
        for cyclic in graph.cyclic_components(edges):
            for id in cyclic:
                self.knotted |= of_id[id]


class OrderedSubset:
    """Some of the facts, with distinct ids. Only edges between members of different components count."""

    def __init__(self, order: BitOrder, facts: Sequence[OrderedFact]) -> None:
        self._order = order
        self._all = 0
        for fact in facts:
            self._all |= 1 << order.number[fact.line]
        self._rank = {order.number[fact.line]: fact.line for fact in facts}
        self._same = dict(self._components(self._all & order.knotted))
        self._known: dict[int, int] = {}

    def bits(self, facts: Sequence[OrderedFact]) -> int:
        """Return the bits of these members."""
        found = 0
        for fact in facts:
            found |= 1 << self._order.number[fact.line]
        return found

    def latest(self, candidates: int) -> int:
        """Return the number of the candidate that precedes no other; of several, the one with the greatest line."""
        if candidates not in self._known:
            free = candidates & ~self._before(candidates)
            self._known[candidates] = max(_bits(free), key=self._rank.__getitem__)
        return self._known[candidates]

    def heads(self) -> set[int]:
        """Return the numbers of the members that precede no other member."""
        named = 0
        for at in _bits(self._all):
            named |= self._named(at)
        return set(_bits(self._all & ~named))

    def _named(self, at: int) -> int:
        return self._order.before[at] & self._all & ~self._same.get(at, 0)

    def _before(self, candidates: int) -> int:
        found, todo = 0, candidates
        while todo:
            lowest = todo & -todo
            new = self._named(lowest.bit_length() - 1) & ~found
            found |= new
            todo = (todo ^ lowest) | new
        return found

    def _components(self, among: int) -> Iterator[tuple[int, int]]:
        """Yield each member that may be on a cycle, with the bits of its strongly connected component (Kosaraju)."""
        done: list[int] = []
        left = among
        while left:
            start = left & -left
            left ^= start
            todo = [start.bit_length() - 1]
            while todo:
                new = self._order.before[todo[-1]] & left
                if new:
                    lowest = new & -new
                    left ^= lowest
                    todo.append(lowest.bit_length() - 1)
                else:
                    done.append(todo.pop())
        left = among
        for start in reversed(done):
            if not left >> start & 1:
                continue
            component = todo_bits = 1 << start
            left ^= component
            while todo_bits:
                lowest = todo_bits & -todo_bits
                new = self._order.behind[lowest.bit_length() - 1] & left
                left &= ~new
                component |= new
                todo_bits = (todo_bits ^ lowest) | new
            for at in _bits(component):
                yield at, component


def _bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
