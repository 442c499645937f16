"""Gates on the page: who cannot pass one now, and who passed a rule with a reason."""

from __future__ import annotations

import time

from ..agents import audits
from ..agents.caller_identity import of_session
from ..records.ids import is_id, unit_key
from ..signals import gate
from ..signals.thread_lines import ThreadCache
from .texts import SHORT_MAX, TextBudget, millis_of, put, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..agents.presence import Presence
    from ..records.record_types import AuditRecord
    from ..records.shown_types import BlockingSignal
    from ..signals.many_threads import ManyThreads, Selection
    from ..store import Store
    from ..tasks.task_list import TaskRow
    from .board_contract import ClosedGate, GateBlocker, PassedRule
    from .lanes import Lanes

GATES_MAX = 200  # that are looked at
GATE_SECONDS = 1.0  # of CPU, for looking at gates
AUDITS_MAX, AUDIT_BYTES = 1_000, 4_000_000  # that are read
PASSED_MAX = 200
OF_ONE_MAX = 50  # signals or claims of one reason
REASON_MAX = 1_000  # characters
REASON_BYTES = 200_000
_OF_CLAIMS = (audits.CLAIM, audits.CLAIM_RELEASE)
_LATE = "Not all gates were looked at: there are too many signals."


class GateMarks:
    """The gates of the page.

    Args:
        current: The sessions at work.
        threads: The threads of the page.
        tasks: Its tasks; a session works on the units of those that it has, too.
        most: How many gates are looked at.

    Attributes:
        closed: The gates that an agent at work can't pass now, those with the most signals first.
        passed: Who passed a rule with a reason, the oldest first.
        omitted: How many of these are left out.
        unseen: How many gates were not looked at.
        notes: Sentences on what was not looked at.
    """

    def __init__(
        self,
        store: Store,
        only: Selection,
        current: Sequence[Presence],
        tasks: Sequence[TaskRow],
        threads: ManyThreads,
        lanes: Lanes,
        *,
        most: int = GATES_MAX,
    ) -> None:
        self._most = most
        self._store = store
        self._lanes = lanes
        self._audits = audits.newest(store.db(), AUDITS_MAX, AUDIT_BYTES)
        self.unseen = 0
        self.notes: list[str] = []
        self.closed = self._closed(only, current, tasks, threads)
        texts = TextBudget(REASON_BYTES)
        found = [each for each in self._audits if _is_wanted(each, only)]
        (total,) = store.db().execute("SELECT count(*) FROM line WHERE kind = 'audit'").fetchone()
        self.omitted = max(0, len(found) - PASSED_MAX) + total - len(self._audits)
        self.passed = [self._passed(each, texts) for each in found[:PASSED_MAX]][::-1]

    def _closed(
        self, only: Selection, current: Sequence[Presence], tasks: Sequence[TaskRow], threads: ManyThreads
    ) -> list[ClosedGate]:
        found: dict[tuple[str, str], ClosedGate] = {}
        db = self._store.db()
        folded, initiatives = self._cache(threads), dict[str, list[str]]()
        works, until = list(_works(only, current, tasks)), time.thread_time() + GATE_SECONDS
        for place, (one, unit) in enumerate(works):
            if place == self._most or time.thread_time() > until:
                self.unseen = len(works) - place
                self.notes.append(_LATE)
                break
            passed = None if one.here else self._passed_by(one, unit)
            key = unit_key(unit)
            if key not in initiatives:
                initiatives[key] = gate.initiatives_of(db, unit)
            caller = of_session(one, "page")
            state, _ = gate.look(
                self._store, caller, unit, initiatives[key], passed=passed, threads_of=folded
            )
            count = 0 if state.open else state.unread + state.unanswered
            lane = self._lanes.of(one.reader) if count else ""
            known = found.get((lane, key))
            if count and (known is None or known["unread"] + known["unanswered"] < count):
                found[lane, key] = self._gate(lane, unit, state)
        return sorted(
            found.values(), key=lambda each: (-each["unread"] - each["unanswered"], each["agent"], each["wu"])
        )

    def _cache(self, threads: ManyThreads) -> ThreadCache:
        """Return the threads of the page if no line is forged, else others: forged lines close and open no gate."""
        db = self._store.db()
        is_any_forged = db.execute("SELECT 1 FROM forged LIMIT 1").fetchone() is not None
        return ThreadCache(db, forged=False) if is_any_forged else threads.cache

    def _passed_by(self, one: Presence, unit: str) -> dict[str, str]:
        """Return the signals that an agent of another clone passed: that clone knows its audits, and here they may be forged."""
        return {
            id: each["audit_id"]
            for each in self._audits
            if each["action"] == audits.GATE and each["reader_identity"] in (one.reader, one.session_id)
            if unit_key(_unit(each)) == unit_key(unit)
            for id in each.get("signal_ids") or ()
        }

    def _gate(self, lane: str, unit: str, state: gate.Gate) -> ClosedGate:
        shown: ClosedGate = {
            "agent": lane,
            "wu": short(unit),
            "unread": state.unread,
            "unanswered": state.unanswered,
            "blockers": [self._blocker(each) for each in state.signals],
        }
        if state.more:
            shown["more"] = state.more
        return shown

    def _blocker(self, signal: BlockingSignal) -> GateBlocker:
        shown: GateBlocker = {
            "signal": signal["signal_id"],
            "why": signal["why"],
            "from": self._lanes.of(signal["sender_identity"], None, signal["sender_name"]),
            "at": millis_of(signal["created_at"]),
        }
        put(shown, "thread", signal["thread_id"])
        return shown

    def _passed(self, audit: AuditRecord, texts: TextBudget) -> PassedRule:
        is_of_claims = audit["action"] in _OF_CLAIMS
        claims = [each for each in audits.claim_ids(audit) if is_id("claim", each)] if is_of_claims else []
        reason = audit["reason"].rpartition(" (")[0] if claims else audit["reason"]
        at = millis_of(audit["at"])
        shown: PassedRule = {
            "id": audit["audit_id"],
            "at": at,
            "agent": self._lanes.of(audit["reader_identity"], at, audit.get("sender_name")),
            "rule": short(audit["action"]),
            "reason": texts.cut(reason, REASON_MAX)[0],
            "signals": list((audit.get("signal_ids") or ())[:OF_ONE_MAX]),
            "claims": claims[:OF_ONE_MAX],
        }
        if is_of_claims:
            shown["past"] = short(audits.past_claims(self._store.db(), audit), SHORT_MAX)
        put(shown, "session", audit.get("sender_session"))
        put(shown, "wu", _unit(audit))
        return shown


def _works(
    only: Selection, current: Sequence[Presence], tasks: Sequence[TaskRow]
) -> Iterator[tuple[Presence, str]]:
    """Yield each session at work with each work unit that it works on."""
    held: dict[str, list[str]] = {}
    for task in tasks:
        if task.holder_session and task.wu_id and task.until:
            held.setdefault(str(task.holder_session), []).append(str(task.wu_id))
    for one in current:
        units = {unit_key(each): each for each in (*held.get(one.session_id, ()), one.wu_id) if each}
        for unit in units.values():
            if only.has_unit(unit):
                yield one, unit


def _is_wanted(audit: AuditRecord, only: Selection) -> bool:
    return (
        only.has_unit(_unit(audit))
        and only.has_any(audit["reader_identity"], audit.get("sender_session"))
        and millis_of(audit["at"]) >= (only.since or 0) // 1_000
    )


def _unit(audit: AuditRecord) -> str | None:
    return audit.get("wu_id")
