"""The process that syncs automatically: one per clone; it waits until a sync is due, syncs once, and ends."""

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
    from .sync_result import SyncResult

POLL_SECONDS = 0.1
# A caller that only tests whether a process runs holds the lock for an instant, too.
LOCK_TRIES, LOCK_PAUSE_SECONDS = 5, 0.02
QUIET = ("no-remote",)  # not reported as a failure: there may be a remote later


def run(
    repo: Repo,
    sync: Callable[[], SyncResult],
    *,
    now: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = lambda: os.urandom(1)[0] / 255,
) -> bool:
    """Sync when it is due, unless another process of this clone does; record an error for later commands.

    Args:
        sync: Syncs with the usual remote.
        now: Returns the seconds since the epoch.
        pause: Waits that many seconds.
        jitter: Returns a number between 0 and 1.

    Returns:
        Whether to start another process.
    """
    lock = _take(repo, pause)
    if lock is None:
        return False
    with lock:
        if not _wait(repo, now, pause):
            return False
        autosync.record_start(repo, now())
        code, message = _sync_or_error(sync)
        at = now()
        if code in QUIET:
            autosync.postpone(repo, at)
        elif code:
            autosync.record_failure(repo, at, format_at(int(at * 1e6)), code, message, jitter())
    # A caller that found the lock taken has left a mark, perhaps after this sync had read the log.
    return _is_wanted(repo, now())


def refuse_untrusted(repo: Repo) -> None:
    """Reject a repository that opening its log would reject, before writing any state about its syncs.

    Raises:
        StoreError: `dubious-ownership` or `bare-repository`.
    """
    from ..git.repository import reject_untrusted

    reject_untrusted(repo)


def _take(repo: Repo, pause: Callable[[float], None]) -> Lock | None:
    try:
        for _ in range(LOCK_TRIES):
            lock = autosync.lock(repo, background=True)
            if lock.take():
                return lock
            pause(LOCK_PAUSE_SECONDS)
    except StoreError:
        pass  # not writable for us, or deleted
    return None


def _wait(repo: Repo, now: Callable[[], float], pause: Callable[[float], None]) -> bool:
    """Wait until a sync is due or is hurried; return False once it is not wanted any more."""
    while True:
        at, every = now(), autosync.interval(repo)
        if every is None:  # switched off meanwhile, or the repository was deleted
            return False
        if autosync.is_urgent(repo) or autosync.due(repo, every, at) <= at:
            return True
        if not _is_wanted(repo, at):
            return False
        pause(POLL_SECONDS)


def _is_wanted(repo: Repo, now: float) -> bool:
    """Return whether a sync was asked for and is due soon enough for a process to wait for it."""
    every = autosync.interval(repo)
    if every is None or not autosync.is_requested(repo):
        return False
    return autosync.is_urgent(repo) or autosync.due(repo, every, now) - now <= autosync.wait_limit(repo)


def _sync_or_error(sync: Callable[[], SyncResult]) -> tuple[str, str]:
    """Sync; return the code and the message of the error that stopped it, or two empty strings."""
    try:
        sync()
    except GitmemError as error:
        return error.code, error.message
    except TimeoutError:
        return "timeout", "The sync timed out and was stopped; local records are kept."
    except Exception as error:  # a bug must be reported too, and nobody reads our output
        return "unexpected", f"Unexpected error: {type(error).__name__} {error}".strip()
    return "", ""
