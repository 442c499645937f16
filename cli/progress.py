"""What a command says on standard error while it takes long."""

from __future__ import annotations

from .render import out

PROGRESS_SECONDS = 1.0


class Progress:
    """Says on standard error that the index is being built, where that takes more than a second."""

    def __init__(self) -> None:
        self._began = self._shown = 0.0
        self._done = 0

    def __call__(self, done: int) -> None:
        import time

        now = time.monotonic()
        if done <= self._done or not self._began:  # it began anew: a watch lives long
            self._began = now
        self._done = done
        if now - self._began > PROGRESS_SECONDS and now - self._shown > PROGRESS_SECONDS:
            self._shown = now
            out.complain(f"gitmem: reading the log into the index, {done} lines so far")


PROGRESS = Progress()
