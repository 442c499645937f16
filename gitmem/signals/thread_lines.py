"""Read the signals of threads from the index; the lines of each id are read once for all threads."""

from __future__ import annotations

from .. import records
from ..agents import mailbox
from ..agents.mailbox import digests_of
from ..index.entities import AMONG, json_list
from ..order.content import answers_a_line, asks
from ..order.shares import LINES_MAX, fair_share
from ..order.thread import FoldedThread, ThreadSignal
from ..records.ids import unit_key, unit_key_sql
from .own_decisions import SessionNames, void_own_decisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..records.record_types import SignalRecord

LINE_LEAST = 512  # minimum bytes charged for a line: reading a shorter one takes as long
AHEAD = 2_000  # signals of one query that reads ahead
NAMED_BYTES = 16  # bytes charged for an id of a thread


class ThreadLines:
    """A reader of threads with a budget.

    Args:
        most: Maximum bytes of lines to read in all; a line counts at least `LINE_LEAST`. None for no limit. The limit
            is bytes and not time, because the same log must give the same answers.
        forged: Whether to include forged lines: in the name of a session of this clone, but not written here.

    Attributes:
        left_out: The number of signals of a thread that were not read, because there are too many.
    """

    def __init__(self, db: sqlite3.Connection, most: int | None = None, *, forged: bool = True) -> None:
        self._db = db
        self._left = most
        self._but = "" if forged else " AND s.line NOT IN (SELECT line FROM forged)"
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
            {id: signal for id, signal in found.items() if signal is not None}, self._names
        )

    def _ids(self, thread_id: str) -> list[str]:
        """Return the signals of a thread that are read: of too many a fair share of each sender, those of the parties first."""
        query = "SELECT DISTINCT signal_id FROM signal s WHERE thread = ?" + self._but
        ids = [str(id) for (id,) in self._db.execute(f"{query} LIMIT {LINES_MAX + 1}", (thread_id,))]
        if len(ids) <= LINES_MAX:
            return ids
        rows = self._db.execute(
            "SELECT s.signal_id, s.sender, s.sender_session, l.id, json_extract(l.body, '$.reply_to')"
            f" FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ?{self._but} ORDER BY l.body",
            (thread_id,),
        )
        lowest: dict[str, tuple[str, str, str | None, int, str | None]] = {}
        for row in rows:
            lowest.setdefault(row[0], row)
        every = list(lowest.values())
        root = next((row for row in every if row[4] not in lowest), every[0])
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
            f" WHERE s.signal_id {AMONG}" + self._but,
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

    def __init__(self, db: sqlite3.Connection, most: int | None = None, *, forged: bool = True) -> None:
        self.lines = ThreadLines(db, most, forged=forged)
        self._known: dict[str, FoldedThread | None] = {}

    def of(self, thread_id: str) -> FoldedThread | None:
        """Return a folded thread, or None if the budget is exceeded."""
        if thread_id not in self._known:
            signals = self.lines.load(thread_id)
            self._known[thread_id] = FoldedThread(signals) if signals is not None else None
        return self._known[thread_id]
