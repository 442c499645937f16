"""Sessions of other clones to which lines of the log give different agent identities.

Anybody who may push can write a line that gives such a session another identity, and this clone can't tell which line is
genuine. Mail for the session goes to its id then: whoever it is, its session reads that.
"""

from __future__ import annotations

from ..errors import UsageError
from ..text.sanitize import sanitize
from . import authenticity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operations.presence import Presence
    from ..operations.store import Store

_IDENTITIES = (
    "SELECT DISTINCT coalesce(agent_identity, '') FROM session_event"
    " WHERE session_id = ? AND (agent_identity IS NOT NULL OR event = 'start') LIMIT 2"
)


def warning(store: Store, session: Presence) -> str | None:
    """Return why mail for a session goes to its id and not to its identity, or None where it goes to the identity."""
    if session.agent_identity is None or authenticity.is_own(store.db(), session.session_id):
        return None
    if len(store.db().execute(_IDENTITIES, (session.session_id,)).fetchall()) < 2:
        return None
    return (
        f"The identity of {session.session_id} was changed: it is {sanitize(session.agent_identity)} now. The session "
        "itself gets this, by its id; one that you trust gets it by --to with that identity."
    )


def refuse(store: Store, name: str, identity: str, holder: Presence, code: str) -> None:
    """Raise UsageError where the session of another clone that a name means here has another identity by now.

    Args:
        name: The name as it was typed.
        identity: The identity that the name was noted with, "" for none: then it means the session.
        holder: Whom the note names.
        code: The code of the error.
    """
    if (
        not identity
        or identity == holder.agent_identity
        or authenticity.is_own(store.db(), holder.session_id)
    ):
        return
    shown = sanitize(name)[:80]
    raise UsageError(
        f"{shown} meant {sanitize(identity)} here, and its session {holder.session_id} is "
        f"{sanitize(holder.reader)} now; nothing was written.",
        hint="Whoever may push can write such a change. Ask the one that you mean, and use the identity, or the id of "
        "the session.",
        code=code,
        suggestions=[holder.session_id, sanitize(identity), sanitize(holder.reader)],
        next=["gitmem roster --all"],
    )
