"""The process that syncs by itself: one a clone, it waits until a sync is due, syncs once, and ends."""

from __future__ import annotations

import os
import time

from ..errors import GitmemError, StoreError
from ..log.lines import format_at
from . import autosync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..log.lock import Lock
    from ..repo import Repo
    from .sync_result import Synced

POLL_SECONDS = 0.1
# Who only wants to know whether a process is there holds the lock for an instant, too.
LOCK_TRIES, LOCK_PAUSE_SECONDS = 5, 0.02
QUIET = ("no-remote",)  # nothing to tell anybody of: there may be one later


def run(
    place: Repo,
    sync: Callable[[], Synced],
    *,
    now: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
    dice: Callable[[], float] = lambda: os.urandom(1)[0] / 255,
) -> bool:
    """Sync when it is due, unless another process of this clone does; True where one more is to be started.

    What goes wrong is kept for whoever looks next.

    Args:
        sync: Syncs with the usual remote.
        now: Seconds since the epoch.
        pause: Waits so many seconds.
        dice: A number between 0 and 1.
    """
    lock = _take(place, pause)
    if lock is None:
        return False
    with lock:
        if not _wait(place, now, pause):
            return False
        autosync.begin(place, now())
        code, message = _try(sync)
        at = now()
        if code in QUIET:
            autosync.rest(place, at)
        elif code:
            autosync.fail(place, at, format_at(int(at * 1e6)), code, message, dice())
    # Who found the lock taken has left a mark, perhaps after what was sent had been gathered.
    return _is_wanted(place, now())


def refuse_untrusted(place: Repo) -> None:
    """Refuse a repository that opening its log would refuse, before anything is kept about its syncs.

    Raises:
        StoreError: `dubious-ownership` or `bare-repository`.
    """
    from ..git.open_git import refuse_foreign

    refuse_foreign(place)


def _take(place: Repo, pause: Callable[[float], None]) -> Lock | None:
    try:
        for _ in range(LOCK_TRIES):
            lock = autosync.lock(place)
            if lock.take():
                return lock
            pause(LOCK_PAUSE_SECONDS)
    except StoreError:
        pass  # not ours to write, or gone
    return None


def _wait(place: Repo, now: Callable[[], float], pause: Callable[[float], None]) -> bool:
    """Wait until a sync is due, or must not wait. False where it is not wanted any more."""
    while True:
        at, every = now(), autosync.interval(place)
        if every is None:  # off by now, or the repository is gone
            return False
        if autosync.is_hurried(place) or autosync.due(place, every, at) <= at:
            return True
        if not _is_wanted(place, at):
            return False
        pause(POLL_SECONDS)


def _is_wanted(place: Repo, now: float) -> bool:
    """Whether somebody wants a sync, and it is not so far off that who comes by then may see to it."""
    every = autosync.interval(place)
    if every is None or not autosync.is_asked(place):
        return False
    return autosync.is_hurried(place) or autosync.due(place, every, now) - now <= autosync.patience(place)


def _try(sync: Callable[[], Synced]) -> tuple[str, str]:
    """Sync: what broke it off, as a code and a sentence; two empty ones where it has kept by itself what came of it."""
    try:
        sync()
    except GitmemError as error:
        return error.code, error.message
    except TimeoutError:
        return "timeout", "It took too long and was stopped; what is recorded here stays recorded."
    except Exception as error:  # a bug must be seen too, and nobody sees our output
        return "unexpected", f"Something unexpected happened: {type(error).__name__} {error}".strip()
    return "", ""
