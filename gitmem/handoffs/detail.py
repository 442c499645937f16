"""Show a handoff with what it has: before it is accepted what the giver still has of it, then what its taker got."""

from __future__ import annotations

from ..claims import claim_view, moved_claims
from ..order.task import HANDOFF
from ..tasks import find_task, give_up, load, task_list
from . import content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..claims.moved_claims import MovedClaims
    from ..order.task import FoldedTask
    from ..store import Store
    from ..tasks.task_list import TaskDetail

NOTHING_LEFT = "The giver has none of these tasks and claims any more."


def show(store: Store, task_id: str, caller: Caller | None = None) -> TaskDetail:
    """Return a task as `task_list.show` does, after the caller's session has given up what it has to; of a handoff also what it has.

    Raises:
        UsageError: No task, or several tasks, have this id.
    """
    if caller is not None:
        give_up.look(store, caller)
    task = find_task.require(store, task_id)
    found = task_list.show(store, task.record["task_id"], caller)
    if not task.is_finished and give_up.is_fenced(store, task):
        found.warnings.append(give_up.BEGUN)
    if task.record["purpose"] != HANDOFF:
        return found
    if task.takes:
        found.handoff = given_to(store, task, task.takes[0].id)
    elif not task.is_finished:
        found.handoff = content.of(store, task.record, task.caller)
        if content.is_gone(store, task.record):
            found.warnings.append(NOTHING_LEFT)
    return found


def given_to(
    store: Store, handoff: FoldedTask, take_id: str, moved: MovedClaims | None = None
) -> content.HandoffContent:
    """Return what the taker of a handoff has; what it did not get is left out, with the reason.

    Args:
        take_id: The take with which it accepted.
        moved: The claims that move with it; by default they have moved before.
    """
    found = content.of(store, handoff.record)
    got = []
    cache: dict[str, FoldedTask | None] = {}
    for each in found.tasks:
        task = load.load(store.db(), each.task_id, handoffs=cache)
        if task is not None and any(held.id == take_id for held in task.held):
            got.append(each)
        else:
            found.leave_out(each.task_id, _why_not_taken(task, each.take, handoff))
    found.tasks = got
    if moved is not None:
        found.claims = [
            content.HandedClaim(new, paths, until, mode) for _, new, paths, until, mode in moved.moved
        ]
        for id, why in moved.kept:
            if not any(each.id == id for each in found.left_out):
                found.leave_out(id, why)
    else:
        _keep_moved(store, handoff, found)
    return found


def _keep_moved(store: Store, handoff: FoldedTask, found: content.HandoffContent) -> None:
    """Leave out the claims that the acceptance of a handoff did not release."""
    reason = moved_claims.reason_of(handoff.record["task_id"])
    kept = []
    for each in found.claims:
        claim = claim_view.folded(store.db(), each.claim_id)
        if claim is not None and claim.released is not None and claim.released.get("reason") == reason:
            kept.append(each)
        else:
            found.leave_out(each.claim_id, "did not move")
    found.claims = kept


def _why_not_taken(task: FoldedTask | None, given: str, handoff: FoldedTask) -> str:
    """Return why the acceptance of a handoff is not a take of one of its tasks."""
    if task is None:
        return content.MISSING
    if task.is_finished:
        return f"is finished: {task.state}"
    take = task.events.get(given)
    if take is None or take.event != "take" or take.sender != handoff.caller:
        return "was not taken by the giver"
    return "is somebody else's now"
