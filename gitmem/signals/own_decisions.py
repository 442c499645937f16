"""Void proposals and decisions of a proposer, if its proposal or its decision was recorded in another's name.

The rule is in `docs/format.md`, "What counts". A session is identified by its id and by each
agent identity and client in its records: an agent remains the same in a new session.
"""

from __future__ import annotations

from ..agents import session_view
from ..order.content import ASKS
from ..order.thread import ThreadSignal, root
from ..outcome import Struct
from ..records.ids import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ..records.record_types import SignalRecord

    NamesOf = Callable[[Collection[str]], Mapping[str, Collection[str]]]


class SessionNames(Struct):
    """The agent identities and clients of sessions, from all session records of the index; each is read once."""

    _db: sqlite3.Connection
    _known: dict[str, set[str]] = {}

    def __call__(self, ids: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the further names of these sessions; ids of other things have no entry or an empty one."""
        new = [id for id in ids if id not in self._known and is_id("sess", id)]
        if new:
            self._known.update((id, set()) for id in new)
            for id, *names in session_view.names_had(self._db, new):
                self._known[id].update(name for name in names if name)
        return self._known


def void_own_decisions(thread: Mapping[str, ThreadSignal], names_of: NamesOf) -> dict[str, ThreadSignal]:
    """Return a copy of a thread in which such decisions are void.

    Args:
        thread: The signals by their ids.
        names_of: Returns the further names of the given session ids.

    Returns:
        The thread. Void are decisions, and proposals but the root, in another's name by the sender or recorder of the root or a proposal, and own
        decisions of a session that recorded the root or a proposal in another's name.
    """
    found = dict(thread)
    if not any(signal.record.get("via") for signal in thread.values()):
        return found
    top = root(thread)
    asking = [signal for signal in thread.values() if signal is top or signal.intent in ASKS]
    deciding = [signal for signal in thread.values() if signal is not top and signal.intent != "INFO"]
    known = names_of({name for signal in (*asking, *deciding) for name in _named(signal)})
    recorders = _Names(known, (signal.record.get("via") for signal in asking))
    askers = _Names(known, (name for signal in asking for name in _named(signal)))
    for signal in deciding:
        via = signal.record.get("via")
        if (via in askers) if via else any(name in recorders for name in signal.writers):
            found[signal.id] = void = ThreadSignal(signal.record, signal.lines, counts=signal.counts)
            void.void = True
    return found


def remarks(
    db: sqlite3.Connection, thread: Mapping[str, ThreadSignal], record: SignalRecord, line: bytes
) -> list[str]:
    """Return a sentence for the sender of a decision that is void, else nothing.

    Args:
        thread: The earlier signals of its thread.
        record: The new signal.
        line: Its line.
    """
    signal = ThreadSignal(record, [line])
    if not void_own_decisions({**thread, signal.id: signal}, SessionNames(db))[signal.id].void:
        return []
    who = (
        f"{record['via']} has proposed in this thread"
        if record.get("via")
        else "you have proposed in this thread in another agent's name"
    )
    return [f"This {record['intent']} has no effect: {who}. The other recipients decide themselves."]


def _named(signal: ThreadSignal) -> set[str]:
    """Return the names of the sender and the recorder of a signal."""
    via = signal.record.get("via")
    return signal.writers | {via} if via else signal.writers


class _Names:
    """The set of the ids that share a name with one of the given ids."""

    def __init__(self, known: Mapping[str, Collection[str]], ids: Iterable[str | None]) -> None:
        self._known = known
        self._names = {name for id in set(ids) if id for name in (id, *known.get(id, ()))}
        self._found: dict[str, bool] = {}  # a session may have many names, and decide often

    def __contains__(self, id: str) -> bool:
        if id not in self._found:
            self._found[id] = id in self._names or not self._names.isdisjoint(self._known.get(id, ()))
        return self._found[id]
