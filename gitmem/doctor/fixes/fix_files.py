"""Commit waiting entries and move unexpected files in gitmem's folders aside. Delete only leftover temporary files."""

from __future__ import annotations

import os

from ... import atomic_write, commit_process
from .. import put_aside
from ..checks import clone_files, wal_content

COMMIT_SECONDS = 5.0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from .fix_result import FixResult

CODES = ("wal-waits", "wal-file", "hidden-log", "leftover-file", "clock-ahead")


def commit_waiting(store: Store, done: FixResult) -> None:
    """Commit waiting entries."""
    waiting = [file.path for file in store.log.waiting()]
    if waiting and commit_process.commit_waiting(store, COMMIT_SECONDS) is not None:
        for path in waiting:
            done.say("wal-waits", path, "It was committed.")


def fix(store: Store, done: FixResult) -> None:
    """Move unreadable files aside, after the log has their lines; remove leftovers; reset a clock that is ahead."""
    for wal in store.log.wals:
        if wal.check_owner and not wal.is_ours():
            continue  # another user's folder
        for name in wal_content.unreadable(wal):
            path = os.path.join(wal.folder, name)
            if os.path.lexists(path):
                done.say(
                    "wal-file",
                    path,
                    f"It is {put_aside.put_aside(store, path, folder=_near(store, path))} now.",
                )
    hiding = os.path.join(store.place.state, "log")
    if os.path.lexists(hiding):
        done.say("hidden-log", hiding, f"It is {put_aside.put_aside(store, hiding)} now.")
    for path in clone_files.leftovers(store):
        atomic_write.remove_quietly(path)
        if not os.path.lexists(path):
            done.say("leftover-file", path, "It was removed.")
    clock = os.path.join(store.place.state, "clock")
    now = store.now()
    if os.path.exists(clock) and os.stat(clock).st_mtime - now / 1e6 > clone_files.AHEAD_SECONDS:
        os.utime(clock, ns=(now * 1000, now * 1000))
        done.say("clock-ahead", clock, "It was set to now.")


def _near(store: Store, path: str) -> str | None:
    """Return a folder on the same file system, as files are moved and not copied; None means the state folder."""
    folder = os.path.dirname(path)
    return None if os.path.dirname(folder) == store.place.state else folder
