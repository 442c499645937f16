"""A decision under another identity than that of the session which records it."""

from __future__ import annotations

from ..errors import UsageError
from ..operations import caller as callers
from ..operations.caller import Who
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operations.caller import Caller
    from ..operations.store import Store

DECISIONS = ("AGREE", "REJECT", "COUNTER")


def recorded_by(store: Store, caller: Caller, intent: str, *, insist: bool) -> str | None:
    """Return the session that records a decision in the caller's name, or None where the caller records it itself.

    Args:
        insist: Whether a person wants it recorded all the same.

    Raises: UsageError `another-identity` without `insist`.
    """
    if caller.who is None or intent not in DECISIONS:
        return None
    own, name = _own(store, caller.who)
    if own is None or own in _ids(store, caller):
        return None
    if insist:
        return own
    raise UsageError(
        f"--as {sanitize(str(caller.who.as_))}: you are {name}, and can't record the {intent} of another; "
        "nothing was written.",
        hint="Whoever was asked decides itself. Where a person wants it recorded, --insist does so with your session in "
        "`via`; it decides nothing where that session has proposed.",
        code="another-identity",
        next=["gitmem whoami", "gitmem roster"],
    )


def _own(store: Store, who: Who) -> tuple[str | None, str]:
    """Return the session that the environment names, and what it is called; None where it names none.

    Without a variable `--as` alone says who acts: a script may speak for several agents in turn.
    """
    if who.session is None and who.harness is None:
        return None, ""
    own = callers.find(store, Who(session=who.session, harness=who.harness), must=False)
    if own is None or not own.session_id:  # a session that has ended, say
        return who.session, sanitize(who.session or "")
    return own.session_id, f"{own.name} ({own.session_id})" if own.name else own.session_id


def _ids(store: Store, caller: Caller) -> list[str]:
    """Return the sessions that act under the caller's identity."""
    from ..operations import presence

    found = [one.session_id for one in presence.of_identity(store, caller.reader)]
    by_client = presence.of_published_client(store, caller.reader)
    return [*caller.ids, *found, *([by_client.session_id] if by_client is not None else [])]
