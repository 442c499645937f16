"""Progress of a running task that waits to be recorded: at most once a second, texts in a row as one."""

from __future__ import annotations

import threading
import time

from .runs import RESULT_MAX_BYTES
from .served_task import Artifact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .served_task import Report

PROGRESS_SECONDS = 1.0  # between two records of progress


class Progress:
    """Progress that waits to be recorded. Another thread adds to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Report] = []
        self._next = 0.0

    def add(self, report: Report) -> None:
        """Let a report wait."""
        with self._lock:
            self._waiting.append(report if isinstance(report, Artifact) else str(report))

    def due(self, *, last: bool) -> list[Report]:
        """Return what to record now, in order: at most once a second; texts in a row as one, of a long one its end."""
        with self._lock:
            if not self._waiting or (time.monotonic() < self._next and not last):
                return []
            waiting, self._waiting = self._waiting, []
            self._next = time.monotonic() + PROGRESS_SECONDS
        found: list[Report] = []
        for each in waiting:
            if isinstance(each, str) and found and isinstance(found[-1], str):
                found[-1] = f"{found[-1]}\n{each}"
            else:
                found.append(each)
        return [_cut(each) if isinstance(each, str) else each for each in found]

    def put_back(self, reports: Sequence[Report], seconds: float) -> None:
        """Let reports that could not be recorded wait again, for some time."""
        with self._lock:
            self._waiting[:0] = reports
            self._next = time.monotonic() + seconds


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[-RESULT_MAX_BYTES:].decode("utf-8", "ignore")
