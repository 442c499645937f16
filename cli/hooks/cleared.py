"""Sessions whose context was cleared: the client goes on under a new id in a moment, and so does the agent.

A file `<state>/cleared/<session>` has the client, the worktree, and the window if the client names it by a variable.
"""

from __future__ import annotations

import os

from gitmem import atomic_write, state_files
from gitmem.agents import heartbeats, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.agents.presence import Presence
    from gitmem.store import Store

FOLDER = "cleared"
MICROS = 60 * 1_000_000  # a client says that a session goes on right after it has said that it was cleared


def leave(store: Store, session_id: str, client: str, window: str | None) -> bool:
    """Note that a session goes on under an id that is not known yet; return whether that could be written."""
    content = "\0".join((str(store.now()), client, store.repo.tree, window or ""))
    path = os.path.join(store.repo.state, FOLDER, session_id)
    return atomic_write.try_replace(path, os.fsencode(content), folders=True)


def take(store: Store, client: str, window: str | None) -> tuple[Presence | None, list[Presence]]:
    """Return the session that goes on now, once, and those that nobody will go on as.

    If it could be one of several, it is none: nobody gets another agent's messages. Their offers say what waits.
    """
    folder = os.path.join(store.repo.state, FOLDER)
    found: list[tuple[bool, str]] = []
    over: list[str] = []
    for name in filter(heartbeats.is_safe, atomic_write.names_in(folder)):
        at, *rest = os.fsdecode(state_files.read(os.path.join(folder, name), 4096)).split("\0")
        if not at.isdecimal() or int(at) < store.now() - MICROS:
            over.append(name)
        elif rest[:2] == [client, store.repo.tree] and not (window and rest[2:] not in ([""], [window])):
            found.append((rest[2:] == [window], name))
    exact = [name for is_exact, name in found if is_exact] or [name for _, name in found]
    over += exact if len(exact) > 1 else []
    own = {name: presence.trusted(store, name) for name in (*over, *exact) if _remove(folder, name)}
    still = {name: one for name, one in own.items() if one is not None and one.ended is None}
    return still.get(exact[0]) if len(exact) == 1 else None, [still[name] for name in over if name in still]


def _remove(folder: str, name: str) -> bool:
    """Remove the file of a session; whoever does has the session."""
    try:
        state_files.refuse_link(folder)
        os.unlink(os.path.join(folder, name))
    except OSError:
        return False
    return True
