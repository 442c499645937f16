"""End a session that may leave open work behind."""

from __future__ import annotations

from ..claims import standing_claims
from ..memory import checkpoint_gate
from . import handoff_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..sessions.session_result import SessionEnded
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
    """End the caller's session as `checkpoint_gate.end_session` does, and say what it leaves without a successor.

    Raises:
        GateError, UsageError, StoreError: See there.
    """
    left = _left(store, caller)
    ended = checkpoint_gate.end_session(
        store, caller, summary=summary, done=done, reason=reason, allow_secret=allow_secret
    )
    ended.add_remark(left)
    return ended


def _left(store: Store, caller: Caller) -> str | None:
    """Return a sentence about the tasks that the session has taken and about its claims; None without any."""
    own = (caller.reader, caller.session_id)
    (tasks,) = store.db().execute(_HELD, own).fetchone()
    known = standing_claims.standing(store, forged=False)
    claims = sum(each.claim.owner == own for each in known)
    counts = (("Left open", tasks, "task"), ("Ended with it", claims, "claim"))
    parts = [f"{what}: {count} {word}{'' if count == 1 else 's'}." for what, count, word in counts if count]
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
        until = (
            ": until then others may claim its paths." if any(each.claims for each in waiting) else " yet."
        )
        advice = f"{waiting[0].task_id}{also} is not accepted{until}"
    return f"{' '.join(parts)} {advice}"
