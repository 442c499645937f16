"""Limits on open tasks: something that writes tasks in a loop ends by itself, also as many processes at once."""

from __future__ import annotations

from ..agents.delivery import delivery_lock
from ..commit_message import sanitize
from ..errors import UsageError
from ..order.task import micros
from .chains import QUOTA

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store
    from .rules import Refusal

OPEN_OF_CALLER_MAX, OPEN_FOR_AGENT_MAX = 20, 100
LOCK, LOCK_WAIT_SECONDS = "new tasks", 3.0
_OPEN = (
    "SELECT count(*) FROM task t WHERE t.{column} = ?1 AND decided_by IS NULL AND replaced <> 1 AND purpose <> 'handoff'"
    " AND (EXISTS (SELECT 1 FROM own WHERE name = t.caller_session) OR (?2 IS NULL AND t.caller_session IS NULL))"
    " AND NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = t.line)"
    " AND (deadline IS NULL OR max(deadline, coalesce(until, 0)) > ?3)"  # else nobody may begin it, and nobody works on it
)
_BEFORE = (
    "SELECT count(*) FROM task t WHERE t.caller = ?1 AND (decided_by IS NULL OR decided_by = 'status') AND decided_by IS NULL"
    " AND t.caller_session IS ?2 AND replaced <> 1 AND purpose <> 'handoff' AND (t.created, t.task_id) < (?3, ?4)"
    " AND (deadline IS NULL OR max(deadline, coalesce(until, 0)) > ?3)"
)


def turn(store: Store, *, is_limited: bool = True) -> delivery_lock:
    """Return the lock under which open tasks are counted and a new one is recorded, one process of the clone at a time.

    It is one lock for all callers, because the limits of an addressee and of a chain count the tasks of all. Who gets no turn
    in time goes on: a process that was stopped must not keep others from delegating. While entries are collected nobody waits: a
    call has taken the lock before, and of a batch the limits hold when its entries are collected.

    Args:
        is_limited: Whether anything is counted; else nobody waits.
    """
    waits = is_limited and store.collecting is None
    return delivery_lock(store, LOCK, wait_seconds=LOCK_WAIT_SECONDS if waits else None)


def refuse_too_many(store: Store, caller: Caller, agent: str | None) -> None:
    """Raise UsageError if the caller, or the addressee, has so many open tasks that something runs away.

    Only tasks of sessions of this clone count: with others a peer could keep anybody from delegating. Tasks that nobody took before
    their deadline do not.
    """
    for column, who, most in (
        ("caller", caller.reader, OPEN_OF_CALLER_MAX),
        ("agent", agent, OPEN_FOR_AGENT_MAX),
    ):
        query = _OPEN.format(column=column)
        (count,) = store.db().execute(query, (who, caller.session_id, store.now())).fetchone()
        if who is not None and count >= most:
            raise UsageError(
                f"{sanitize(who)} has {count} open tasks {'of its own' if column == 'caller' else 'to do'}; "
                f"at most {most} are allowed. Nothing was written.",
                hint="Cancel or finish some of them first.",
                code="too-many-open",
                next=["gitmem task list --open"],
            )


def over_limit(db: sqlite3.Connection, task: FoldedTask) -> Refusal | None:
    """Return why a worker rejects a task whose writer has not checked the limit of its open tasks; None within it.

    Those count that its session wrote before and that are open now, by the time of the task and not by a clock here. Whoever reads the task has read
    what its writer knew, so nobody who has checked is rejected. The limit of an addressee is one of each writing clone, which no record names.
    """
    identity, session = task.caller
    created = micros(task.record["at"])
    row = db.execute(_BEFORE, (identity, session, created, task.record["task_id"])).fetchone()
    if row[0] < OPEN_OF_CALLER_MAX:
        return None
    return QUOTA, f"{sanitize(identity)} has more than {OPEN_OF_CALLER_MAX} open tasks of its own"
