"""The causal order of facts, from the ids that their writers had seen and never from clocks.

A fact is a signal of a thread, an event of a task, a patch of a node or a line of a relation. It names the facts that its
writer had seen, and the writer *had seen* whatever is reachable through these names. Ids that are not among the facts do
not count, and neither do ids in the strongly connected component of the fact that names them. What this does not order is
ordered by `(at, bytes)`: lines begin with the time.
"""

from __future__ import annotations

from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
    from typing import Generic, Protocol, TypeVar

    class Fact(Protocol):
        """What is ordered."""

        @property
        def id(self) -> str:
            """Its id."""
            ...

        @property
        def line(self) -> bytes:
            """The line that it was read from."""
            ...

        @property
        def named(self) -> Collection[str]:
            """The ids that its writer had seen."""
            ...

    Edges = Mapping[str, Collection[str]]
    F = TypeVar("F", bound=Fact)
    K = TypeVar("K", bound=Hashable)
else:
    F = None

    class Generic:
        """Stands for `typing.Generic`: everyday commands do not import `typing`."""

        def __class_getitem__(cls, item: object) -> type:
            return cls


def by_line(facts: Iterable[F]) -> list[F]:
    """Return facts by `(at, bytes)`."""
    return sorted(facts, key=lambda each: each.line)


def by_id(facts: Iterable[F]) -> dict[str, F]:
    """Return the fact of the lowest line of each id, by `(at, bytes)`."""
    found: dict[str, F] = {}
    for each in by_line(facts):
        found.setdefault(each.id, each)
    return found


class CausalOrder(Generic[F]):
    """The causal order of the facts of one entity.

    Facts are numbered by `(at, bytes)`, and a set of them is the bits of an integer.

    Args:
        facts: The facts, with distinct ids, unless this order is only for `among`.
        whole: The order of more facts, with these among them. To order some of the same facts again and again, such as
            patches that each name thousands of nodes, then costs a few steps for each, whatever they name.
        leads: Whether what a fact names counts; without it all does.
    """

    def __init__(
        self,
        facts: Iterable[F],
        whole: CausalOrder[F] | None = None,
        leads: Callable[[F], bool] | None = None,
    ) -> None:
        every = by_line(facts)
        self._whole = whole or self
        self._found: dict[int, int] = {}
        self._given: dict[int, int]
        if whole is None:
            self._facts = dict(enumerate(every))
            self._all = (1 << len(every)) - 1
            self._names = _names(every, leads)
        else:
            numbers = whole._numbers
            self._facts = {numbers[each.line]: each for each in every}
            self._all = sum(1 << number for number in self._facts)
            self._names = {number: whole._given[number] & self._all for number in self._facts}
        self._given = self._names
        self._number = {each.id: number for number, each in self._facts.items()}
        self._sorted = list(self._facts)  # each after all that it names
        for number, names in self._names.items():
            if names >> number:  # it names one with a later time, or itself
                self._leave_out_cycles()
                break

    @property
    def facts(self) -> list[F]:
        """The facts, each after all that its writer had seen."""
        return [self._facts[number] for number in self._sorted]

    def bits(self, facts: Iterable[F]) -> int:
        """Return a set of facts."""
        found = 0
        for each in facts:
            found |= 1 << self._number[each.id]
        return found

    def seen(self, fact: F) -> int:
        """Return the set of facts that the writer of a fact had seen."""
        return self._seen[self._number[fact.id]]

    def has_seen(self, later: F, id: str) -> bool:
        """Return whether the writer of a fact had seen the fact with an id."""
        number = self._number.get(id)
        return number is not None and bool(self.seen(later) >> number & 1)

    def seen_by(self, facts: Iterable[F]) -> int:
        """Return the set of facts that the writer of one of these had seen."""
        return self._before(self.bits(facts))

    def heads(self, facts: Iterable[F]) -> list[F]:
        """Return those facts that no writer of another one of them had seen, by `(at, bytes)`."""
        bits = self.bits(facts)
        return [self._facts[number] for number in _members(bits & ~self._before(bits))]

    def latest(self, facts: Iterable[F]) -> F | None:
        """Return the greatest of the heads of some facts; None if there are no facts."""
        found = self.heads(facts)
        return found[-1] if found else None

    def first(self, facts: Iterable[F]) -> F | None:
        """Return the lowest of the facts whose writers had seen none of the others; None if there are no facts."""
        bits = self.bits(facts)
        return next((self._facts[each] for each in _members(bits) if not bits & self._seen[each]), None)

    def latest_of_each(self, groups: Mapping[K, Collection[F]], also: Iterable[F] = ()) -> dict[K, F]:
        """Return the latest of each group, none of which is empty.

        Args:
            also: Further members of every group.
        """
        more = self.bits(also)
        before = self._before(more)
        found: dict[K, F] = {}
        for key, own in groups.items():
            if len(own) == 1 and not more:
                (found[key],) = own
                continue
            bits = self.bits(own)
            left = (bits | more) & ~(before | self._before(bits))
            found[key] = self._facts[left.bit_length() - 1]
        return found

    def unnamed(self, facts: Iterable[F]) -> list[F]:
        """Return those facts that no other one of them names itself, by `(at, bytes)`."""
        bits = self.bits(facts)
        named = 0
        for number in _members(bits):
            named |= self._names[number]
        return [self._facts[number] for number in _members(bits & ~named)]

    def shown(self) -> list[F]:
        """Return all facts by `(at, bytes)`, but none before one that it names."""
        found: dict[int, F] = {}
        left = self._all
        for start in self._facts:
            todo = [start] if left >> start & 1 else []
            while todo:
                missing = self._names[todo[-1]] & left
                if missing:
                    todo.append((missing & -missing).bit_length() - 1)
                else:
                    number = todo.pop()
                    found[number] = self._facts[number]
                    left &= ~(1 << number)
        return list(found.values())

    @cached_property
    def _seen(self) -> dict[int, int]:
        """What the writer of each fact had seen."""
        found: dict[int, int] = {}
        for number in self._sorted:
            found[number] = seen = 0
            left = self._names[number]
            while left:
                highest = left.bit_length() - 1
                seen |= found[highest] | 1 << highest
                left &= ~seen
            found[number] = seen
        return found

    def _before(self, bits: int) -> int:
        """Return what the writers of these facts had seen."""
        if self._whole is self:
            found = 0
            while bits:
                highest = bits.bit_length() - 1
                found |= self._seen[highest]
                bits &= ~(self._seen[highest] | 1 << highest)
            return found
        if (
            bits not in self._found
        ):  # of a part, few sets are asked for: a search for each costs less than all of `_seen`
            found, left = 0, bits
            while left:
                highest = left.bit_length() - 1
                new = self._names[highest] & ~found
                found |= new
                left = left ^ 1 << highest | new
            self._found[bits] = found
        return self._found[bits]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        """The number of each line, for orders of a part."""
        return {each.line: number for number, each in self._facts.items()}

    @cached_property
    def _behind(self) -> dict[int, int]:
        """The facts that name each fact."""
        found = dict.fromkeys(self._facts, 0)
        for number, names in self._given.items():
            for other in _members(names):
                found[other] |= 1 << number
        return found

    def _leave_out_cycles(self) -> None:
        """Put the facts in an order in which each comes after all that it names outside its component (Kosaraju's algorithm)."""
        self._sorted = []
        left = self._all
        for start in self._facts:
            todo = [start] if left >> start & 1 else []
            left &= ~(1 << start)
            while todo:
                new = self._names[todo[-1]] & left
                if new:
                    lowest = new & -new
                    left ^= lowest
                    todo.append(lowest.bit_length() - 1)
                else:
                    self._sorted.append(todo.pop())
        placed = 0
        for number in self._sorted:
            if self._names[number] & ~placed:
                break
            placed |= 1 << number
        else:
            return
        left, behind, names = self._all, self._whole._behind, self._names
        self._names = dict(names)
        for start in reversed(self._sorted):
            component = new = left & 1 << start
            while new:
                lowest = new & -new
                left ^= lowest
                component |= lowest
                new = new ^ lowest | behind[lowest.bit_length() - 1] & left
            for number in _members(component):
                self._names[number] = names[number] & ~component


def _names(facts: list[F], leads: Callable[[F], bool] | None) -> dict[int, int]:
    """Return for each fact the set of those that it names, if it leads anywhere: of several lines of an id all."""
    bits: dict[str, int] = {}
    for number, each in enumerate(facts):
        bits[each.id] = bits.get(each.id, 0) | 1 << number
    found = {}
    for number, each in enumerate(facts):
        names = 0
        for id in (
            bits.keys() & each.named if leads is None or leads(each) else ()
        ):  # iterates over the shorter one
            names |= bits[id]
        found[number] = names
    return found


def _members(bits: int) -> Iterator[int]:
    """Yield the members of a set, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


# Cycles of directed graphs, such as of nodes that block each other. `edges` maps each id to the ids that it leads to, each of which is a key.
# Searches keep their own stacks: a chain of replies may be longer than Python's recursion limit.


def components(edges: Edges) -> list[set[str]]:
    """Return the strongly connected components, each after those that it leads to (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    found: list[set[str]] = []
    placed: set[str] = set()
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
                if other not in placed and number[other] < low[here]:
                    low[here] = number[other]
            else:
                todo.pop()
                if todo and low[here] < low[todo[-1][0]]:
                    low[todo[-1][0]] = low[here]
                if low[here] == number[here]:
                    component = {waiting.pop()}
                    while here not in component:
                        component.add(waiting.pop())
                    found.append(component)
                    placed |= component
    return found


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
