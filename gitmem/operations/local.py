"""What this clone alone knows of the sessions that were started in it: their worktree and their heartbeat.

A file for each session, `<state>/sessions/<id>`; its modification time is when the session was last seen
here. A heartbeat is a touched file, never a commit. A folder that cannot be written is no error: others
then see the time of the last record.
"""

from __future__ import annotations

import os

from ..records.ids import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Store

LABEL_MAX = 80
FORGOTTEN_MICROS = 30 * 24 * 3600 * 1_000_000


def worktree(store: Store) -> str:
    """The real path of this worktree, or of the git folder where there is none."""
    return store.place.worktree or store.place.git_dir


def label(store: Store) -> str:
    """What others read of it: the name of its folder, without the path and what could upset a terminal."""
    parts = worktree(store).rstrip(os.sep).split(os.sep)
    if parts[-1] == ".git":
        parts.pop()
    text = "".join(char if char.isprintable() else "?" for char in (parts or [""])[-1])
    return text[:LABEL_MAX] or "worktree"


def start(store: Store, session_id: str, harness: tuple[str, str] | None) -> None:
    """Note that a session starts in this worktree, and forget those that nobody has seen for a month."""
    folder = _folder(store)
    content = (
        os.fsencode(worktree(store)) + b"\0" + (harness[1] if harness else "").encode("utf-8", "replace")
    )
    temporary = os.path.join(folder, f"tmp-{session_id}")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, os.path.join(folder, session_id))
    except OSError:
        return
    seen(store, session_id)
    oldest = store.now() - FORGOTTEN_MICROS
    for known, at in heartbeats(store).items():
        if at < oldest:
            end(store, known)


def seen(store: Store, session_id: str) -> None:
    """Touch the file of a session that acts here; one that started elsewhere has none."""
    if not is_id("sess", session_id):
        return  # a harness's own id: it has no file, and could be any path
    at = store.now() * 1000
    try:
        os.utime(os.path.join(_folder(store), session_id), ns=(at, at))
    except OSError:
        return


def end(store: Store, session_id: str) -> None:
    """Forget a session."""
    try:
        os.unlink(os.path.join(_folder(store), session_id))
    except OSError:
        return


def heartbeat(store: Store, session_id: str) -> int:
    """When a session was last seen here, in microseconds since the epoch; 0 where it did not start in this clone."""
    if not is_id("sess", session_id):
        return 0
    try:
        return os.stat(os.path.join(_folder(store), session_id)).st_mtime_ns // 1000
    except OSError:
        return 0


def heartbeats(store: Store) -> dict[str, int]:
    """When each session that started in this clone was last seen here, in microseconds since the epoch."""
    found = {}
    try:
        with os.scandir(_folder(store)) as entries:
            for entry in entries:
                if is_id("sess", entry.name):
                    found[entry.name] = entry.stat().st_mtime_ns // 1000
    except OSError:
        pass
    return found


def known(store: Store) -> dict[str, tuple[str, int]]:
    """Every session that started in this clone: the real path of its worktree, and when it was seen."""
    found = {}
    for session_id, at in heartbeats(store).items():
        try:
            with open(os.path.join(_folder(store), session_id), "rb") as file:
                content = file.read()
        except OSError:
            continue
        found[session_id] = (os.fsdecode(content.partition(b"\0")[0]), at)
    return found


def _folder(store: Store) -> str:
    return os.path.join(store.place.state, "sessions")
