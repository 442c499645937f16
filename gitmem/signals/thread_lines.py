"""Read the signals of threads from the index, and void the decisions of a proposer in another's name; the lines of each id are read once for all threads.

The rule of void decisions is in `docs/format.md`, "What counts". A session is identified by its id and by each agent identity and
client in its records: an agent remains the same in a new session.
"""

from __future__ import annotations

from .. import records
from ..agents import mailbox, session_view
from ..agents.mailbox import digests_of
from ..index.entities import AMONG, json_list
from ..order.content import ASKS, answers_a_line, asks
from ..order.shares import LINES_MAX, fair_share
from ..order.thread import FoldedThread, ThreadSignal, root, root_id
from ..outcome import Struct
from ..records.ids import is_id, unit_key, unit_key_sql

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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


def void_own_decisions(
    name: str, thread: Mapping[str, ThreadSignal], names_of: NamesOf
) -> dict[str, ThreadSignal]:
    """Return a copy of a thread in which such decisions are void.

    Args:
        name: The id of the thread.
        thread: The signals by their ids.
        names_of: Returns the further names of the given session ids.

    Returns:
        The thread. Void are decisions, and proposals but the root, in another's name by the sender or recorder of the root or a proposal, and own
        decisions of a session that recorded the root or a proposal in another's name.
    """
    found = dict(thread)
    if not any(signal.record.get("via") for signal in thread.values()):
        return found
    top = root(name, thread)
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


def void_remarks(
    db: sqlite3.Connection,
    name: str,
    thread: Mapping[str, ThreadSignal],
    record: SignalRecord,
    line: bytes,
) -> list[str]:
    """Return a sentence for the sender of a decision that is void, else nothing.

    Args:
        name: The id of its thread.
        thread: The earlier signals of its thread.
        record: The new signal.
        line: Its line.
    """
    signal = ThreadSignal(record, [line])
    if not void_own_decisions(name, {**thread, signal.id: signal}, SessionNames(db))[signal.id].void:
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


LINE_LEAST = 512  # minimum bytes charged for a line: reading a shorter one takes as long
AHEAD = 2_000  # signals of one query that reads ahead
NAMED_BYTES = 16  # bytes charged for an id of a thread


class ThreadLines:
    """A reader of threads with a budget.

    Args:
        most: Maximum bytes of lines to read in all; a line counts at least `LINE_LEAST`. None for no limit. The limit
            is bytes and not time, because the same log must give the same answers.

    Attributes:
        left_out: The number of signals of a thread that were not read, because there are too many.
    """

    def __init__(self, db: sqlite3.Connection, most: int | None = None) -> None:
        self._db = db
        self._left = most
        self._said: dict[str, ThreadSignal | None] = {}
        self._names = SessionNames(db)
        self.left_out: dict[str, int] = {}

    def load(self, thread_id: str) -> dict[str, ThreadSignal] | None:
        """Return all signals of a thread with the lines of each id, or None if the budget is exceeded."""
        ids = self._ids(thread_id)
        new = [id for id in ids if id not in self._said]
        if not self._may_read(len(ids), new):
            return None
        if new:
            self._read(new)
        found = {id: self._said.get(id) for id in ids}
        return void_own_decisions(
            thread_id, {id: signal for id, signal in found.items() if signal is not None}, self._names
        )

    def _ids(self, thread_id: str) -> list[str]:
        """Return the signals of a thread that are read: of too many a fair share of each sender, those of the parties first."""
        query = "SELECT DISTINCT signal_id FROM signal s WHERE thread = ?"
        ids = [str(id) for (id,) in self._db.execute(f"{query} LIMIT {LINES_MAX + 1}", (thread_id,))]
        if len(ids) <= LINES_MAX:
            return ids
        rows = self._db.execute(
            "SELECT s.signal_id, s.sender, s.sender_session, l.id, json_extract(l.body, '$.reply_to'),"
            " json_extract(l.body, '$.writer')"
            " FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? ORDER BY l.body",
            (thread_id,),
        )
        lowest: dict[str, tuple[str, str, str | None, int, str | None, str | None]] = {}
        for row in rows:
            lowest.setdefault(row[0], row)
        every = list(lowest.values())
        places = {row[0]: (row[4], row[5], place) for place, row in enumerate(every)}
        root = lowest[root_id(thread_id, places)]
        (body,) = self._db.execute("SELECT body FROM line WHERE id = ?", (root[3],)).fetchone()
        record = records.read_kind("signal", body.encode())
        parties = {root[1], root[2], *(record["recipients"] if record is not None else ())} - {None}
        chosen = fair_share(
            every, LINES_MAX, lambda row: (row[1], row[2]), lambda row: row[1] in parties or row[2] in parties
        )
        self.left_out[thread_id] = len(every) - len(chosen)
        return [row[0] for row in chosen]

    def read_ahead(self, ids: Sequence[str]) -> None:
        """Read signals that threads to be loaded have, in one query, as far as the budget allows."""
        for start in range(0, len(ids), AHEAD):
            new = [id for id in ids[start : start + AHEAD] if id not in self._said]
            if not self._may_read(0, new):
                return
            self._read(new)

    def signal(self, id: str) -> ThreadSignal | None:
        """Return a signal that was read; None if it was not, or is unreadable."""
        return self._said.get(id)

    def _may_read(self, count: int, new: Sequence[str]) -> bool:
        if self._left is None:
            return True
        if NAMED_BYTES * count > self._left:
            return False
        if not new:
            self._left -= NAMED_BYTES * count
            return True
        (size,) = self._db.execute(
            "SELECT coalesce(sum(max(?, length(l.body))), 0) FROM signal s JOIN line l ON l.id = s.line"
            f" WHERE s.signal_id {AMONG}",
            (LINE_LEAST, json_list(new)),
        ).fetchone()
        size += NAMED_BYTES * count
        if size > self._left:
            return False
        self._left -= size
        return True

    def _read(self, ids: Sequence[str]) -> None:
        lines: dict[str, list[bytes]] = {}
        rows = self._db.execute(
            # All lines of an id in the thread count, whatever thread they name.
            "SELECT s.signal_id, l.body FROM signal s JOIN line l ON l.id = s.line"
            f" WHERE s.signal_id {AMONG}",
            (json_list(ids),),
        )
        for signal_id, body in rows:
            lines.setdefault(signal_id, []).append(body.encode())
        first: dict[str, SignalRecord] = {
            id: record
            for id, bodies in lines.items()
            if (record := records.read_kind("signal", min(bodies))) is not None
        }
        answered = {to for record in first.values() if (to := record.get("reply_to"))}
        digests = digests_of(self._db, answered) if answered else {}
        self._said.update(dict.fromkeys(lines))
        tasks = {each.get("task_id") for each in first.values() if asks(each)}
        settled = {task: mailbox.settled(self._db, task) for task in tasks}
        for id, record in first.items():
            answer = (record.get("reply_to"), record.get("answers_digest"), record["origin"])
            why = settled[record.get("task_id")] if asks(record) else None
            self._said[id] = ThreadSignal(
                record, lines[id], counts=answers_a_line(*answer, digests), settled=why
            )


def initiatives_of(db: sqlite3.Connection, wu: str) -> list[str]:
    """Return the initiatives that a session or a signal names together with a work unit."""
    rows = db.execute(
        f"SELECT initiative_id FROM session WHERE {unit_key_sql('wu_id')} = :wu UNION"
        " SELECT json_extract(l.body, '$.initiative_id') FROM signal s JOIN line l ON l.id = s.line"
        " WHERE s.wu_id = :wu AND instr(l.body, 'initiative_id')",
        {"wu": unit_key(wu)},
    )
    return sorted(str(name) for (name,) in rows if name)


class ThreadCache:
    """A cache of folded threads for one answer; the arguments are those of `ThreadLines`."""

    def __init__(self, db: sqlite3.Connection, most: int | None = None) -> None:
        self.lines = ThreadLines(db, most)
        self._known: dict[str, FoldedThread | None] = {}

    def of(self, thread_id: str) -> FoldedThread | None:
        """Return a folded thread, or None if the budget is exceeded."""
        if thread_id not in self._known:
            signals = self.lines.load(thread_id)
            self._known[thread_id] = FoldedThread(thread_id, signals) if signals is not None else None
        return self._known[thread_id]
