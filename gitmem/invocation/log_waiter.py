"""Wait for new records of a clone, by polling the sizes of its write-ahead logs: at first often, and the rarer the longer it takes.

File-system events are reported later than that: the watcher of `watch` collects a burst of them first.
"""

from __future__ import annotations

import time

from ..signals.change_watcher import ChangeWatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..signals.change_watcher import StopWatching
    from ..store import Store

PAUSES = (
    0.001,
    0.04,
)  # the shortest and the longest, in seconds, between two polls, of which each takes about 50 µs
SHARE = 0.01  # of the time since the last change


class LogWaiter:
    """Waits until the log of a clone changes.

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
