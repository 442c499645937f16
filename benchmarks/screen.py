"""The live screen: its start, and a key press, on a terminal of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import termios
import time

from . import workbench as workbenches
from .measure import Figure
from .workbench import Workbench

COLUMNS, LINES = 120, 40
START_MILLISECONDS, KEY_MILLISECONDS = 1000.0, 50.0
KEYS = 40
WAIT_SECONDS = 60.0
QUIET_SECONDS = 1.0  # between the start and the first key, so that nothing of the start is left
GAP_SECONDS = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


class Screen:
    """`gitmem top` in a process of its own.

    Args:
        workbench: Where its program is.
        where: The repository.
        session: Who looks.
    """

    def __init__(self, workbench: Workbench, where: str, session: str) -> None:
        self.terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {**workbench.environment, "TERM": "xterm-256color", "GITMEM_SESSION": session}
        self.process = subprocess.Popen(
            [workbench.program("gitmem"), "top"], cwd=where, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def until(self, pattern: bytes) -> None:
        """Wait until the screen has drawn this.

        Raises:
            TimeoutError: It has not.
        """
        drawn, end = b"", time.monotonic() + WAIT_SECONDS
        while re.search(pattern, drawn) is None:
            if not select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"gitmem top has not drawn {pattern!r} but {drawn[-500:]!r}")
            drawn += os.read(self.terminal, 65536)

    def press(self, key: bytes) -> None:
        """Type a key."""
        os.write(self.terminal, key)

    def skip(self) -> None:
        """Leave out what was drawn."""
        while select.select([self.terminal], [], [], 0)[0]:
            os.read(self.terminal, 65536)

    def cpu(self) -> float:
        """Return the CPU milliseconds that the process has used."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e3 / TICKS

    def end(self) -> float:
        """End the screen; return the CPU milliseconds of its whole life, with all its children."""
        self.press(b"q")
        with contextlib.suppress(OSError):  # the terminal is closed
            while os.read(self.terminal, 65536):
                continue
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self.terminal)
        assert self.process.returncode == 0
        return (used.ru_utime + used.ru_stime) * 1e3


def screen(workbench: Workbench) -> list[Figure]:
    """Measure the start of `gitmem top` and a key press, with a tenth of the many signals."""
    count = workbench.size.many // 10
    where = workbench.repository("screen")
    session = workbenches.start(where, "Caller")
    workbenches.publish(where, workbenches.sessions(workbenches.START))
    workbenches.publish(where, workbenches.history(count), commits=20)
    with workbenches.open_log(where) as log:
        log.store.db()  # updates the index
    starts, lives = [], []
    for _ in range(min(9, workbench.size.rounds)):
        began = time.perf_counter()
        seen = Screen(workbench, where, session)
        seen.until(rb"Threads [1-9]")
        starts.append((time.perf_counter() - began) * 1e3)
        lives.append(seen.end())
    keys, cpu = _keys(Screen(workbench, where, session))
    what, limit = f"`gitmem top` at {count:,} signals", "the limit"
    return [
        Figure(f"{what}: start to the lists, median, wall", limit, statistics.median(starts), START_MILLISECONDS, 1, "ms"),
        Figure(f"{what}: start and end, median, CPU", limit, statistics.median(lives), START_MILLISECONDS, 1, "ms"),
        Figure(f"{what}: a key press to its row, median of {KEYS}, wall", limit, keys, KEY_MILLISECONDS, 1, "ms"),
        Figure(f"{what}: a key press, mean of {KEYS}, CPU", limit, cpu, KEY_MILLISECONDS, 1, "ms"),
    ]  # fmt: skip


def _keys(seen: Screen) -> tuple[float, float]:
    """Return the milliseconds from a key press to its row, the median, and the CPU of one."""
    seen.until(rb"Threads [1-9]")
    time.sleep(QUIET_SECONDS)
    took, before = [], seen.cpu()
    for number in range(KEYS):
        seen.skip()
        began = time.perf_counter()
        seen.press(b"j" if number % 4 else b"k")
        seen.until(rb"\x1b\[[0-9;]*m")
        took.append((time.perf_counter() - began) * 1e3)
        time.sleep(GAP_SECONDS)
    used = (seen.cpu() - before) / KEYS
    seen.end()
    return statistics.median(took), used
