"""Accept a handoff: its take is also a take of its tasks, its claims move, and a signal tells the giver."""

from __future__ import annotations

from ..claims import claim_work, moved_claims
from ..commit_message import sanitize
from ..errors import UsageError
from ..mailbox.delivery_lock import delivery_lock
from ..tasks import HANDOFF, append, find_task, load, task_work
from ..text.shell_quote import command
from . import content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Unpack

    from ..agents.caller import Caller
    from ..claims.moved_claims import MovedClaims
    from ..store import Store
    from ..tasks.append import TakeFacts, TaskChange
    from ..tasks.fold import FoldedTask

    Line = tuple[str, bytes]

_FORGED = "SELECT 1 FROM task t JOIN forged f ON f.line = t.line WHERE t.task_id = ?"


def take(
    store: Store, caller: Caller, task_id: str, *, lease: int | None = None, **facts: Unpack[TakeFacts]
) -> TaskChange:
    """Take a task as `task_work.take` does; of a handoff that accepts it. Accepting it again returns what it has.

    Args:
        lease: For how long, in microseconds; of a handoff for each of its tasks.
        facts: See `task_work.take`.

    Raises:
        GateError: Somebody else has it. Nothing was written.
        UsageError: It can't be taken; `forged-handoff`. Nothing was written.
        StoreError: It can't be recorded.
    """
    named = find_task.resolve(store.db(), task_id, writing=True)
    if not _is_handoff(store, named):
        return task_work.take(store, caller, named, lease=lease, **facts)
    task = find_task.require(store, named, writing=True)
    sender = task_work.sender_of(caller)
    mine = next((each for each in task.takes if each.sender == sender), None)
    if mine is not None:
        found = task_work.unchanged(task, mine)
        found.handoff = _content(store, task, None, mine.id)
        found.warnings = ["You have accepted this handoff already. Nothing was written."]
        return found
    moved: list[MovedClaims] = []

    def beside(handoff: FoldedTask, take_id: str) -> Sequence[Line]:
        moved.append(
            moved_claims.move(
                store, caller, handoff.caller, content.first(handoff.record.get("handoff_claims")), named
            )
        )
        done: Any = {"take": take_id, "state": "completed", "message": "Accepted."}
        _, end = append.event_line(store, caller, handoff, "status", done, more_seen=[take_id])
        return [end, *moved[0].lines]

    with delivery_lock(store, claim_work.LOCK, wait_seconds=claim_work.LOCK_WAIT_SECONDS):
        found = task_work.take(store, caller, named, lease=lease, beside=beside, **facts)
    found.handoff = given = _content(store, task, moved[0], found.event_id)
    found.next = [*(each.next[0] for each in given.threads[:2]), command("gitmem", "task", "show", named)]
    if given.tasks:
        found.next.insert(0, command("gitmem", "task", "show", given.tasks[0].task_id))
    return found


def _is_handoff(store: Store, task_id: str) -> bool:
    """Return whether a task is a handoff.

    Raises:
        UsageError: `forged-handoff`: it claims to be from this clone, and was not written here.
    """
    record = find_task.record_of(store.db(), task_id)
    if record is None or record["purpose"] != HANDOFF:
        return False
    if store.db().execute(_FORGED, (task_id,)).fetchone() is not None:
        who = sanitize(record.get("sender_name") or record["sender_identity"])
        raise UsageError(
            f"FORGED: {task_id} claims to be from {who} of this clone but was not written here. Nothing was written.",
            hint="`gitmem doctor` lists forged records.",
            code="forged-handoff",
            next=["gitmem doctor"],
        )
    return True


def _content(
    store: Store, handoff: FoldedTask, moved: MovedClaims | None, take_id: str
) -> content.HandoffContent:
    """Return what the taker has now; what it does not get is left out, with the reason."""
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
    return found


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
