"""Files in our folders that should not be there are moved aside; what waits is committed. Nothing is deleted but leftovers."""

from __future__ import annotations

import os
import time

from ... import shared_mode
from ...log import append
from ...log.spool import DONE_KEPT_SECONDS, remove
from .. import checks_clone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .done import Done

CODES = ("spool-waits", "spool-file", "hidden-log", "leftover-file", "clock-ahead")


def put_aside(store: Store, path: str, *, folder: str | None = None) -> str:
    """Move a file to a folder of its own; where it is then. Raises: OSError."""
    where = os.path.join(folder or store.place.state, checks_clone.ASIDE)
    os.makedirs(where, mode=0o700, exist_ok=True)
    shared_mode.adjust(where)
    day = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(store.now() // 1_000_000))
    name, number = os.path.basename(path), 0
    while True:
        to = os.path.join(where, f"{day}-{name}" + (f".{number}" if number else ""))
        if not os.path.lexists(to):
            os.rename(path, to)
            return to
        number += 1


def drain(store: Store, done: Done) -> None:
    """Commit what waits."""
    store.log.committer = store.log.committer or store.committer()
    waiting = [os.path.join(spool.folder, name) for spool in store.log.spools for name in spool.names()]
    if append.waits(store.log) and append.drain_all(store.log):
        for path in waiting:
            done.say("spool-waits", path, "It was committed.")


def mend(store: Store, done: Done) -> None:
    """Once the log has the lines that were in them: files that nobody can read."""
    for spool in store.log.spools:
        if spool.check_owner and not spool.is_ours():
            continue  # somebody else's folder
        for name in _foreign(spool.folder):
            try:
                spool.read(name)
            except (OSError, ValueError):
                path = os.path.join(spool.folder, name)
                if os.path.lexists(path):
                    done.say(
                        "spool-file", path, f"It is {put_aside(store, path, folder=_near(store, path))} now."
                    )
    hiding = os.path.join(store.place.state, "log")
    if os.path.lexists(hiding):
        done.say("hidden-log", hiding, f"It is {put_aside(store, hiding)} now.")
    for path in checks_clone.leftovers(store):
        if remove(path):
            done.say("leftover-file", path, "It was removed.")
    clock = os.path.join(store.place.state, "clock")
    now = store.now()
    if os.path.exists(clock) and os.stat(clock).st_mtime - now / 1e6 > checks_clone.AHEAD_SECONDS:
        os.utime(clock, ns=(now * 1000, now * 1000))
        done.say("clock-ahead", clock, "It was set to now.")


def _foreign(folder: str) -> list[str]:
    """Names in a spool folder that may be none of ours; a writer may be at work under a temporary one."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    young = time.time() - DONE_KEPT_SECONDS
    return [
        name
        for name in names
        if name not in ("done", checks_clone.ASIDE)
        and not (name.startswith("tmp-") and _modified(os.path.join(folder, name)) > young)
    ]


def _modified(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return time.time()


def _near(store: Store, path: str) -> str | None:
    """A folder on the same file system: files are moved, not copied."""
    own = os.path.join(store.place.state, "spool")
    return None if os.path.dirname(path) == own else os.path.dirname(path)
