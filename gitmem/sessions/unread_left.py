"""Unread signals that a session leaves behind: at its end, or when it becomes another agent."""

from __future__ import annotations

from ..agents import own_recipients
from ..errors import UsageError
from ..mailbox import mailbox_view
from ..text.sanitize import sanitize
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.presence import Presence
    from ..store import Store


def at_end(store: Store, found: Presence) -> str | None:
    """Return a sentence about what a session has not read as it ends, and who reads it; None if all is read."""
    unread, asked = _counts(store, found)
    if not unread:
        return None
    if found.agent_identity is not None:
        later = f"The next session of {sanitize(found.agent_identity)} reads {_them(unread)}."
    elif found.harness_session is not None:
        later = f"Its client's conversation reads {_them(unread)} if it is resumed."
    else:
        later = (
            f"No later session reads {_them(unread)}: {command('gitmem', 'inbox', '--for', found.session_id)}"
        )
    return f"{_number(unread, asked)}. {later}"


def in_words(store: Store, found: Presence) -> str:
    """Return how much a session has not read, for the end of a clause; "" if it has read all."""
    unread, asked = _counts(store, found)
    return f", and has {_number(unread, asked)}" if unread else ""


def at_new_identity(store: Store, found: Presence, identity: str | None) -> str | None:
    """Return a sentence about the agent that a session was before a change; None if it stays the same agent.

    Args:
        store: The open store.
        found: The session before the change.
        identity: Its new agent identity; None for the present one.

    Raises:
        UsageError: `unread-mail`: only this session would have shown signals to its present identity.
    """
    own = found.agent_identity
    if not identity or own is None or identity == own:
        return None
    was = f"{sanitize(found.name)} ({sanitize(own)})"
    others = [one for one in own_recipients.of_identity(store, own) if one.session_id != found.session_id]
    waiting = mailbox_view.unread_ids(
        store.db(), own, found.session_id, found.record.get("workspace_id"), store.now(), directed=True
    )
    unread = len({signal_id for address, signal_id in waiting if address == own})
    if unread and all(one.ended is not None for one in others):
        raise UsageError(
            f"This session is {was} and has {_number(unread, 0)}: as {sanitize(identity)} it would not show {_them(unread)}. "
            "Nothing was written.",
            hint=f"Read {_them(unread)} first. A subagent works in the session as it is, under its identity.",
            code="unread-mail",
            next=["gitmem inbox"],
        )
    back = command("gitmem", "session", "set", "--agent-identity", own, "--name", found.asked)
    return f"This session was {was}. If that is a mistake: {back}"


def _counts(store: Store, found: Presence) -> tuple[int, int]:
    who = (found.reader, found.session_id, found.record.get("workspace_id"))
    # Broadcasts since its end are not its own.
    return store.domain.unread_counts(store, *who, directed=found.ended is not None)


def _number(unread: int, asked: int) -> str:
    wants = f" ({asked} {'wants' if asked == 1 else 'want'} an answer)" if asked else ""
    return f"{unread} unread{wants}"


def _them(unread: int) -> str:
    return "it" if unread == 1 else "them"
