"""Times of this clone's lines: the wall clock, and always later than the line before."""

from __future__ import annotations

import os

from .. import aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AHEAD_MAX_MICROS = 60_000_000


class Clock:
    """Gives the `at` of new lines.

    The last one is remembered as the modification time of an empty file: one
    system call, and nothing that can be torn. A remembered time that is more
    than a minute ahead of the wall clock is not believed. Times of other clones are never looked at.
    """

    def __init__(self, path: str, now: Callable[[], int]) -> None:
        self.path = path
        self.now = now
        self._last = 0

    def tick(self, count: int = 1) -> int:
        """Microseconds since the epoch, at least one more than the last tick of this clone.

        Args:
            count: How many ticks these are, each a microsecond after the one before; the first is returned.
        """
        now = self.now()
        last = self._last
        try:
            last = max(last, os.stat(self.path).st_mtime_ns // 1000)
        except OSError:
            pass
        at = max(now, last + 1) if last <= now + AHEAD_MAX_MICROS else now
        self._last = last = at + count - 1
        try:
            os.utime(self.path, ns=(last * 1000, last * 1000))
        except (FileNotFoundError, PermissionError):  # the time of another user's file can't be set
            try:
                aside.replace(self.path, b"")
                os.utime(self.path, ns=(last * 1000, last * 1000))
            except OSError:
                pass  # a folder that cannot be written: a write-ahead log elsewhere still takes the line
        except OSError:
            pass
        return at
