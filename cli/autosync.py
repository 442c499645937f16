"""Autosync: start the process that syncs by itself, and be that process (`gitmem sync --auto`)."""

from __future__ import annotations

import os
import time

from gitmem.sync import autosync
from gitmem.sync.autosync import LOOK as LOOK

from . import background

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.sync.sync_result import Synced

    from .opened_repo import OpenedRepo

LIMIT_SECONDS = 300  # of one sync, however many runs of git it has; each of them has its own
GIT_SECONDS = 30.0


def start(at: OpenedRepo, how: int) -> None:
    """Have this clone synced in the background, where it is to sync by itself and that is due.

    Whoever calls has done its work: this takes no time, and nothing that goes wrong here is its failure.

    Args:
        how: `LOOK`, `LATER` or `NOW`, see `sync.autosync`.
    """
    try:
        if at.place.by_folder:  # a commit may have brought it
            from gitmem.sync.autosync_process import refuse_untrusted

            refuse_untrusted(at.place)
        if autosync.wants(at.place, how, time.time()):
            background.start([*(["-C", at.directory] if at.directory else []), "sync", "--auto"])
    except Exception:
        return


def tick(at: OpenedRepo) -> None:
    """The same, again and again, for a process that lives long and keeps its store open."""
    store = at.store()
    how, store.wrote = store.wrote, LOOK
    start(at, how)


def run(at: OpenedRepo) -> int:
    """Be the process: sync once when it is due, and say nothing.

    Returns:
        0, whatever becomes of the sync.

    Raises:
        StoreError: git does not trust this repository, or a commit may have brought it. Nothing was written.
    """
    from gitmem.sync import autosync_process

    place = at.place
    autosync_process.refuse_untrusted(place)
    again = [*at.same_place, "sync", "--auto"]
    _let_go()
    if autosync_process.run(place, lambda: _sync(at)):
        background.start(again)
    return 0


def _let_go() -> None:
    """Belong to nobody: not to whoever started us, be it a shell, and to no folder that may be removed."""
    try:
        os.chdir(os.sep)
        os.setsid()
    except (OSError, AttributeError):  # apart already, or another system
        return


def _sync(at: OpenedRepo) -> Synced:
    """Raises: TimeoutError after `LIMIT_SECONDS`, with all that runs of git ended."""
    import signal

    from . import syncing

    def stop(number: int, frame: object) -> None:
        raise _TooLong if number != signal.SIGTERM else SystemExit(0)

    timed = hasattr(signal, "setitimer")
    numbers = [signal.SIGTERM, *([signal.SIGALRM] if timed else [])]
    before = [(number, signal.signal(number, stop)) for number in numbers]
    try:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
        return syncing.usual(at, GIT_SECONDS)
    except _TooLong:
        raise TimeoutError from None
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


class _TooLong(BaseException):
    """No error, which somebody on the way might take for one of a disk."""
