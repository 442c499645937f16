"""The task that a session had at an earlier moment, by the times of its own takes, releases and results: one clock has written them all."""

from __future__ import annotations

from ..log.lines import format_at
from . import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..order.task import FoldedTask, Sender, TaskEvent

TAKEN_MAX = 32  # tasks that a session may have had at one moment and that are read
# With the tasks that it has by a handoff. What ended before is left out by the state of all lines: forged ones can only hide a task.
_TAKEN = (
    "SELECT coalesce(k.to_id, e.task_id) FROM task_event e JOIN line l ON l.id = e.line"
    " LEFT JOIN task_link k ON k.from_id = e.task_id AND k.kind = 'handoff' JOIN task t ON t.task_id = coalesce(k.to_id, e.task_id)"
    " WHERE e.session = ? AND e.event = 'take' AND l.at <= ? AND e.line NOT IN (SELECT line FROM forged)"
    " AND t.purpose <> 'handoff' AND (t.ended IS NULL OR t.ended >= ?) GROUP BY 1 ORDER BY max(l.at) DESC LIMIT ?"
)


def only_held_at(
    db: sqlite3.Connection,
    sender: Sender,
    first: int,
    last: int,
    most: int = TAKEN_MAX,
    *,
    known: dict[str, FoldedTask | None] | None = None,
) -> str | None:
    """Return the task that a session had during all of a time, if it had no other one in it. Forged lines of this clone do not count.

    Args:
        sender: Identity and session.
        first, last: The time, in microseconds.
        most: The number of tasks that are read; if there may be more, none is certain.
        known: A cache of folded tasks, for the questions about many times: a peer may have made a task large.
    """
    if sender[1] is None:
        return None
    rows = db.execute(_TAKEN, (sender[1], format_at(last), first, most + 1)).fetchall()
    if len(rows) > most:
        return None
    found: dict[str, bool] = {}
    known = {} if known is None else known
    for (task_id,) in rows:
        if task_id not in known:
            known[task_id] = load.load(db, str(task_id), forged=False)
        task = known[task_id]
        for take in task.takes if task is not None else ():
            if task is not None and take.sender == sender and take.at <= last:
                end = _end(task, take)
                if end is None or end >= first:
                    found[str(task_id)] = take.at <= first and (end is None or end > last)
    return next((task_id for task_id, is_sure in found.items() if is_sure), None) if len(found) == 1 else None


def _end(task: FoldedTask, take: TaskEvent) -> int | None:
    """Return until when somebody had a task under a take; None if that goes on."""
    ends = [
        each.at
        for each in task.events.values()
        if each.take == take.id and (each.event == "release" or each.is_terminal) and task.counts(each)
    ]
    ends += [other.at for other in task.takes if other is not take and task.has_seen(other, take)]
    # Others have other clocks: they decide nothing before it was taken.
    decisions = (each for each in (task.seal, task.close) if each is not None)
    ends += [each.at for each in decisions if each.at >= take.at]
    return min(ends, default=None)
