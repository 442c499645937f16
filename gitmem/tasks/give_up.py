"""Tasks that their callers give up: nobody works on them, and nobody may begin them any more. Else their callers would wait for ever.

The caller's clock decides when the session that wrote a task seals it as failed; for everybody else that seal decides. Delegations have no such
end: their deadline says when to begin, and people take them long after that.
"""

from __future__ import annotations

from ..errors import GitmemError
from ..sync import fences, noop_check
from . import CALL, chains, load, once, rules, task_decisions
from .task_work import sender_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store

GRACE_MICROS = (
    once.LOST_MICROS
)  # after a deadline or the end of a lease: a record may be on its way from another clone
LOST = "Its worker is lost, and it may begin only once."
FENCED = (
    "Somebody has begun it, or was about to, and has reported nothing. It may begin only once, so it is lost."
)
BEGUN = "Somebody has begun it, or was about to. If nobody reports an end, it is given up after its deadline."
UNTAKEN = "Nobody took it before its deadline."
UNFINISHED = "Its deadline is over, and nobody works on it any more."
_OPEN = (  # said so that the index of these is used, not all tasks
    "SELECT task_id FROM task t WHERE caller = ? AND (decided_by IS NULL OR decided_by = 'status') AND decided_by IS NULL"
    " AND caller_session IS ? AND replaced <> 1 AND (once = 1 OR purpose = 'call')"
    " AND NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = t.line) ORDER BY created, task_id LIMIT 100"
)


def reason(store: Store, task: FoldedTask) -> str | None:
    """Return why its caller gives a task up now; None while somebody works on it, or may begin it.

    The records of another clone may end it. So in a clone that reads a remote that has to be read after the deadline first.
    """
    now = store.now()
    if task.is_finished:
        return None
    if once.is_lost(task, now):
        return LOST
    ends = chains.deadline(store, task)
    if task.record["purpose"] != CALL or ends is None or ends + GRACE_MICROS > now:
        return None
    if any(task.lease(each) + GRACE_MICROS > now for each in task.held) or not _has_read(store, ends):
        return None
    if task.takes:
        return UNFINISHED
    return FENCED if is_fenced(store, task) else UNTAKEN


def is_fenced(store: Store, task: FoldedTask, *, asks: bool = False) -> bool:
    """Return whether somebody has begun a task that begins only once, or was about to, although nobody has recorded to have taken it.

    Args:
        asks: Whether to ask the remote if this clone knows of no fence; while it answers, other threads may use the store.
    """
    return rules.is_once(task) and not task.takes and fences.exists(store, task.record["task_id"], asks=asks)


def seal(store: Store, caller: Caller, task: FoldedTask, why: str, *, asks: bool = False) -> FoldedTask:
    """Seal a task as failed for a reason, and return it as it is then.

    Args:
        asks: Whether to ask the remote whether somebody has begun it.

    Raises:
        GitmemError: See `task_decisions.seal`.
    """
    id = task.record["task_id"]
    if why == UNTAKEN and asks and is_fenced(store, task, asks=True):
        why = FENCED
    task_decisions.seal(store, caller, id, give_up=why)
    return load.load(store.db(), id, forged=False) or task


def look(store: Store, caller: Caller) -> None:
    """Give up what the caller's session has to, as a part of another command. Never raise an error of ours."""
    try:
        rows = store.db().execute(_OPEN, (caller.reader, caller.session_id)).fetchall()
        for (id,) in rows:
            task = load.load(store.db(), str(id), forged=False)
            if task is None or rules.seal(task, sender_of(caller)) is not None:
                continue
            if (why := reason(store, task)) is not None:
                seal(store, caller, task, why)
    except GitmemError:
        return  # the next look does it


def _has_read(store: Store, since: int) -> bool:
    """Return whether a clone that reads a remote has read it since a time."""
    read = noop_check.last_read(store.repo)
    return read is None or read * 1_000_000 >= since or not store.has_remote()
