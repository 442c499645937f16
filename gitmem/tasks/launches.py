"""Launches of a task's workers, as receipts: what was asked for, what came, and the number of the attempt.

A launch is an event of the task. Its id is the stable name of the attempt; its number is its place among the launches of the initiative
(without one, of the task) and may rise while launches of other clones arrive.
"""

from __future__ import annotations

from ..agents import descriptors
from ..order.causal import by_line
from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..order.task import FoldedTask, TaskEvent

SHOWN_MAX = 20  # launches of a task that an answer has: the last ones
_NUMBERS = (
    "SELECT event_id, number FROM (SELECT a.task_id, a.event_id, row_number() OVER (ORDER BY a.at, a.task_id, a.event_id) AS number"
    " FROM task t JOIN task_launch a ON a.task_id = t.task_id WHERE {group}) WHERE task_id = :task"
)


class LaunchReceipt(Outcome):
    """What was asked of a worker that was started for a task, and what it is.

    Attributes:
        launch: The event: the stable name of the attempt.
        attempt: The label that its launcher gave the attempt.
        attempt_number: Its place among the launches of the initiative, or of a task without one.
        actual_role: The role of the taker; before a take that of the launched worker, if its launcher knows it.
        role_mismatch: Whether it differs from the requested one; None if one of them is not known.
        client: As the launcher said, else the taker; so are `branch` and `worktree`.
        take: The take that followed.
        last_actual_role: Of a relaunch: the role of the last worker before it.
        relaunch_reason: Why it was launched again.
    """

    def __init__(self, task: FoldedTask, launch: TaskEvent, take: TaskEvent | None) -> None:
        asked, said = task.record, launch.record
        came: Mapping[str, Any] = take.record if take is not None else {}
        self.task_id = asked["task_id"]
        self.launch = launch.id
        self.attempt = said.get("attempt")
        self.attempt_number: int | None = None
        self.initiative_id = asked.get("initiative_id")
        self.wave = said.get("wave")
        self.wu_id = asked.get("wu_id")
        self.lane = said.get("lane") or asked.get("lane")
        self.claimed_mode = said.get("claimed_mode")
        self.client = said.get("client") or came.get("client")
        self.requested_model = said.get("requested_model") or asked.get("requested_model")
        self.branch = said.get("branch") or came.get("branch")
        self.worktree = said.get("worktree") or came.get("worktree")
        self.handoff_path = said.get("handoff_path")
        self.requested_role = asked.get("requested_role") or None
        self.actual_role = came.get("actual_role") or said.get("actual_role") or None
        self.requested_ownership_scope = asked.get("requested_ownership_scope") or None
        self.actual_ownership_scope = (
            came.get("actual_ownership_scope") or said.get("actual_ownership_scope") or None
        )
        compared = descriptors.compare(
            self.requested_role,
            self.actual_role,
            descriptors.read_scope(self.requested_ownership_scope),
            descriptors.read_scope(self.actual_ownership_scope),
        )
        self.role_mismatch = compared.role_mismatch
        self.scope_mismatch = compared.scope_mismatch
        self.take = take.id if take is not None else None
        self.relaunch_of = said.get("relaunch_of")
        self.relaunch_reason = said.get("reason")
        self.last_actual_role = _role_before(task, launch) if self.relaunch_reason else None
        self.launched_by = said.get("sender_name") or launch.sender[0]
        self.launched_at = said["at"]


def receipts(db: sqlite3.Connection, task: FoldedTask) -> list[LaunchReceipt]:
    """Return the receipts of the last launches of a task, in their order."""
    every = of_task(task)
    found = [LaunchReceipt(task, launch, take_after(task, launch, every)) for launch in every[-SHOWN_MAX:]]
    known = numbers(db, task)
    for each in found:
        each.attempt_number = known.get(each.launch)
    return found


def of_task(task: FoldedTask) -> Sequence[TaskEvent]:
    """Return the launches of a task in their order."""
    return by_line(each for each in task.events.values() if each.event == "launch")


def numbers(db: sqlite3.Connection, task: FoldedTask) -> dict[str, int]:
    """Return the number of the attempt that each launch of a task is."""
    values = {"task": task.record["task_id"], "initiative": task.record.get("initiative_id")}
    group = "t.initiative_id = :initiative" if values["initiative"] else "t.task_id = :task"
    return dict(db.execute(_NUMBERS.format(group=group), values).fetchall())


def last_role(task: FoldedTask, among: Iterable[TaskEvent]) -> Mapping[str, Any] | None:
    """Return the role of the last of these takes and launches whose role is known."""
    found = [each for each in by_line(among) if each.record.get("actual_role")]
    return found[-1].record["actual_role"] if found else None


def _role_before(task: FoldedTask, launch: TaskEvent) -> Mapping[str, Any] | None:
    """Return the role of the last worker that a launcher knew of."""
    workers = [*task.takes, *of_task(task)]
    return last_role(task, (each for each in workers if task.has_seen(launch, each)))


def take_after(task: FoldedTask, launch: TaskEvent, every: Sequence[TaskEvent]) -> TaskEvent | None:
    """Return the last take that names a launch, else the last one whose taker had seen it and no later launch."""
    named = [each for each in task.takes if each.record.get("launch") == launch.id]
    if named:
        return named[-1]
    later = [each for each in every if task.has_seen(each, launch)]
    for take in reversed(task.takes):
        is_after = take.record.get("launch") is None and task.has_seen(take, launch)
        if is_after and not any(task.has_seen(take, each) for each in later):
            return take
    return None
