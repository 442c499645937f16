"""Signals and threads of the page: what was said, who has read it, and where each recipient stands."""

from __future__ import annotations

from ..mailbox import receipts
from ..signals import ASKS, causality
from ..signals import threads as thread_answers
from .texts import millis_of, put, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from ..signals.causality import FoldedThread, ThreadSignal
    from ..signals.many_threads import ManyThreads
    from .contract import Agreed, Receipt, SignalMark, ThreadState
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
        self._recorded = receipts.of_signals(db, [id for id, _ in threads.ids])
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
        put(mark, "wu", record.get("wu_id") or record.get("unit"))
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
                decided = found.decision(reader) if signal is found.root else found.answer(reader, signal.id)
                first = decided.record["at"] if decided is not None else signal.record["at"]
            lane = self._lanes.of(reader)
            before = rows.get(lane)
            if before is None or (before[1] == "delivered" and state != "delivered"):
                rows[lane] = lane, state, millis_of(first or "")
                self._receipts_left -= before is None
        return list(rows.values())

    def _state(self, id: str, found: FoldedThread | None, shown: int) -> ThreadState:
        """Return a thread: its state, and where the recipients of its first signal stand."""
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
        put(state, "wu", root.record.get("wu_id") or root.record.get("unit"))
        is_asked = thread_answers.asks_for_decision(found)
        if thread_answers.ambiguous(found.signals):
            state["state"] = "ambiguous"
        elif is_asked or any(found.decision(each) for each in root.record["recipients"]):
            stands = self._stands(found, root)
            state["stands"] = list(stands.items())[:OF_SIGNAL_MAX]
            words = set(stands.values())
            state["state"] = (
                "rejected" if "reject" in words else "countered" if "counter" in words
                else "converged" if words <= {"agree", "stale"} else "open"
            )  # fmt: skip
            agreed = self._agreed(found, root) if words == {"agree"} else None
            if agreed is not None:
                state["agreed"] = agreed
        return state

    def _stands(self, found: FoldedThread, root: ThreadSignal) -> dict[str, str]:
        """Return the decision of each recipient of a thread's root by lane."""
        return {
            self._lanes.of(each.identity): "stale" if each.stale else each.decision
            for each in thread_answers.recipients(found, root, None, {})
        }

    def _agreed(self, found: FoldedThread, root: ThreadSignal) -> Agreed | None:
        """Return what the recipients of a converged thread agreed to; None if that is its first signal, or can't be said."""
        last = causality.latest((each for each in found.signals.values() if each.intent in ASKS), found.edges)
        if last is None or last is root:
            return None
        replies = (each for each in found.signals.values() if each.record.get("reply_to") == last.id)
        if not any(each.intent == "AGREE" for each in replies):
            return None
        record = last.record
        return {
            "signal": last.id,
            "agent": self._lanes.of(record["sender_identity"], None, record.get("sender_name")),
            "text": title(record["message"]),
        }
