"""Open sessions that were started in this clone, by local files."""

from __future__ import annotations

from . import heartbeats, own_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .presence import Presence


def of_worktree(store: Store) -> list[Presence]:
    """Return the open sessions of this worktree that were seen within 24 hours."""
    return [one for one in _open(store, heartbeats.worktree(store)) if one.is_current]


def candidates(store: Store) -> list[Presence]:
    """Return every session that an unidentified caller could be.

    These are the open sessions of this worktree, however long they have been silent, and the open sessions of other
    worktrees of this clone that were seen within 24 hours.
    """
    here = _open(store, heartbeats.worktree(store))
    ids = {one.session_id for one in here}
    return here + [one for one in _open(store, None) if one.is_current and one.session_id not in ids]


def _open(store: Store, folder: str | None) -> list[Presence]:
    """Return the open sessions of one worktree, or of all."""
    found = []
    for session_id, (where, _) in sorted(heartbeats.known_sessions(store).items()):
        if folder in (None, where):
            one = own_sessions.trusted(store, session_id)
            if one is not None and one.ended is None:
                found.append(one)
    return found
