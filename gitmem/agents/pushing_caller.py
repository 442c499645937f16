"""The callers that may be pushing, for git's pre-push hook."""

from __future__ import annotations

from ..errors import UsageError
from . import caller, caller_identity, local_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .caller_identity import Caller, CallerClaims


def pushing(store: Store, who: CallerClaims) -> list[Caller]:
    """Return who may be pushing: the caller that `who` names, else every session of this worktree in 24 hours.

    Git gives its hook no terminal. If this worktree has no session, the person pushes. Return nobody if no caller of
    this clone can be addressed.
    """
    try:
        try:
            found = caller.find(store, who)
            return [found] if found else []
        except UsageError as error:
            if error.code != "which-session":
                raise
        here = [caller_identity.of_session(each, "worktree") for each in local_sessions.of_worktree(store)]
        return here or [caller_identity.person(store, "nobody")]
    except UsageError as error:
        if error.code != "no-person":
            raise
        return []
