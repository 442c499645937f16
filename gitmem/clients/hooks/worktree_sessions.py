"""The sessions that hooks have started in a worktree, for clients whose hooks don't get the id of their session.

`<state>/here/<client>` is for the main worktree, `<state>/here/<client>-<name>` for a linked one, with one id a line.
The hook script reads it to select the flags to check.
"""

from __future__ import annotations

import os

from ... import atomic_write, shared_mode
from ...agents import heartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store

HERE = "here"
SEEN_MICROS = 24 * 3600 * 1_000_000  # without a heartbeat for longer, a session has died without its end hook


def path(store: Store, client: str) -> str:
    """Return the file of this worktree, as the script names it."""
    place = store.place
    name = client if place.git_dir == place.common else f"{client}-{os.path.basename(place.git_dir)}"
    return os.path.join(place.state, HERE, name)


def add(store: Store, client: str, session_id: str) -> None:
    """Note that a session is active in this worktree, and remove inactive ones. Never raises."""
    _keep(store, client, [*(each for each in _at_work(store, client) if each != session_id), session_id])


def remove(store: Store, client: str, session_id: str) -> None:
    """Remove a session that ended."""
    _keep(store, client, [each for each in _at_work(store, client) if each != session_id])


def _at_work(store: Store, client: str) -> list[str]:
    try:
        with open(path(store, client), "rb") as file:
            known = file.read().decode("ascii", "replace").split("\n")
    except OSError:
        return []
    oldest = store.now() - SEEN_MICROS
    return [each for each in known if each and heartbeats.last_seen(store, each) > oldest]


def _keep(store: Store, client: str, ids: list[str]) -> None:
    where = path(store, client)
    try:
        shared_mode.make_dirs(os.path.dirname(where))
        atomic_write.replace(where, "".join(f"{each}\n" for each in ids).encode())
    except OSError:
        return
