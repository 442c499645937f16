"""Signals, decisions and inboxes of a session that acts under another identity than its own, with `--as`."""

from __future__ import annotations

from ..agents import caller as callers
from ..agents.caller import CallerClaims
from ..errors import UsageError
from ..text.sanitize import sanitize
from . import DECISIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..store import Store


def recorded_by(store: Store, caller: Caller, intent: str, *, insist: bool) -> str | None:
    """Return the session that records a signal in the caller's name, or None if the caller records it itself.

    Args:
        insist: Whether to record a decision in spite of the other identity, at a person's request.

    Raises:
        UsageError: `another-identity` for a decision without `insist`.
    """
    if caller.who is None:
        return None
    own, name = _own(store, caller.who)
    if own is None or own in _ids(store, caller):
        return None
    if insist or intent not in DECISIONS:
        return own
    raise UsageError(
        f"--as {sanitize(str(caller.who.as_))}: you are {name} and cannot record another agent's {intent}. "
        "Nothing was written.",
        hint="Each recipient records its own decision. If a person wants this one recorded, --insist records it with your session in "
        "`via`; it has no effect in threads where you have proposed, in this session or an earlier one.",
        code="another-identity",
        next=["gitmem whoami", "gitmem roster"],
    )


def peek_reason(store: Store, caller: Caller) -> str | None:
    """Return why reading another's mailbox marks nothing, or None if the caller reads its own."""
    if caller.who is None:
        return None
    own = _session(store, caller.who)
    if own is None or own.raw or not own.session_id or own.session_id in _ids(store, caller):
        return None
    return (
        f"Inbox of {sanitize(caller.name or caller.reader)}; you are "
        f"{sanitize(own.name or own.session_id)}. Nothing is marked as delivered."
    )


def _session(store: Store, who: CallerClaims) -> Caller | None:
    if who.session is None and who.client_session is None:
        return None
    return callers.find(
        store, CallerClaims(session=who.session, client_session=who.client_session), must=False
    )


def _own(store: Store, who: CallerClaims) -> tuple[str | None, str]:
    """Return the session that the environment names, or None, and its name.

    Without a variable, `--as` alone determines the caller: a script may act for several agents in turn.
    """
    if who.session is None and who.client_session is None:
        return None, ""
    own = _session(store, who)
    if own is None or not own.session_id:  # such as a session that has ended
        return who.session, sanitize(who.session or "")
    return own.session_id, f"{own.name} ({own.session_id})" if own.name else own.session_id


def _ids(store: Store, caller: Caller) -> list[str]:
    """Return the names of the caller and the ids of the sessions with its identity."""
    from ..agents import presence

    found = [one.session_id for one in presence.of_identity(store, caller.reader)]
    by_client = presence.of_published_client(store, caller.reader)
    return [*caller.ids, *found, *([by_client.session_id] if by_client is not None else [])]
