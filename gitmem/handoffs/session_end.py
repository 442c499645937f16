"""End a session that may leave open work behind."""

from __future__ import annotations

from ..agents import mailbox
from ..claims import standing_claims
from ..memory import checkpoints, live_pieces
from . import handoff_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionEnded
    from ..store import Store

_HELD = "SELECT count(*) FROM task WHERE holder = ? AND holder_session IS ? AND decided_by IS NULL"


def end_session(
    store: Store,
    caller: Caller,
    *,
    summary: str | None = None,
    done: bool = False,
    reason: str | None = None,
    allow_secret: bool = False,
) -> SessionEnded:
    """End the caller's session as `checkpoints.end_session` does, and say what it leaves without a successor.

    Raises:
        GateError, UsageError, StoreError: See there.
    """
    left = _left(store, caller)
    ended = checkpoints.end_session(
        store, caller, summary=summary, done=done, reason=reason, allow_secret=allow_secret
    )
    ended.add_remark(left)
    return ended


def _left(store: Store, caller: Caller) -> str | None:
    """Return a sentence about the session's tasks, its claims, and what it has read and not answered; None without any."""
    db, own = store.db(), (caller.reader, caller.session_id)
    (tasks,) = db.execute(_HELD, own).fetchone()
    claims = sum(each.claim.owner == own for each in standing_claims.standing(store, forged=False))
    unread = {id for _, id in db.execute(*mailbox.directed_to(db, *own, caller.workspace, unread=True))}
    read = [each for each in live_pieces.find_open_threads(store, caller) if each.signal_id not in unread]
    asked = sum(not each.record.get("task_id") for each in read)  # else the task says it
    left = (("Left open", tasks, "task"), ("Unanswered", asked, "signal"), ("Ended with it", claims, "claim"))
    parts = [f"{what}: {count} {word}{'' if count == 1 else 's'}." for what, count, word in left if count]
    if not parts:
        return None
    waiting = [
        each
        for each in handoff_list.of_caller(store, caller).given
        if each.status == handoff_list.WAITING and each.giver_session == caller.session_id
    ]
    advice = "Before a session ends, `gitmem handoff --to NAME` gives them to another agent."
    if waiting:
        also = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        until = ": until then others may claim its paths." if any(one.claims for one in waiting) else " yet."
        advice = f"{waiting[0].task_id}{also} is not accepted{until}"
    return f"{' '.join(parts)} {advice}"
