"""Whose hook this is: the session of ours that belongs to the client's."""

from __future__ import annotations

from gitmem.agents import own_sessions
from gitmem.operations import caller as callers
from gitmem.operations.hooks.events import FORGETFUL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.caller import Caller
    from gitmem.operations.presence import Presence

    from ..surroundings import Surroundings
    from .given import Given


def caller(at: Surroundings, call: Given) -> Caller | None:
    """Who reads here, or None for a client's session that has none of ours."""
    found = session(at, call)
    return callers.of_session(found, "harness") if found is not None else None


def session(at: Surroundings, call: Given) -> Presence | None:
    """The session that was started under the client's id; else one that the user has named.

    An agent that starts another agent hands GITMEM_SESSION on: what belongs to one client's session is never
    another's, so it counts only where no client has started it.
    """
    found = own_sessions.of_client(at.store(), call.session) if call.session else None
    return found or named(at, call)


def named(at: Surroundings, call: Given) -> Presence | None:
    """The session in GITMEM_SESSION, if it has not ended and is no client's."""
    if not at.session or call.client in FORGETFUL:
        return None
    found = own_sessions.trusted(at.store(), at.session)
    if found is None or found.ended is not None or found.harness_session is not None:
        return None
    return found
