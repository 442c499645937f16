"""Accept a handoff: its take is also a take of its tasks, its claims move, and a signal tells the giver."""

from __future__ import annotations

from ..agents.delivery import delivery_lock
from ..order.task import HANDOFF
from ..outcome import command
from . import task_records, task_rules, task_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Unpack

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store
    from .claim_work import MovedClaims
    from .handoffs import HandoffContent
    from .task_records import TakeFacts, TaskChange

    Line = tuple[str, bytes]


def take_handoff(
    store: Store, caller: Caller, task_id: str, *, lease: int | None = None, **facts: Unpack[TakeFacts]
) -> TaskChange:
    """Take a task as `task_work.take` does, or extend the time of one that the caller has; of a handoff accept it. Accepting it again returns what it has.

    Args:
        lease: For how long, in microseconds; of a handoff for each of its tasks.
        facts: See `task_work.take`.

    Raises:
        GateError: Somebody else has it. Nothing was written.
        UsageError: It can't be taken. Nothing was written.
        StoreError: It can't be recorded.
    """
    named = task_rules.resolve(store.db(), task_id, writing=True)
    record = task_rules.record_of(store.db(), named)
    if record is None or record["purpose"] != HANDOFF:
        found = task_work.take(store, caller, named, lease=lease, **facts)
        return found if found.recorded else task_work.renew(store, caller, named)
    return _accept(store, caller, named, lease, facts)


def _accept(store: Store, caller: Caller, named: str, lease: int | None, facts: TakeFacts) -> TaskChange:
    from . import claim_work, handoffs  # takes of other tasks do without them

    task = task_rules.require(store, named, writing=True)
    sender = task_work.sender_of(caller)
    mine = next((each for each in task.takes if each.sender == sender), None)
    if mine is not None:
        found = task_work.unchanged(task, mine)
        found.handoff = given = handoffs.given_to(store, task, mine.id)
        found.next = _next_steps(given, named)
        found.warnings = ["You have accepted this handoff already. Nothing was written."]
        return found
    moved: list[MovedClaims] = []

    def beside(handoff: FoldedTask, take_id: str) -> Sequence[Line]:
        given = handoffs.first(handoff.record.get("handoff_claims"))
        moved.append(claim_work.move_claims(store, caller, handoff.caller, given, named))
        done: Any = {"take": take_id, "state": "completed", "message": "Accepted."}
        _, end = task_records.event_line(store, caller, handoff, "status", done, more_seen=[take_id])
        return [end, *moved[0].lines]

    with delivery_lock(store, claim_work.LOCK, wait_seconds=claim_work.LOCK_WAIT_SECONDS):
        found = task_work.take(store, caller, named, lease=lease, beside=beside, **facts)
    found.handoff = given = handoffs.given_to(store, task, found.event_id, moved[0])
    found.next = _next_steps(given, named)
    return found


def _next_steps(given: HandoffContent, handoff_id: str) -> list[str]:
    """Return the commands that show what a taker has now."""
    found = [*(each.next[0] for each in given.threads[:2]), command("gitmem", "task", "show", handoff_id)]
    if given.tasks:
        found.insert(0, command("gitmem", "task", "show", given.tasks[0].task_id))
    return found
