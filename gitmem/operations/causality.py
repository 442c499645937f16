"""What came before what, decided by what the writers had seen and never by clocks.

A signal names in `after` and `reply_to` what its writer had seen of the thread, a patch in `after` the
patches of its nodes. Earlier means reachable through these names.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol, TypeVar

    class Fact(Protocol):
        """What has a name and a line, and names what its writer had seen."""

        @property
        def id(self) -> str: ...
        @property
        def line(self) -> bytes: ...
        @property
        def named(self) -> Sequence[str]: ...

    F = TypeVar("F", bound=Fact)

DECISIONS = ("AGREE", "REJECT", "COUNTER")


class Said:
    """One signal of a thread, with every line of its id.

    The bytes of lines start with their time, so their order is that of `(at, bytes)`; the lowest is shown.
    """

    __slots__ = ("id", "line", "lines", "record")

    def __init__(self, record: Mapping[str, object], lines: Iterable[bytes]) -> None:
        self.record = record
        self.id = str(record["signal_id"])
        self.lines = sorted(lines)
        self.line = self.lines[0]

    def text(self, field: str) -> str | None:
        value = self.record.get(field)
        return str(value) if value else None

    def names(self, field: str) -> list[str]:
        value = self.record.get(field)
        return [str(item) for item in value] if isinstance(value, list) else []

    @property
    def intent(self) -> str:
        return self.text("intent") or "INFO"

    @property
    def named(self) -> list[str]:
        """The signals that its writer says it had seen."""
        parent = self.text("reply_to")
        return [*self.names("after"), *([parent] if parent else [])]

    def is_by(self, reader: str) -> bool:
        """Whether a reader wrote it: by identity, or as the session that was addressed."""
        return reader in (self.record.get("sender_identity"), self.record.get("sender_session"))


def earlier(thread: Mapping[str, Fact]) -> dict[str, set[str]]:
    """The direct predecessors of each signal. An id that is not in the thread, or a cycle, is no edge."""
    edges = {id: {name for name in said.named if name in thread} for id, said in thread.items()}
    straight = {id: {name for name in edges[id] if id not in reach(name, edges)} for id in _knotted(edges)}
    return {**edges, **straight}


def cycles(thread: Mapping[str, Fact]) -> set[str]:
    """Signals that, by what they name, come before themselves."""
    edges = {id: {name for name in said.named if name in thread} for id, said in thread.items()}
    return {id for id in _knotted(edges) if any(id in reach(name, edges) for name in edges[id])}


def _knotted(edges: Mapping[str, set[str]]) -> set[str]:
    """The signals on a cycle, or between two: what is left when the others are taken off from both ends."""
    later: dict[str, set[str]] = {id: set() for id in edges}
    for id, names in edges.items():
        for name in names:
            later[name].add(id)
    left = _without_ends(edges, later, set(edges))
    return _without_ends(later, edges, left)


def _without_ends(
    before: Mapping[str, set[str]], behind: Mapping[str, set[str]], among: set[str]
) -> set[str]:
    """What of `among` is left when whatever has nothing before it goes, again and again."""
    waiting = {id: len(before[id] & among) for id in among}
    free = [id for id, count in waiting.items() if not count]
    while free:
        gone = free.pop()
        del waiting[gone]
        for id in behind[gone] & waiting.keys():
            waiting[id] -= 1
            if not waiting[id]:
                free.append(id)
    return set(waiting)


def reach(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    """`start` and everything that is earlier."""
    found = {start}
    todo = [start]
    while todo:
        for name in edges[todo.pop()]:
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def latest(candidates: Iterable[F], edges: Mapping[str, set[str]]) -> F | None:
    """The one that precedes no other of them; of several, the greatest `(at, bytes)`."""
    said = list(candidates)
    if len(said) < 2:
        return said[0] if said else None
    before: set[str] = set()
    for item in said:
        before |= reach(item.id, edges) - {item.id}
    return max((item for item in said if item.id not in before), key=lambda item: item.line)


def decision(reader: str, thread: Mapping[str, Said], edges: Mapping[str, set[str]]) -> Said | None:
    """A reader's standing decision in a thread, or None while it has made none."""
    own = [said for said in thread.values() if said.intent in DECISIONS and said.is_by(reader)]
    return latest(own, edges)


def in_order(thread: Mapping[str, Said], edges: Mapping[str, set[str]]) -> list[Said]:
    """By time, but a reply never before what it answers."""
    shown: dict[str, Said] = {}
    for said in sorted(thread.values(), key=lambda item: item.line):
        if said.id in shown:
            continue
        todo = [said.id]
        while todo:
            missing = [name for name in edges[todo[-1]] if name not in shown]
            if missing:
                todo.append(min(missing, key=lambda name: thread[name].line))
            else:
                done = todo.pop()
                shown[done] = thread[done]
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
    """The signal whose `reply_to` is missing or lies outside; of several, the lowest `(at, bytes)`."""
    tops = [said for said in thread.values() if said.text("reply_to") not in thread]
    return min(tops or thread.values(), key=lambda said: said.line)


class Conversation:
    """A thread as it is read: its signals, what came before what, and its root."""

    __slots__ = ("edges", "root", "said")

    def __init__(self, said: Mapping[str, Said]) -> None:
        self.said = said
        self.edges = earlier(said)
        self.root = root(said) if said else None

    def asks(self, reader: str) -> bool:
        """Whether a reader is a recipient of the root."""
        return self.root is not None and reader in self.root.names("recipients")

    def decision(self, reader: str) -> Said | None:
        """A reader's standing decision."""
        return decision(reader, self.said, self.edges)
