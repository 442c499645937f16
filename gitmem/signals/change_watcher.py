"""Waiting for what arrives: file-system events, and a slow look at the same files beside them.

Events are lost on network file systems, in some containers, and where a watched folder was taken away and made
anew (`git gc` does that). So nobody relies on them: they only make it quick.
"""

from __future__ import annotations

import os
import time

from ..log.ref import LOG_REF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from watchfiles._rust_notify import RustNotify

    from ..store import Store

    class StopWatching(Protocol):
        """Says when it is enough, such as `threading.Event`."""

        def is_set(self) -> bool: ...


BESIDE_SECONDS = 2.0  # the slow look, beside events
ALONE_SECONDS = 0.25  # where there are none
AGAIN_SECONDS = 30.0  # until events are tried again that could not be had
# `watchfiles` looks that often whether there were events: each look costs 50 µs, so it pays to be lazy while
# nothing happens. Two looks go by until it says so.
IDLE_MILLISECONDS, BUSY_MILLISECONDS = 40, 20
BUSY_SECONDS = 10.0  # after a change: who talks goes on talking
BURST_MILLISECONDS = 50  # an append makes several events; of a longer burst it is told meanwhile


class Never:
    """A stop that is never set."""

    def is_set(self) -> bool:
        return False


class Waker:
    """Knows when something may have arrived in a clone's log.

    Args:
        stop: Ends a wait.
        events: Whether to ask the system for events; without them files are looked at more often.
    """

    def __init__(self, store: Store, stop: StopWatching, *, events: bool = True) -> None:
        self.store = store
        self.stop = stop
        self.events = events
        self._watcher: RustNotify | None = None
        self._watched: list[tuple[str, int, int]] = []
        self._again = 0.0
        self._busy_until = 0.0

    def stamp(self) -> object:
        """What is another value whenever the ref has moved, or something was recorded."""
        common = self.store.place.common
        # What they hold, not when they changed: two changes may share a moment, and a file its predecessor's number.
        sizes = [(file.path, file.size) for wal in self.store.log.wals for file in wal.files() if file.size]
        return _content(os.path.join(common, LOG_REF)), _stamp(os.path.join(common, "packed-refs")), sizes

    def wait(self, seen: object, seconds: float) -> bool:
        """Wait until the stamp is not `seen` any more, at most so long: whether it is another."""
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
        """Watch nothing any more."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def _begins(self) -> bool:
        """Whether events are waited for from now on, so that what came before has to be looked for once more."""
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
        except Exception:  # whatever the system has against it, the slow look goes on
            self._again = time.monotonic() + AGAIN_SECONDS
        return self._watcher is not None

    def _pause(self, left: float) -> None:
        """Until an event, or for a while."""
        if self._watcher is None:
            time.sleep(min(left, ALONE_SECONDS))
            return
        step = BUSY_MILLISECONDS if time.monotonic() < self._busy_until else IDLE_MILLISECONDS
        seconds = max(min(left, BESIDE_SECONDS), 0.001)
        try:
            found = self._watcher.watch(BURST_MILLISECONDS, step, int(seconds * 1000), self.stop)
        except Exception:
            self.close()
            self._again = time.monotonic() + AGAIN_SECONDS
            return
        if found == "signal":  # a handler raised, and that was swallowed
            raise KeyboardInterrupt

    def _folders(self) -> list[tuple[str, int, int]]:
        """The folders of the ref, of packed refs and of the write-ahead logs that are there, each with what tells it from another."""
        common = self.store.place.common
        ref = os.path.dirname(os.path.join(common, LOG_REF))
        found = []
        for path in (common, ref, *(wal.folder for wal in self.store.log.wals)):
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_dev, status.st_ino))
        return found


def _content(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(handle, 100)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
