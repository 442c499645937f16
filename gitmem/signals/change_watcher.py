"""Wait for changes of the log: by file-system events, and by slow polling of the same files.

Events are lost on network file systems, in some containers, and when a watched folder is removed and created again
(`git gc` does that). They only shorten the wait; polling finds every change.
"""

from __future__ import annotations

import os
import time

from ..log.ref import LOG_REF
from ..outcome import Struct
from ..repo import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from watchfiles._rust_notify import RustNotify

    from ..store import Store

    class StopWatching(Protocol):
        """A flag that ends the wait, such as `threading.Event`."""

        def is_set(self) -> bool:
            """Return whether to end the wait."""
            ...


BESIDE_SECONDS = 2.0  # polling interval with events
ALONE_SECONDS = 0.25
AGAIN_SECONDS = 30.0  # before the watcher is started again after an error
# `watchfiles` polls for events at this interval and reports them after two polls. A poll costs 50 µs, so a longer
# interval pays while nothing happens.
IDLE_MILLISECONDS, BUSY_MILLISECONDS = 40, 20
BUSY_SECONDS = 10.0  # after a change: more changes are likely
BURST_MILLISECONDS = 50  # an append makes several events; a longer burst is reported before it ends


class NeverSet:
    """A stop that is never set."""

    def is_set(self) -> bool:
        """Return False."""
        return False


class ChangeWatcher(Struct):
    """Detects changes of a clone's log.

    Attributes:
        stop: Ends a wait.
        events: Whether to use file-system events; without them the files are polled more often.
        poll_seconds: The polling interval without events.
    """

    store: Store
    stop: StopWatching
    events: bool = True
    poll_seconds: float = ALONE_SECONDS
    _watcher: RustNotify | None = None
    _watched: list[tuple[str, int, int]] = []
    _again: float = 0.0
    _busy_until: float = 0.0

    def stamp(self) -> object:
        """Return a value that changes whenever the ref moves or a record is written."""
        common = self.store.repo.common
        # Content and size instead of time and inode: two changes may have one mtime, and a new file an old inode.
        sizes = [(file.path, file.size) for wal in self.store.log.wals for file in wal.files() if file.size]
        return (
            read_small(os.path.join(common, LOG_REF), 100),
            _stamp(os.path.join(common, "packed-refs")),
            sizes,
        )

    def wait(self, seen: object, seconds: float) -> bool:
        """Wait until the stamp differs from `seen`, at most this many seconds; return whether it does."""
        deadline = time.monotonic() + seconds
        while not self.stop.is_set():
            if self.stamp() != seen:
                self._busy_until = time.monotonic() + BUSY_SECONDS
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if not self._begins():
                self._pause(left)
        return False

    def close(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def _begins(self) -> bool:
        """Start the watcher if needed; return whether it was started.

        The caller then compares the stamp again, as earlier changes made no event.
        """
        folders = self._folders()
        if self._watcher is not None and folders != self._watched:
            self.close()
        if self._watcher is not None or not self.events or time.monotonic() < self._again:
            return False
        try:
            from watchfiles._rust_notify import RustNotify

            self._watched = folders
            self._watcher = RustNotify([path for path, *_ in folders], False, False, 0, False, True)
        except ImportError:
            self.events = False
        except Exception:  # polling works without events, whatever the error
            self._again = time.monotonic() + AGAIN_SECONDS
        return self._watcher is not None

    def _pause(self, left: float) -> None:
        """Wait for an event, at most until the next poll."""
        if self._watcher is None:
            time.sleep(min(left, self.poll_seconds))
            return
        step = BUSY_MILLISECONDS if time.monotonic() < self._busy_until else IDLE_MILLISECONDS
        seconds = max(min(left, BESIDE_SECONDS), 0.001)
        try:
            found = self._watcher.watch(BURST_MILLISECONDS, step, int(seconds * 1000), self.stop)
        except Exception:
            self.close()
            self._again = time.monotonic() + AGAIN_SECONDS
            return
        if found == "signal":  # a signal handler raised, and the watcher swallowed the exception
            raise KeyboardInterrupt

    def _folders(self) -> list[tuple[str, int, int]]:
        """Return the existing folders of the ref, of packed refs and of write-ahead logs: path, device and inode."""
        common = self.store.repo.common
        ref = os.path.dirname(os.path.join(common, LOG_REF))
        found = []
        for path in (common, ref, *(wal.folder for wal in self.store.log.wals)):
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_dev, status.st_ino))
        return found


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


PAUSES = (
    0.001,
    0.04,
)  # the shortest and the longest, in seconds, between two polls, of which each takes about 50 µs
SHARE = 0.01  # of the time since the last change


class LogWaiter:
    """Waits until the log of a clone changes, by polling the sizes of its write-ahead logs: often at first, more rarely the longer it takes.

    File-system events come later than that: the watcher of `watch` collects a burst of them first.

    Args:
        stop: Ends a wait.
    """

    def __init__(self, store: Store, stop: StopWatching) -> None:
        self._watcher = ChangeWatcher(store, stop, events=False)
        self._stop = stop
        self._changed = time.monotonic()

    def stamp(self) -> object:
        """Return a value that changes with each record. Take it before reading."""
        return self._watcher.stamp()

    def wait(self, seen: object, seconds: float) -> bool:
        """Wait until the stamp differs from `seen`, or the stop is set.

        Args:
            seconds: At most; a caller looks again after that, because leases end without a record.

        Returns:
            Whether the stamp differs.
        """
        deadline = time.monotonic() + seconds
        while not self._stop.is_set():
            differs = self.stamp() != seen
            now = time.monotonic()
            if differs:
                self._changed = now
            if differs or now >= deadline:
                return differs
            pause = min(max(SHARE * (now - self._changed), PAUSES[0]), PAUSES[1])
            time.sleep(min(pause, deadline - now))
        return False
