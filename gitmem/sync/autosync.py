"""Autosync: when an automatic sync is due, and why the last sync failed.

It is on if the repository's config has `gitmem.autosync`. Its state is in `<state>/autosync/`:

next    its mtime is the time of the next sync, so that a shell can compare it; its content is the backoff multiplier
asked   since its mtime a caller wants to send or to fetch, and a process was started for that
hurry   the same, but without waiting for the interval
failed  the error of the last sync, automatic or not, also if autosync is off; a successful sync removes it
lock    held by the one process that waits or syncs

The time of `<state>/remote-read` is when the usual remote was last read.

Every write and every read of an inbox calls this module. If autosync is off, that reads one file and no more.
"""

from __future__ import annotations

import os

from .. import local_files
from ..commit_process import IF_DUE, NOW
from ..errors import StoreError, UsageError
from ..git.files import READ
from ..outcome import Outcome
from ..repo import read_config, read_small
from ..settings import AUTOSYNC, OFF, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.lock import Lock
    from ..repo import Repo

FOLDER, NEXT, ASKED, HURRY, FAILED, LOCK = "autosync", "next", "asked", "hurry", "failed", "lock"
CLOCK_FILE = "look"
START_SECONDS = 5.0  # the time that a started process may take to get the lock
# A process waits for a sync that is due within this time. It is shorter after a failure: offline, no process stays.
WAIT_MAX_SECONDS, WAIT_MAX_FAILED_SECONDS = 600.0, 60.0
BACKOFF_SECONDS_MAX = 300.0
STRETCH_MAX = 16.0
MESSAGE_MAX = 500


class FailedSync(Outcome):
    """The last sync with the usual remote sent nothing.

    Attributes:
        at: The time of the sync, as JSON has it.
        times: How many syncs in a row failed.
        code: Machine name of the error, such as `offline`; `empty` if the remote has no branch yet.
        message: The error.
    """

    at: str
    times: int
    code: str
    message: str

    @property
    def what(self) -> str:
        """The beginning of a sentence that reports the failure."""
        return "The last sync failed" if self.times == 1 else f"The last {self.times} syncs failed"


def configured_interval(repo: Repo) -> str | None:
    """Return the value in the repository's own config, or None."""
    data = read_small(os.path.join(repo.common, "config"))
    if b"autosync" not in data.lower():
        return None
    return next((value for key, value in reversed([*read_config(data)]) if key == AUTOSYNC.key), None)


def interval(repo: Repo) -> float | None:
    """Return the seconds between two syncs, or None if gitmem does not sync automatically."""
    text = configured_interval(repo)
    return seconds(text) if text is not None else None


def normalize_interval(text: str) -> str | None:
    """Return an interval as the config has it, or None for `off`.

    Raises:
        UsageError: `bad-autosync`.
    """
    found = seconds(text)
    if found is None and text.strip().lower() != OFF:
        raise UsageError(
            f"Invalid interval for automatic syncs: {text!r}. Nothing was changed.",
            hint="Use a form such as 30s or 5m, between one second and one day, or off.",
            code="bad-autosync",
            suggestions=["30s", OFF],
        )
    return f"{found:.12g}s" if found is not None else None


def wants(repo: Repo, how: int, now: float) -> bool:
    """Return whether to start a process that syncs; a running process gets a mark that there is work.

    It raises no error: if the git folder can't be written, nothing is noted and nothing is to be started.

    Args:
        how: `IF_DUE`, `LATER` or `NOW`.
        now: Seconds since the epoch.
    """
    every = interval(repo)
    if every is None:
        return False
    folder = _folder(repo)
    ahead = due(repo, every, now) - now
    if how == IF_DUE and ahead > 0:
        return False
    mark = os.path.join(folder, HURRY if how == NOW else ASKED)
    if abs(now - local_files.modified(mark)) < START_SECONDS:
        return False
    try:
        local_files.make_dir(folder)
        _touch(mark, now)
        held = lock(repo)
        if not held.take():
            return False
        held.release()
    except (OSError, StoreError):
        return False
    return how == NOW or ahead <= wait_limit(repo)


def due(repo: Repo, every: float, now: float) -> float:
    """Return when the next sync is due, in seconds since the epoch.

    A time that no sync can have set counts as past.
    """
    at = local_files.modified(os.path.join(_folder(repo), NEXT))
    return at if at <= now + max(every * STRETCH_MAX, BACKOFF_SECONDS_MAX) + START_SECONDS else 0.0


def wait_limit(repo: Repo) -> float:
    """Return how many seconds a process may wait for its sync to be due."""
    is_failing = os.path.exists(os.path.join(_folder(repo), FAILED))
    return WAIT_MAX_FAILED_SECONDS if is_failing else WAIT_MAX_SECONDS


def is_requested(repo: Repo) -> bool:
    """Return whether a sync was requested, for the next due time or at once."""
    return os.path.exists(os.path.join(_folder(repo), ASKED)) or is_urgent(repo)


def is_urgent(repo: Repo) -> bool:
    """Return whether a sync was requested at once."""
    return os.path.exists(os.path.join(_folder(repo), HURRY))


def lock(repo: Repo, *, background: bool = False) -> Lock:
    """Return the lock of the one process that waits or syncs automatically; it is that process if `background`."""
    from ..log.lock import Lock

    return Lock(os.path.join(_folder(repo), LOCK), background=background)


def record_start(repo: Repo, now: float) -> None:
    """Start a sync, automatic or not: requests from now on are for the next one."""
    folder = _folder(repo)
    every = interval(repo)
    if every is not None and os.path.isdir(folder):
        # Before dropping the marks: else a reader of the inbox would start another process.
        _set_due(folder, now + every, _stretch(folder))
    for mark in (ASKED, HURRY):
        local_files.remove_quietly(os.path.join(folder, mark))


def record_success(repo: Repo, now: float, rejections: int, jitter: float) -> None:
    """Record a successful sync: a sync that lost races doubles the backoff multiplier, any other halves it.

    Args:
        now: Seconds since the epoch.
        rejections: How often a push lost a race.
        jitter: Between 0 and 1: the position of the next sync in the stretched interval.
    """
    folder = _folder(repo)
    local_files.remove_quietly(os.path.join(folder, FAILED))
    every = interval(repo)
    if every is None or not os.path.isdir(folder):
        return
    old = _stretch(folder)
    stretch = min(old * 2, STRETCH_MAX) if rejections else max(old / 2, 1.0)
    _set_due(folder, now + every * (1 + (stretch - 1) * jitter), stretch)


def record_failure(repo: Repo, now: float, at: str, code: str, message: str, jitter: float) -> None:
    """Record a failed sync, and delay the next automatic one longer after each failure, up to some minutes.

    Args:
        now: Seconds since the epoch.
        at: The same time as JSON has it.
        jitter: Between 0 and 1; it spreads the delay.
    """
    from json import dumps

    folder = _folder(repo)
    before = last_failure(repo)
    times = before.times + 1 if before else 1
    found = FailedSync(at, times, code, " ".join(message.split())[:MESSAGE_MAX])
    every = interval(repo)
    try:
        local_files.make_dir(folder)  # not those above it: the repository may be gone
        local_files.replace(os.path.join(folder, FAILED), dumps(found.as_json()).encode())
    except OSError:
        return
    if every is not None:  # if it is off, hooks must find nothing that is due
        pause = min(every * 2 ** min(times, 16), max(every, BACKOFF_SECONDS_MAX)) * (0.75 + jitter / 4)
        _set_due(folder, now + max(pause, every), _stretch(folder))


def postpone(repo: Repo, now: float) -> None:
    """Delay the next sync by some minutes, for a clone without a remote."""
    _set_due(_folder(repo), now + BACKOFF_SECONDS_MAX, 1.0)


def last_failure(repo: Repo) -> FailedSync | None:
    """Return why the last sync with the usual remote failed; None if it succeeded."""
    data = local_files.read(os.path.join(_folder(repo), FAILED), 10 * MESSAGE_MAX)
    if not data:
        return None
    from json import loads

    try:
        found = loads(data)
        return FailedSync(str(found["at"]), int(found["times"]), str(found["code"]), str(found["message"]))
    except (ValueError, TypeError, LookupError):
        return None


def switch(repo: Repo, on: bool) -> None:
    """Reset the state of autosync; if it is off, leave nothing that a hook would find."""
    folder = _folder(repo)
    for name in (NEXT, ASKED, HURRY, FAILED, CLOCK_FILE):
        local_files.remove_quietly(os.path.join(folder, name))
    if on:
        for name in (NEXT, CLOCK_FILE):  # a hook's shell would create the second one without a shared mode
            local_files.try_mark(os.path.join(folder, name), folders=True)


def record_read(repo: Repo, now: float) -> None:
    """Record that the usual remote was read at this time, in seconds since the epoch."""
    try:
        _touch(os.path.join(repo.state, READ), now)
    except OSError:
        return


def last_read(repo: Repo) -> float | None:
    """Return when the usual remote was last read, in seconds since the epoch; None if that is not known."""
    return local_files.modified(os.path.join(repo.state, READ)) or None


def _folder(repo: Repo) -> str:
    return os.path.join(repo.state, FOLDER)


def _set_due(folder: str, at: float, stretch: float) -> None:
    try:
        _touch(os.path.join(folder, NEXT), at, b"%g\n" % stretch)
    except OSError:
        return


def _stretch(folder: str) -> float:
    try:
        return min(max(float(local_files.read(os.path.join(folder, NEXT), 20) or 1), 1.0), STRETCH_MAX)
    except ValueError:
        return 1.0


def _touch(path: str, at: float, content: bytes = b"") -> None:
    local_files.replace(path, content)  # a new file: only the owner of a file can set its time
    local_files.utime(path, (int(at * 1e9),) * 2)
