"""What came before what, decided by what the writers had seen and never by clocks.

A signal names in `after` and `reply_to` what its writer had seen of the thread, a patch in `after` the
patches of its nodes. Earlier means reachable through these names.
"""

from __future__ import annotations

from . import DECISIONS, graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from .fact import Fact

    F = TypeVar("F", bound=Fact)
    K = TypeVar("K", bound=Hashable)


class Said:
    """One signal of a thread, with every line of its id.

    The bytes of lines start with their time, so their order is that of `(at, bytes)`; the lowest is shown.
    """

    __slots__ = ("_named", "_recipients", "counts", "id", "line", "lines", "record", "void")

    def __init__(self, record: Mapping[str, object], lines: Iterable[bytes], *, counts: bool = True) -> None:
        self.record = record
        self.counts = counts  # False for an answer to a line that does not exist: it decides nothing
        self.void = False  # True for a decision on a proposal of one's own, one of them in another's name
        self.id = str(record["signal_id"])
        self.lines = sorted(lines)
        self.line = self.lines[0]
        self._named: frozenset[str] | None = None
        self._recipients: frozenset[str] | None = None

    def text(self, field: str) -> str | None:
        value = self.record.get(field)
        return str(value) if value else None

    def names(self, field: str) -> list[str]:
        value = self.record.get(field)
        return [str(item) for item in value] if isinstance(value, list) else []

    @property
    def intent(self) -> str:
        """What it does in its thread."""
        return (self.text("intent") if self.counts and not self.void else None) or "INFO"

    @property
    def named(self) -> frozenset[str]:
        """The signals that its writer says it had seen."""
        if self._named is None:
            parent = self.text("reply_to")
            self._named = frozenset((*self.names("after"), *((parent,) if parent else ())))
        return self._named

    def is_for(self, reader: str) -> bool:
        """Whether a reader is among its recipients."""
        if self._recipients is None:
            self._recipients = frozenset(self.names("recipients"))
        return reader in self._recipients

    @property
    def writers(self) -> set[str]:
        """The names that it is written under: an identity, and the session that was addressed."""
        both = (self.record.get("sender_identity"), self.record.get("sender_session"))
        return {each for each in both if isinstance(each, str)}

    def is_by(self, reader: str) -> bool:
        """Whether a reader wrote it: by identity, or as the session that was addressed."""
        return reader in (self.record.get("sender_identity"), self.record.get("sender_session"))


def earlier(thread: Mapping[str, Fact]) -> dict[str, set[str]]:
    """The direct predecessors of each signal. An id that is not in the thread, or a cycle, is no edge."""
    return graph.without_cycles(_named(thread))


def cycles(thread: Mapping[str, Fact]) -> set[str]:
    """Signals that, by what they name, come before themselves."""
    return {id for knot in graph.knots(_named(thread)) for id in knot}


def _named(thread: Mapping[str, Fact]) -> dict[str, set[str]]:
    known = thread.keys()
    return {id: set(known & said.named) for id, said in thread.items()}  # looks at the shorter one


def reach(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    """`start` and everything that is earlier."""
    return graph.reach([start], edges)


def latest(candidates: Iterable[F], edges: Mapping[str, set[str]]) -> F | None:
    """The one that precedes no other of them; of several, the greatest `(at, bytes)`."""
    said = list(candidates)
    if len(said) < 2:
        return said[0] if said else None
    before = graph.before([item.id for item in said], edges)
    return max((item for item in said if item.id not in before), key=lambda item: item.line)


def latest_of_each(
    groups: Mapping[K, Sequence[F]], edges: Mapping[str, set[str]], among: Sequence[F] = ()
) -> dict[K, F]:
    """The latest of each group, as `latest` gives it, for all groups together; none of them is empty.

    Args:
        among: Members of every group beside its own.
    """
    if not among and sum(len(said) > 1 for said in groups.values()) < 2:
        lasts = {key: latest(said, edges) for key, said in groups.items()}
        return {key: last for key, last in lasts.items() if last is not None}
    found = {key: said[0] for key, said in groups.items() if len(said) == 1 and not among}
    several = [(key, said) for key, said in groups.items() if key not in found]
    marks: dict[str, list[int]] = {}
    for number, (_, said) in enumerate(several):
        for item in said:
            marks.setdefault(item.id, []).append(number)
    before = graph.before([item.id for item in among], edges)
    last = sorted((item for item in among if item.id not in before), key=lambda item: item.line, reverse=True)
    for first, above in graph.reached(edges, marks):
        part = several[first : first + graph.BITS]
        shared = _first_free(last, above, len(part))
        for place, (key, said) in enumerate(part):
            own = [item for item in said if item.id not in before and not above.get(item.id, 0) >> place & 1]
            found[key] = max([*own, *shared.get(place, ())], key=lambda item: item.line)
    return found


def _first_free(said: Iterable[F], above: Mapping[str, int], count: int) -> dict[int, list[F]]:
    """Of each group the first of `said` that nothing of the group comes after, in a list; by the group's place."""
    found: dict[int, list[F]] = {}
    left = (1 << count) - 1
    for item in said:
        taken = left & ~above.get(item.id, 0)
        left &= ~taken
        while taken:
            lowest = taken & -taken
            found[lowest.bit_length() - 1] = [item]
            taken ^= lowest
        if not left:
            break
    return found


def decision(reader: str, thread: Mapping[str, Said], edges: Mapping[str, set[str]]) -> Said | None:
    """A reader's standing decision in a thread, or None while it has made none."""
    own = [said for said in thread.values() if said.intent in DECISIONS and said.is_by(reader)]
    return latest(own, edges)


def in_order(thread: Mapping[str, Said], edges: Mapping[str, set[str]]) -> list[Said]:
    """By time, but a reply never before what it answers."""
    before = {id: sorted(names, key=lambda name: thread[name].line) for id, names in edges.items()}
    shown: dict[str, Said] = {}
    for said in sorted(thread.values(), key=lambda item: item.line):
        if said.id in shown:
            continue
        todo = [(said.id, iter(before[said.id]))]
        while todo:
            here, names = todo[-1]
            for name in names:
                if name not in shown:
                    todo.append((name, iter(before[name])))
                    break
            else:
                todo.pop()
                shown[here] = thread[here]
    return list(shown.values())


def seen_before(
    reader: str, thread: Mapping[str, Said], receipts: set[str], answered: str | None
) -> list[str]:
    """The `after` of a new signal: the reader's own last signal and decision, and the heads of what it has seen.

    Args:
        receipts: Ids that the reader has a receipt for.
        answered: The id that the new signal answers.
    """
    edges = earlier(thread)
    seen = {id for id, said in thread.items() if said.is_by(reader) or id in receipts or id == answered}
    named = {name for id in seen for name in edges[id]}
    after = {id for id in seen if id not in named}
    own = [said for said in thread.values() if said.is_by(reader)]
    for last in (latest(own, edges), decision(reader, thread, edges)):
        if last is not None:
            after.add(last.id)
    return sorted(after, key=lambda id: thread[id].line)


def root(thread: Mapping[str, Said]) -> Said:
    """The signal whose `reply_to` is missing or lies outside; of several, the lowest `(at, bytes)` that counts."""
    tops = [said for said in thread.values() if said.text("reply_to") not in thread]
    return min(tops or thread.values(), key=lambda said: (not said.counts, said.line))


class Conversation:
    """A thread as it is read: its signals, what came before what, and its root."""

    __slots__ = ("_answers", "_decisions", "edges", "root", "said")

    def __init__(self, said: Mapping[str, Said]) -> None:
        self.said = said
        self.edges = earlier(said)
        self.root = root(said) if said else None
        self._decisions: dict[str, Said] | None = None
        self._answers: dict[tuple[str, str], Said] | None = None

    def asks(self, reader: str) -> bool:
        """Whether a reader is a recipient of the root."""
        return self.root is not None and self.root.is_for(reader)

    def decision(self, reader: str) -> Said | None:
        """A reader's standing decision."""
        if self._decisions is None:
            own: dict[str, list[Said]] = {}
            for writer, said in self._decided():
                own.setdefault(writer, []).append(said)
            self._decisions = latest_of_each(own, self.edges)
        return self._decisions.get(reader)

    def answer(self, reader: str, id: str) -> Said | None:
        """The latest decision with which a reader answered just this signal."""
        if self._answers is None:
            own: dict[tuple[str, str], list[Said]] = {}
            for writer, said in self._decided():
                own.setdefault((writer, said.text("reply_to") or ""), []).append(said)
            self._answers = latest_of_each(own, self.edges)
        return self._answers.get((reader, id))

    def answers(self, wanted: Mapping[str, Collection[str]]) -> dict[str, Said]:
        """The latest decision on each signal by any of the readers that are given with its id."""
        own: dict[str, list[Said]] = {}
        for said in self.said.values():
            parent = said.text("reply_to")
            if parent is None or parent not in wanted or said.intent not in DECISIONS:
                continue
            if not said.writers.isdisjoint(wanted[parent]):
                own.setdefault(parent, []).append(said)
        return latest_of_each(own, self.edges)

    def _decided(self) -> Iterator[tuple[str, Said]]:
        for said in self.said.values():
            if said.intent in DECISIONS:
                for writer in said.writers:
                    yield writer, said

    def stale(self, agreed: Mapping[str, Said]) -> set[str]:
        """The readers whose AGREE does not come after every PROPOSE and COUNTER that they did not write.

        Args:
            agreed: The standing AGREE of each reader.
        """
        proposals = [said for said in self.said.values() if said.intent in ("PROPOSE", "COUNTER")]
        marks = {said.id: [number] for number, said in enumerate(proposals)}
        found: set[str] = set()
        for first, known in graph.seen(self.edges, marks):
            part = proposals[first : first + graph.BITS]
            own: dict[str, int] = {}
            for place, said in enumerate(part):
                for writer in said.writers:
                    own[writer] = own.get(writer, 0) | 1 << place
            every = (1 << len(part)) - 1
            found.update(
                reader
                for reader, said in agreed.items()
                if every & ~own.get(reader, 0) & ~known.get(said.id, 0)
            )
        return found
