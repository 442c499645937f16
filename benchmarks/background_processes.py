"""Background processes that outlive their command: adopt them, wait for them, and count their CPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

WAIT_SECONDS = 60.0
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37


class AdoptedProcesses:
    """Makes orphaned processes children of this one while it is entered. Linux only.

    Attributes:
        works: False on other systems: then nothing is adopted, and `wait` returns at once.
    """

    def __init__(self) -> None:
        self.works = sys.platform == "linux"
        self._before = 0
        self._known: set[int] = set()

    def __enter__(self) -> AdoptedProcesses:
        if self.works:
            before = ctypes.c_int()
            _prctl(_GET_CHILD_SUBREAPER, ctypes.addressof(before))
            self._before = before.value
            _prctl(_SET_CHILD_SUBREAPER, 1)
            self._known = _children()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self.works:
            try:
                self.wait()
            finally:
                _prctl(_SET_CHILD_SUBREAPER, self._before)

    def wait(self, seconds: float = WAIT_SECONDS) -> float:
        """Wait until every adopted process has ended.

        Returns:
            The milliseconds of CPU that they and the children that they waited for used.

        Raises:
            TimeoutError: A process still runs after this many seconds.
        """
        used, until = 0.0, time.monotonic() + seconds
        while left := (_children() - self._known if self.works else set()):
            for pid in left:
                with contextlib.suppress(ChildProcessError):  # another thread waited for it
                    ended, _, usage = os.wait4(pid, os.WNOHANG)
                    used += (usage.ru_utime + usage.ru_stime) * 1e3 if ended else 0.0
            if time.monotonic() > until:
                raise TimeoutError(f"processes {sorted(left)} still run after {seconds:g} s")
            time.sleep(0.01)
        return used


def _prctl(what: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(what, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({what}) failed")


def _children() -> set[int]:
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:
            found.update(map(int, file.read().split()))
    return found
