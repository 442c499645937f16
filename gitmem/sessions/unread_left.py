"""Unread signals that a session leaves behind: at its end."""

from __future__ import annotations

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


def _counts(store: Store, found: Presence) -> tuple[int, int]:
    return mailbox_view.unread_counts(
        store.db(), found.reader, found.session_id, found.record.get("workspace_id"), store.now()
    )


def _number(unread: int, asked: int) -> str:
    wants = f" ({asked} {'wants' if asked == 1 else 'want'} an answer)" if asked else ""
    return f"{unread} unread{wants}"


def _them(unread: int) -> str:
    return "it" if unread == 1 else "them"
