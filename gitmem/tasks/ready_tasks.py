"""The tasks that a session may take now, for `mem ready`."""

from __future__ import annotations

from ..memory import listing
from ..outcome import command
from ..records.ids import unit_key
from . import load, rules, task_list, task_roles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..agents.caller import Caller
    from ..memory.listing import Ready
    from ..store import Store
    from .task_list import TaskRow

LISTED = 20
FOLDED_MAX = 50  # tasks that are folded for one answer
_OPEN = (
    "t.decided_by IS NULL AND t.replaced <> 1 AND t.cancels = 0 AND t.purpose <> 'handoff' AND (t.holder IS NULL OR t.until <= :now)"
    " AND (t.agent IN (:reader, :session) OR (t.agent IS NULL AND t.target_role IN (:role, :lifecycle)"
    f" AND t.caller_session IS NOT :session)) AND {task_list.BLOCKERS} = '[]'"
    " AND (t.deadline IS NULL OR t.deadline > :now)"
)


def takeable(store: Store, caller: Caller, *, wu: str | None = None) -> list[TaskRow]:
    """Return tasks that the caller may take now, the most urgent ones: for it or its role, free, not blocked and not refused by it.

    Args:
        wu: Only tasks on this work unit.
    """
    now = store.now()
    role, lifecycle = task_roles.addressed_by(caller)
    values: dict[str, str | int | None] = {
        "reader": caller.reader, "session": caller.session_id or "", "now": now, "lifecycle": lifecycle,
        "role": role, "wu": unit_key(wu),
    }  # fmt: skip
    condition = f"{_OPEN} AND t.wu_id = :wu" if wu else _OPEN
    db, sender = store.db(), (caller.reader, caller.session_id)
    found = []
    for row in task_list.select(db, condition, values, FOLDED_MAX):
        task = load.load(db, str(row.task_id), forged=False)
        if task is None or rules.take(task, sender, caller.ids, now) is not None:
            continue
        if task.rejection_by(sender) is None:
            found.append(row)
    return found[:LISTED]


def ready_work(store: Store, caller: Caller | None, wu: str | None = None, **options: Any) -> Ready:
    """Return the open nodes of a work unit, and the tasks that the caller may take.

    Args:
        wu: The work unit; by default that of the caller's session with tasks on others, too, and without one all.
        options: Those of `memory.ready.ready`.

    Raises:
        UsageError: See `memory.ready.ready`.
    """
    tasks = takeable(store, caller, wu=wu) if caller is not None else []
    found = listing.ready(store, wu if wu is not None or caller is None else caller.wu_id, **options)
    found.tasks = list(tasks)
    if tasks:
        found.next = [command("gitmem", "task", "take", str(tasks[0].task_id)), *found.next]
    return found
