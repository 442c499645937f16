"""Signals, decisions and inboxes of a session that acts under another identity than its own, with `--as`."""

from __future__ import annotations

from ..agents import caller as callers
from ..agents.caller import CallerClaims
from ..errors import UsageError
from ..text.sanitize import sanitize
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..store import Store


def recorded_by(store: Store, caller: Caller, intent: str, *, may: bool) -> str | None:
    """Return the session that records a signal in the caller's name, or None if the caller records it itself.

    Args:
        may: Whether it may record one of this intent: it is no decision, or a person insists.

    Raises:
        UsageError: `another-identity` if it may not.
    """
    if caller.who is None:
        return None
    found = _session(store, caller, caller.who)
    known = found is not None and found.session_id  # a session that has ended is known by the variable alone
    own = known or caller.who.session
    if own is None or own in _ids(store, caller):
        return None
    if may:
        return own
    raise UsageError(
        f"--as {sanitize(str(caller.who.as_))}: you are {_described(found, own)} and cannot record another agent's {intent}. "
        "Nothing was written.",
        hint=f"{_way_out(found, caller)}Each recipient records its own decision. If a person wants this one recorded, "
        "--insist records it with your session in `via`; it has no effect in threads where you have proposed, in this session "
        "or an earlier one.",
        code="another-identity",
        next=["gitmem roster"],
    )


def peek_reason(store: Store, caller: Caller) -> str | None:
    """Return why reading another's mailbox marks nothing, or None if the caller reads its own."""
    if caller.who is None:
        return None
    own = _session(store, caller, caller.who)
    if own is None or own.raw or not own.session_id or own.session_id in _ids(store, caller):
        return None
    return (
        f"Inbox of {sanitize(caller.name or caller.reader)}; you are "
        f"{sanitize(own.name or own.session_id)}. Nothing is marked as delivered. {_way_out(own, caller)}".rstrip()
    )


def _session(store: Store, caller: Caller, who: CallerClaims) -> Caller | None:
    """Return whom the command would act as without `--as`; None for a person, and if that is unclear.

    Without a variable it is the only session of this worktree. Where several are at work, `--as` alone determines the
    caller, and so it does if it names the user, or if a program chose it: a script may act for several agents in turn.
    """
    if who.session is not None or who.client_session is not None:
        claims = CallerClaims(
            session=who.session, client_session=who.client_session, other_clients=who.other_clients
        )
        return callers.find(store, claims, must=False)
    if who.is_program or caller.is_person or (who.terminal and who.client is None):
        return None
    return callers.only_session(store, who)


def _described(found: Caller | None, own: str) -> str:
    if found is None or not found.name:
        return sanitize(own)
    where = ", the only session of this worktree," if found.source == "worktree" else ""
    return f"{found.name} ({own}){where}"


def _way_out(found: Caller | None, caller: Caller) -> str:
    """Return a sentence for a caller that is not the only session of its worktree, or nothing."""
    if found is None or found.source != "worktree":
        return ""
    if caller.session_id is None:
        return "If you are not that session, start your own: gitmem session start. "
    return f"If you are {sanitize(caller.name or caller.reader)}: {command('export', f'GITMEM_SESSION={caller.session_id}')}. "


def _ids(store: Store, caller: Caller) -> list[str]:
    """Return the names of the caller and the ids of the sessions with its identity."""
    from ..agents import presence

    found = [one.session_id for one in presence.of_identity(store, caller.reader)]
    by_client = presence.of_published_client(store, caller.reader)
    return [*caller.ids, *found, *([by_client.session_id] if by_client is not None else [])]
