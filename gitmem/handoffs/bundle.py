"""Collect what an agent has to hand over: its last checkpoint, its tasks, its claims and its open threads."""

from __future__ import annotations

from .. import records
from ..claims import standing_claims
from ..commit_message import sanitize
from ..mailbox import mailbox_view
from ..memory import open_threads, session_checkpoints
from ..records.ids import unit_key
from ..signals.agreement import FoldedThread
from ..signals.thread_lines import ThreadLines
from ..tasks import HANDOFFS_MAX, load, rules
from . import handoff_list
from .content import LeftOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..agents.caller import Caller
    from ..memory.versioned_node import VersionedNode
    from ..records.record_types import SignalRecord
    from ..store import Store

LOOKED_AT_MAX = 200  # tasks and threads of a caller that are read
LEFT_OUT_MAX = 50  # reasons in one answer
FULL = f"a handoff has at most {HANDOFFS_MAX} of each kind"
# `requires_ack` is found by its bytes in the line: inside a message its quotes would be escaped.
_HELD = "SELECT task_id, unit FROM task WHERE holder = ? AND decided_by IS NULL ORDER BY touched DESC, task_id LIMIT ?"
_OFFERED = (
    "SELECT task_id FROM task WHERE agent IN (?, ?) AND decided_by IS NULL AND holder IS NULL AND purpose <> 'handoff'"
    " ORDER BY created DESC, task_id LIMIT ?"
)
_ASKED = (
    "SELECT s.thread, l.body FROM signal s JOIN line l ON l.id = s.line WHERE (s.sender = ?1 OR s.sender_session = ?2)"
    " AND s.thread IS NOT NULL AND (s.intent IN ('PROPOSE', 'COUNTER') OR instr(l.body, '\"requires_ack\":true'))"
    " ORDER BY l.body DESC LIMIT ?3"
)


class Bundle:
    """What a handoff will name, by reference, and what it leaves out.

    Attributes:
        checkpoint: The last checkpoint.
        tasks: The caller's take of each task.
    """

    def __init__(self) -> None:
        self.checkpoint: VersionedNode | None = None
        self.tasks: dict[str, str] = {}
        self.claims: list[str] = []
        self.threads: list[str] = []
        self.left_out: list[LeftOut] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hand over."""
        return not (self.checkpoint or self.tasks or self.claims or self.threads)

    def leave_out(self, id: str, reason: str) -> None:
        """Note what is not handed over."""
        if len(self.left_out) < LEFT_OUT_MAX:
            self.left_out.append(LeftOut(id, reason))


def collect(store: Store, caller: Caller, wu: str | None) -> Bundle:
    """Return what a caller has to hand over.

    Args:
        wu: Only what belongs to this work unit; tasks, claims and threads without one are left out then.
    """
    found = Bundle()
    waiting = _waiting(store, caller)
    _add_checkpoint(store, caller, wu, found, waiting)
    _add_tasks(store, caller, wu, found, waiting)
    _add_claims(store, caller, wu, found, waiting)
    _add_threads(store, caller, wu, found, waiting)
    return found


def _waiting(store: Store, caller: Caller) -> dict[str, str]:
    """Return the handoff that waits for an answer of everything that is offered already."""
    found: dict[str, str] = {}
    for row in handoff_list.of_caller(store, caller).given:
        named = load.lowest_line(store.db(), row.task_id)
        if (
            named is not None
            and row.status == handoff_list.WAITING
            and row.giver_session == caller.session_id
        ):
            record = named[1]
            for ids in map(record.get, ("handoff_tasks", "handoff_claims", "handoff_threads")):
                found.update(dict.fromkeys(ids or (), row.task_id))  # type: ignore[call-overload]
            found[record.get("checkpoint") or ""] = row.task_id
    return found


def _add_checkpoint(
    store: Store, caller: Caller, wu: str | None, found: Bundle, waiting: dict[str, str]
) -> None:
    session = caller.session_id
    node = session_checkpoints.last_checkpoint(store, session, None, wu, None if session else caller.reader)
    if node is None and session is not None:
        node = session_checkpoints.earlier_checkpoint(store, session, caller.wu_id, wu)
    if node is not None and node.sensitive:
        found.leave_out(node.id, "is sensitive")
    elif node is not None and node.id in waiting:
        found.leave_out(node.id, f"is offered already by {waiting[node.id]}")
    elif node is not None:
        found.checkpoint = node


def _add_tasks(store: Store, caller: Caller, wu: str | None, found: Bundle, waiting: dict[str, str]) -> None:
    db = store.db()
    for task_id, unit in db.execute(_HELD, (caller.reader, LOOKED_AT_MAX)).fetchall():
        task = load.load(db, task_id, forged=False)
        mine = rules.own_take(task, (caller.reader, caller.session_id)) if task is not None else None
        if task is None or task.is_finished:
            continue
        if mine is None:
            found.leave_out(task_id, "was taken by another session of yours")
        elif why := _why_not(task_id, unit, wu, waiting, len(found.tasks)):
            found.leave_out(task_id, why)
        else:
            found.tasks[task_id] = mine.id
    offered = db.execute(_OFFERED, (caller.reader, caller.session_id, LEFT_OUT_MAX)).fetchall()
    for (task_id,) in offered:
        found.leave_out(task_id, "is for you, but you have not taken it")


def _add_claims(store: Store, caller: Caller, wu: str | None, found: Bundle, waiting: dict[str, str]) -> None:
    for each in standing_claims.standing(store, forged=False):
        if each.claim.owner != (caller.reader, caller.session_id) or each.is_over:
            continue
        record = each.claim.record
        is_of_task = record.get("task_id") in found.tasks
        if why := _why_not(
            each.id, record.get("wu_id"), None if is_of_task else wu, waiting, len(found.claims)
        ):
            found.leave_out(each.id, why)
        else:
            found.claims.append(each.id)


def _add_threads(
    store: Store, caller: Caller, wu: str | None, found: Bundle, waiting: dict[str, str]
) -> None:
    """Add the threads that wait for the caller, and those in which nobody has answered the caller."""
    db = store.db()
    both: dict[str, SignalRecord] = {}
    for asked in open_threads.find(store, caller)[:LOOKED_AT_MAX]:
        record = records.read_kind("signal", mailbox_view.line_of(db, asked.signal_id))
        if record is not None:
            both[asked.thread_id] = record
    both.update((each.get("thread_id") or "", each) for each in _unanswered(store, caller))
    for thread_id, record in both.items():
        if record.get("task_id"):
            continue  # the task says it
        if why := _why_not(thread_id, record.get("wu_id"), wu, waiting, len(found.threads)):
            found.leave_out(thread_id, why)
        else:
            found.threads.append(thread_id)


def _unanswered(store: Store, caller: Caller) -> Iterator[SignalRecord]:
    """Yield the last question of the caller in each thread in which somebody else still has to answer."""
    db = store.db()
    lines, seen = ThreadLines(db), set()
    for thread_id, body in db.execute(_ASKED, (caller.reader, caller.session_id, LOOKED_AT_MAX)).fetchall():
        record = records.read_kind("signal", body.encode())
        if thread_id in seen or record is None or not record["recipients"]:
            continue
        seen.add(thread_id)
        thread = FoldedThread(lines.load(thread_id) or {})
        others = [each for each in (*record["recipients"], *thread.parties) if each not in caller.ids]
        pending = [each for each in thread.asked if thread.asks and thread.stands(each)[0] == "pending"]
        if any(each in pending or thread.owes([each], record["signal_id"]) for each in others):
            yield record


def _why_not(id: str, unit: str | None, wu: str | None, waiting: dict[str, str], count: int) -> str | None:
    """Return why something is not handed over, or None if it is."""
    if wu is not None and unit_key(unit) != unit_key(wu):
        return f"belongs to {sanitize(unit)}" if unit else f"does not belong to {sanitize(wu)}"
    if id in waiting:
        return f"is offered already by {waiting[id]}"
    return FULL if count >= HANDOFFS_MAX else None
