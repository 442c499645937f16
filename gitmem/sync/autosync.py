"""Autosync: when a sync that nobody asked for is due, and what went wrong in the last one.

It is on where the repository's config has `gitmem.autosync`. What there is to know lies in `<state>/autosync/`:

next    its time is when a sync is due, so that a shell can compare it; its text is how far the interval is stretched
asked   since its time somebody wants to send or to bring something, and a process was started for that
hurry   the same, and the interval is not to be waited for
failed  what went wrong in the last sync, by itself or not, also where it is off; a good one removes it
lock    held by the one process that waits or syncs

Every write and every look at an inbox comes by here, so where autosync is off this reads one file, and no more.
"""

from __future__ import annotations

import os

from .. import atomic_write, shared_mode
from ..commit_process import LATER as LATER
from ..commit_process import LOOK as LOOK
from ..commit_process import NOW as NOW
from ..errors import StoreError, UsageError
from ..outcome import Outcome
from ..repo import read_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.lock import Lock
    from ..repo import Repo

KEY = "gitmem.autosync"
FOLDER, NEXT, ASKED, HURRY, FAILED, LOCK = "autosync", "next", "asked", "hurry", "failed", "lock"
LOOKED = "look"
OFF = "off"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LEAST_SECONDS, MOST_SECONDS = 1.0, 86400.0
START_SECONDS = 5.0  # a process that was started may take so long until it has the lock
# How far ahead a sync may be due so that a process waits for it, and with the last one failed: offline, none stays.
PATIENCE_SECONDS, PATIENCE_FAILED_SECONDS = 600.0, 60.0
BACKOFF_SECONDS_MAX = 300.0
STRETCH_MAX = 16.0
MESSAGE_MAX = 500


class Trouble(Outcome):
    """The last sync with the usual remote sent nothing.

    Attributes:
        at: When.
        times: How often in a row.
        code: Machine name of the error, such as `offline`; `empty` where the remote has no branch yet.
        message: What went wrong.
    """

    __slots__ = ("at", "times", "code", "message")

    def __init__(self, at: str, times: int, code: str, message: str) -> None:
        self.at = at
        self.times = times
        self.code = code
        self.message = message

    @property
    def what(self) -> str:
        """The beginning of a sentence that tells of it."""
        return "The last sync failed" if self.times == 1 else f"The last {self.times} syncs failed"


def setting(place: Repo) -> str | None:
    """What the repository's own config says, or None."""
    try:
        with open(os.path.join(place.common, "config"), "rb") as file:
            data = file.read()
    except OSError:
        return None
    if b"autosync" not in data.lower():
        return None
    return next((value for key, value in reversed([*read_config(data)]) if key == KEY), None)


def interval(place: Repo) -> float | None:
    """Seconds between two syncs, or None where gitmem does not sync by itself."""
    text = setting(place)
    return seconds(text) if text is not None else None


def seconds(text: str) -> float | None:
    """The seconds of `30s`, `5m` or a bare number; None for what is no such time, or not between a second and a day."""
    word = text.strip().lower()
    unit = UNITS.get(word[-1:])
    try:
        found = float(word[:-1] if unit else word) * (unit or 1)
    except ValueError:
        return None
    return found if LEAST_SECONDS <= found <= MOST_SECONDS else None


def spelled(text: str) -> str | None:
    """An interval as the config has it; None for `off`. Raises: UsageError."""
    found = seconds(text)
    if found is None and text.strip().lower() != OFF:
        raise UsageError(
            f"{text!r} is no interval for automatic syncs; nothing was changed.",
            hint="Such as 30s or 5m, between a second and a day, or off.",
            code="bad-autosync",
            suggestions=["30s", OFF],
        )
    return f"{found:.12g}s" if found is not None else None


def wants(place: Repo, how: int, now: float) -> bool:
    """Whether a process is to be started that syncs; what is to be sent is noted for the one that runs.

    Never an error: where the git folder can't be written nothing is noted and nothing is to be started.

    Args:
        how: `LOOK`, `LATER` or `NOW`.
        now: Seconds since the epoch.
    """
    every = interval(place)
    if every is None:
        return False
    folder = _folder(place)
    ahead = due(place, every, now) - now
    if how == LOOK and ahead > 0:
        return False
    mark = os.path.join(folder, HURRY if how == NOW else ASKED)
    if abs(now - _changed(mark)) < START_SECONDS:
        return False
    try:
        shared_mode.make_dir(folder)
        _touch(mark, now)
        held = lock(place)
        if not held.take():
            return False
        held.release()
    except (OSError, StoreError):
        return False
    return how == NOW or ahead <= patience(place)


def due(place: Repo, every: float, now: float) -> float:
    """When the next sync is due, in seconds since the epoch. A time that no sync can have set counts as past."""
    at = _changed(os.path.join(_folder(place), NEXT))
    return at if at <= now + max(every * STRETCH_MAX, BACKOFF_SECONDS_MAX) + START_SECONDS else 0.0


def patience(place: Repo) -> float:
    """For how long a process may wait for its sync to be due, in seconds."""
    is_failing = os.path.exists(os.path.join(_folder(place), FAILED))
    return PATIENCE_FAILED_SECONDS if is_failing else PATIENCE_SECONDS


def is_asked(place: Repo) -> bool:
    return os.path.exists(os.path.join(_folder(place), ASKED)) or is_hurried(place)


def is_hurried(place: Repo) -> bool:
    return os.path.exists(os.path.join(_folder(place), HURRY))


def lock(place: Repo) -> Lock:
    """The lock of the one process that waits or syncs by itself."""
    from ..log.lock import Lock

    return Lock(os.path.join(_folder(place), LOCK))


def begin(place: Repo, now: float) -> None:
    """A sync begins, by itself or not: what is asked for from here on is for the next one."""
    folder = _folder(place)
    every = interval(place)
    if every is not None and os.path.isdir(folder):
        _set_due(folder, now + every, _stretch(folder))  # before the marks go, or a look would start another
    for mark in (ASKED, HURRY):
        atomic_write.drop(os.path.join(folder, mark))


def end(place: Repo, now: float, rejections: int, dice: float) -> None:
    """A sync was good. Each one that lost races stretches the interval to the next, each that did not shrinks it again.

    Args:
        now: Seconds since the epoch.
        rejections: How often a push lost a race.
        dice: Between 0 and 1: where in the stretched interval the next one is.
    """
    folder = _folder(place)
    atomic_write.drop(os.path.join(folder, FAILED))
    every = interval(place)
    if every is None or not os.path.isdir(folder):
        return
    old = _stretch(folder)
    stretch = min(old * 2, STRETCH_MAX) if rejections else max(old / 2, 1.0)
    _set_due(folder, now + every * (1 + (stretch - 1) * dice), stretch)


def fail(place: Repo, now: float, at: str, code: str, message: str, dice: float) -> None:
    """A sync failed: keep why, and leave more and more time to the next automatic one, up to some minutes.

    Args:
        now: Seconds since the epoch.
        at: The same as JSON has it.
    """
    from json import dumps

    folder = _folder(place)
    before = trouble(place)
    times = before.times + 1 if before else 1
    found = Trouble(at, times, code, " ".join(message.split())[:MESSAGE_MAX])
    every = interval(place)
    try:
        shared_mode.make_dir(folder)
        atomic_write.replace(os.path.join(folder, FAILED), dumps(found.as_json()).encode())
    except OSError:
        return
    if every is not None:  # where it is off, hooks find nothing that is due
        pause = min(every * 2 ** min(times, 16), max(every, BACKOFF_SECONDS_MAX)) * (0.75 + dice / 4)
        _set_due(folder, now + max(pause, every), _stretch(folder))


def rest(place: Repo, now: float) -> None:
    """There is nobody to sync with: look again after some minutes."""
    _set_due(_folder(place), now + BACKOFF_SECONDS_MAX, 1.0)


def trouble(place: Repo) -> Trouble | None:
    """What went wrong in the last sync with the usual remote; None where it was good."""
    try:
        with open(os.path.join(_folder(place), FAILED), "rb") as file:
            data = file.read(10 * MESSAGE_MAX)
    except OSError:
        return None
    from json import loads

    try:
        found = loads(data)
        return Trouble(str(found["at"]), int(found["times"]), str(found["code"]), str(found["message"]))
    except (ValueError, TypeError, LookupError):
        return None


def switch(place: Repo, on: bool) -> None:
    """Begin anew, or leave nothing that a hook would find."""
    folder = _folder(place)
    for name in (NEXT, ASKED, HURRY, FAILED, LOOKED):
        atomic_write.drop(os.path.join(folder, name))
    if on:
        try:
            shared_mode.make_dirs(folder)
            for name in (NEXT, LOOKED):  # a hook's shell would make the second one without a shared mode
                atomic_write.replace(os.path.join(folder, name), b"")
        except OSError:
            return


def _folder(place: Repo) -> str:
    return os.path.join(place.state, FOLDER)


def _set_due(folder: str, at: float, stretch: float) -> None:
    path = os.path.join(folder, NEXT)
    try:
        atomic_write.replace(path, b"%g\n" % stretch)  # a new file: who does not own one can't set its time
        os.utime(path, (at, at))
    except OSError:
        return


def _stretch(folder: str) -> float:
    try:
        with open(os.path.join(folder, NEXT), "rb") as file:
            return min(max(float(file.read(20) or 1), 1.0), STRETCH_MAX)
    except (OSError, ValueError):
        return 1.0


def _touch(path: str, now: float) -> None:
    atomic_write.replace(path, b"")
    os.utime(path, (now, now))


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
