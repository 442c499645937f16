"""What is behind standard output: a terminal with colours and a width, or a pipe; and the progress of long operations on standard error.

Text is sanitized before it is painted: sanitizing escapes every control character, also those of colours.
"""

from __future__ import annotations

import os
import sys
import time

from gitmem.text.sanitize import columns_of, sanitize, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO


GOOD, BAD, CAREFUL, QUIET, HEAD = "32", "31", "33", "2", "1"  # parameters of SGR
# By the word that is painted, or by the meaning that the caller gives to a word.
STYLES = {
    "INFO": "36", "PROPOSE": CAREFUL, "COUNTER": "35", "AGREE": GOOD, "REJECT": BAD,
    "agree": GOOD, "reject": BAD, "counter": "35", "pending": CAREFUL,
    "live": GOOD, "idle": CAREFUL, "gone": QUIET, "ended": QUIET,
    "problem": BAD, "needs-you": BAD, "note": CAREFUL, "fixed": GOOD,
    "working": CAREFUL, "completed": GOOD, "done, not yet accepted": GOOD, "failed": BAD, "failed, not yet accepted": BAD,
    "good": GOOD, "bad": BAD, "careful": CAREFUL, "quiet": QUIET, "head": HEAD,
}  # fmt: skip
COLUMN_MIN = 8  # a column that is shortened keeps this many, or is left out
GAP = "  "


class Terminal:
    """The terminal on standard output, or a pipe that shall get colours.

    Args:
        variables: The environment. `NO_COLOR`, `FORCE_COLOR` and `COLUMNS` count if they are not empty; of the first two
            the first wins.
        is_terminal: Whether standard output is a terminal.

    Attributes:
        has_colour: Whether it gets colours.
        columns: Its width; 0 for no limit.
    """

    def __init__(self, variables: Mapping[str, str], *, is_terminal: bool) -> None:
        wanted = variables.get("FORCE_COLOR") or variables.get("TERM") != "dumb"
        self.has_colour = bool(wanted) and not variables.get("NO_COLOR")
        self.columns = _columns(variables) if is_terminal else 0

    def paint(self, text: str, style: str = "") -> str:
        """Return text in the colour of a style, by default of the text itself; unchanged if that has none."""
        code = STYLES.get(style or text)
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and code and text else text

    def table(
        self,
        rows: Sequence[Sequence[str]],
        shortened: Sequence[int],
        painted: Callable[[int, int, str], str],
    ) -> list[str]:
        """Return the lines of a table, see `text.table`."""
        widths = [max(map(columns_of, cells)) for cells in zip(*rows, strict=True)]
        if self.columns:
            _fit(widths, shortened, self.columns)
        lines = []
        for number, row in enumerate(rows):
            cells, whole = [], []
            for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
                if columns_of(cell) > width and at not in shortened:
                    whole.append(GAP + cell)  # an id: in full, in a line of its own
                if width:
                    shown = within(cell, width)
                    cells.append(painted(number, at, shown) + " " * (width - columns_of(shown)))
            lines += [GAP.join(cells).rstrip(), *whole]
        return lines


def is_everywhere() -> bool:
    """Return whether all standard streams are terminals, as a screen needs that reads keys."""
    try:
        return all(each is not None and each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr))
    except ValueError:  # closed
        return False


def is_read() -> bool:
    """Return whether standard output may have a reader; False only if the reader of a pipe is known to be gone."""
    try:
        import select

        look = select.poll()
        look.register(sys.stdout.fileno(), 0)
        return not any(event & (select.POLLERR | select.POLLNVAL) for _, event in look.poll(0))
    except (AttributeError, OSError, ValueError, ImportError):
        return True  # not supported here


def _columns(variables: Mapping[str, str]) -> int:
    """Return the width in `COLUMNS`, otherwise that of the terminal; 0 if neither is known."""
    try:
        return max(0, int(variables.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError, AttributeError):
        return 0


def _fit(widths: list[int], shortened: Sequence[int], columns: int) -> None:
    """Reduce widths until a line fits: of columns that may be shortened, in their order, and then of those with ids.

    No id takes more than half of the line, so a peer's long name doesn't hide what the others do.
    """
    ids = [at for at in range(len(widths)) if at not in shortened]
    for at in ids:
        widths[at] = min(widths[at], max(columns // 2, COLUMN_MIN))
    for least in (COLUMN_MIN, 0):
        for at in shortened:
            left = widths[at] - _over(widths, columns)
            if left < widths[at]:
                widths[at] = max(left, min(least, widths[at]))
                if widths[at] < COLUMN_MIN // 2 and not least:
                    widths[at] = 0
    for at in sorted(ids, key=lambda at: -widths[at]):
        widths[at] = max(min(widths[at], COLUMN_MIN), widths[at] - max(0, _over(widths, columns)))


def _over(widths: Sequence[int], columns: int) -> int:
    """Return by how many columns a line is too long."""
    shown = [width for width in widths if width]
    return sum(shown) + len(GAP) * (len(shown) - 1) - columns


AFTER_SECONDS = 1.0
EVERY_SECONDS = 0.1
PAUSE_SECONDS = 0.25  # with all steps done and no report for so long, another operation has begun
IDLE_SECONDS = 10.0  # after that, its steps begin at 0 again
ERASE = "\x1b[K"


class Progress:
    """The progress of one operation, as its steps report it. What a step has done never goes back.

    Args:
        stream: Standard error, a terminal, where a line can be replaced.
        after: Seconds until the first line.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        after: float = AFTER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
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
        if is_news or now - self._shown >= EVERY_SECONDS:
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
        self._write(f"\r{line}{ERASE}")

    def end(self) -> None:
        """End the line: something else is printed."""
        if self._line:
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
