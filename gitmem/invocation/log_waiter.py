"""Wait for new records of a clone, by polling the sizes of its write-ahead logs: often while something happens, else rarely.

File-system events are reported later than that: the watcher of `watch` collects a burst of them first.
"""

from __future__ import annotations

import time

from ..signals.change_watcher import ChangeWatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..signals.change_watcher import StopWatching
    from ..store import Store

BUSY_PAUSE, IDLE_PAUSE = 0.005, 0.04  # seconds between two polls, of which each takes about 50 µs
BUSY_SECONDS = 5.0  # after a change: more changes are likely


class LogWaiter:
    """Waits until the log of a clone changes.

    Args:
        stop: Ends a wait.
    """

    def __init__(self, store: Store, stop: StopWatching) -> None:
        self._watcher = ChangeWatcher(store, stop, events=False, poll_seconds=BUSY_PAUSE)
        self._stop = stop
        self._busy_until = time.monotonic() + BUSY_SECONDS

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
            now = time.monotonic()
            if now >= deadline:
                return False
            self._watcher.poll_seconds = BUSY_PAUSE if now < self._busy_until else IDLE_PAUSE
            until = min(deadline, self._busy_until) if now < self._busy_until else deadline
            if self._watcher.wait(seen, until - now):
                self._busy_until = time.monotonic() + BUSY_SECONDS
                return True
        return False
