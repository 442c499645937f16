"""Show how far a long operation is, on standard error: each step in a line, and none within the first second."""

from __future__ import annotations

import time

from gitmem.text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

AFTER_SECONDS = 1.0
EVERY_SECONDS = 0.1  # on a terminal, where a line replaces the last one
LINE_EVERY_SECONDS = 1.0
PAUSE_SECONDS = 0.25  # with all steps done and no report for so long, another operation has begun
IDLE_SECONDS = 10.0  # after that, its steps begin at 0 again
ERASE = "\x1b[K"


class Progress:
    """The progress of one operation, as its steps report it. What a step has done never goes back.

    Args:
        stream: Standard error.
        rewrites: Whether it is a terminal, where a line can be replaced.
        after: Seconds until the first line.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        rewrites: bool,
        after: float = AFTER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._rewrites = rewrites
        self._after = after
        self._clock = clock
        self._began = self._last = clock()
        self._shown = 0.0
        self._steps: dict[str, tuple[int, int, int]] = {}  # before this part; done and total of this part
        self._named: set[str] = set()  # steps that were shown
        self._line = ""  # the line that is not ended yet

    def __call__(self, step: str, done: int, total: int) -> None:
        """Report that a step has done so much of a total; a step with nothing to do is not shown.

        A step that begins again goes on with a larger total.
        """
        if total <= 0 and done <= 0:
            return
        now = self._clock()
        if now - self._last > PAUSE_SECONDS and all(part >= whole for _, part, whole in self._steps.values()):
            self._began = now
        if now - self._last > IDLE_SECONDS:
            self._began = now
            self._steps.clear()
        self._last = now
        before, last, whole = self._steps.get(step, (0, 0, 0))
        if done < last:
            before += max(last, whole)
        self._steps[step] = before, done, max(done, total)
        if now - self._began < self._after:
            return
        is_news = step not in self._named or (done >= total and self._line.startswith(_head(step)))
        if is_news or now - self._shown >= (EVERY_SECONDS if self._rewrites else LINE_EVERY_SECONDS):
            self._shown = now
            self._named.add(step)
            self._show(step, before + done, before + max(done, total))

    def _show(self, step: str, done: int, total: int) -> None:
        line = f"{_head(step)}{done:,} of {total:,}"
        if not self._line.startswith(_head(step)):
            self.end()
        elif line == self._line:
            return
        self._line = line
        self._write(f"\r{line}{ERASE}" if self._rewrites else f"{line}\n")

    def end(self) -> None:
        """End the line: something else is printed."""
        if self._line and self._rewrites:
            self._write("\n")
        self._line = ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads it
            return


def delay(variables: Mapping[str, str]) -> float:
    """Return the seconds after which progress is shown: those of git's GIT_PROGRESS_DELAY if it is set."""
    try:
        return float(variables.get("GIT_PROGRESS_DELAY") or AFTER_SECONDS)
    except ValueError:
        return AFTER_SECONDS


def _head(step: str) -> str:
    """Return the beginning of a step's line. A step may name a remote, whose name a peer may have chosen."""
    return f"gitmem: {sanitize(step, keep='')}: "
