"""Signals and threads of the page: what was said, who has read it, and where each recipient stands."""

from __future__ import annotations

from ..agents import mailbox
from ..signals import threads as thread_answers
from .texts import millis_of, put, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from ..order.thread import FoldedThread, ThreadSignal
    from ..signals.many_threads import ManyThreads
    from .contract import ProposalMark, Receipt, SignalMark, ThreadState
    from .lanes import Lanes
    from .texts import TextBudget

    Recorded = Mapping[
        str, tuple[str, str]
    ]  # by reader: the time of the first receipt, the state of the latest

SIGNALS_MAX = 20_000
RECEIPTS_MAX = 100_000  # of all signals
OF_SIGNAL_MAX = 200  # recipients and receipts of one signal


class SignalMarks:
    """The signals and threads of the page.

    Attributes:
        marks: The signals, the oldest first.
        states: Their threads, that with the newest signal first.
        omitted: How many signals are left out.
    """

    def __init__(self, db: sqlite3.Connection, threads: ManyThreads, lanes: Lanes, texts: TextBudget) -> None:
        self._lanes = lanes
        self._texts = texts
        self._receipts_left = RECEIPTS_MAX
        self._recorded = mailbox.receipts_of(db, [id for id, _ in threads.ids])
        found = [self._mark(id, thread, threads) for id, thread in threads.ids]
        self.marks: list[SignalMark] = [each for each in reversed(found) if each is not None]
        self.omitted = threads.more + len(found) - len(self.marks)
        shown: dict[str, int] = {}
        for mark in self.marks:
            shown[mark["thread"]] = shown.get(mark["thread"], 0) + 1
        self.states = [
            self._state(id, folded, shown[id]) for id, folded in threads.threads.items() if id in shown
        ]

    def _mark(self, id: str, thread: str, threads: ManyThreads) -> SignalMark | None:
        signal = threads.signal(id, thread)
        if signal is None:
            return None
        record = signal.record
        at = millis_of(record["at"])
        text, cut = self._texts.cut(record["message"])
        mark: SignalMark = {
            "id": id,
            "at": at,
            "from": self._lanes.of(record["sender_identity"], at, record.get("sender_name")),
            "to": self._lanes.all(record["recipients"][:OF_SIGNAL_MAX]),
            "broadcast": not record["recipients"],
            "intent": record["intent"],
            "text": text,
            "thread": thread,
            "ack": bool(record.get("requires_ack")),
            "receipts": self._receipts(signal, threads.cache.of(thread)),
        }
        if cut:
            mark["cut"] = cut
        if reply := record.get("reply_to"):
            mark["reply"] = reply
        put(mark, "wu", record.get("wu_id"))
        if task := record.get("task_id"):
            mark["task"] = task
        return mark

    def _receipts(self, signal: ThreadSignal, found: FoldedThread | None) -> list[Receipt]:
        """Return the receipts of a signal by lane, with those of recipients that decided without one."""
        recorded: Recorded = self._recorded.get(signal.id, {})
        rows: dict[str, Receipt] = {}
        for reader in dict.fromkeys([*recorded, *signal.record["recipients"]]):
            first, last = recorded.get(reader, (None, None))
            state = thread_answers.delivery_state(reader, signal, found, last) if found is not None else last
            if state is None or self._receipts_left <= 0 or len(rows) >= OF_SIGNAL_MAX:
                continue
            if first is None and found is not None:
                decided = found.answer(reader, signal.id)
                first = decided.record["at"] if decided is not None else signal.record["at"]
            lane = self._lanes.of(reader)
            before = rows.get(lane)
            if before is None or (before[1] == "delivered" and state != "delivered"):
                rows[lane] = lane, state, millis_of(first or "")
                self._receipts_left -= before is None
        return list(rows.values())

    def _state(self, id: str, found: FoldedThread | None, shown: int) -> ThreadState:
        """Return a thread: its state, and where those who are asked stand."""
        if found is None or found.root is None:
            return {"id": id, "state": "large", "stands": [], "title": "", "signals": shown}
        root = found.root
        state: ThreadState = {
            "id": id,
            "root": root.id,
            "state": "notice",
            "stands": [],
            "title": title(root.record["message"]),
            "signals": len(found.signals),
        }
        if len(found.signals) > shown:
            state["more"] = len(found.signals) - shown
        put(state, "wu", root.record.get("wu_id"))
        parties = found.asked
        if found.ambiguous:
            state["state"] = "ambiguous"
        elif found.asks or any(map(found.position, parties)):
            stands = {self._lanes.of(each): found.stands(each)[0] for each in parties}
            state["stands"] = list(stands.items())[:OF_SIGNAL_MAX]
            words = set(stands.values())
            state["state"] = (
                "converged"
                if found.agreed_on is not None
                else "rejected"
                if "reject" in words
                else "settled"
                if found.settled
                else "countered"
                if "counter" in words
                else "open"
            )
        if list(found.in_force) != [root.id]:
            state["in_force"] = [self._proposal(each) for each in found.in_force.values()]
        return state

    def _proposal(self, signal: ThreadSignal) -> ProposalMark:
        record = signal.record
        return {
            "signal": signal.id,
            "agent": self._lanes.of(record["sender_identity"], None, record.get("sender_name")),
            "text": title(record["message"]),
        }
