"""Renew the claims of a session that shows life, and tell it about contested claims: at its own commands and hooks."""

from __future__ import annotations

from ..agents import delivery
from ..log.lines import CommitMessage, format_at
from ..order import claim
from . import claim_work, local_state, standing_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..store import Store


def renew_due(store: Store, caller: Caller) -> int:
    """Renew the caller's claims of which half the lease is over, for the same time. It waits for the next commit.

    Returns:
        The number of renewed claims.

    Raises:
        StoreError: It can't be recorded.
    """
    now = store.now()
    own = (caller.reader, caller.session_id)
    lines = []
    for each in standing_claims.standing(store, forged=False):
        folded = each.claim
        if folded.owner != own or each.is_over or (folded.renewed + folded.until) // 2 > now:
            continue
        lease = min(folded.until - folded.renewed, claim.LEASE_MAX_MICROS)
        lines.append(claim_work.renewal(store, each, format_at(now + lease)))
    if lines:
        message = CommitMessage(
            caller.author, f"{caller.name or caller.reader} renews claims", "", caller.trailers()
        )
        store.record(lines, message, deferred=True)
    return len(lines)


def at_command(store: Store, caller: Caller) -> list[str]:
    """Do at a session's command or hook what is due: renew its claims, and return what it has to be told. Never raises."""
    state, session = store.repo.state, caller.session_id or ""
    try:
        if delivery.renews(state, session, store.now()):
            local_state.postpone(store, session)
            renew_due(store, caller)
            local_state.update(store)
        return delivery.take_notices(state, session)
    except Exception:
        return []
