"""A watch: the delay between a signal and its display, and the cost of waiting."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

from . import workbench as workbenches
from .measure import Figure, p95, wall
from .workbench import Workbench

LATE_MILLISECONDS = 150.0
IDLE_MILLISECONDS = 300.0
GAP_SECONDS = 0.3  # the longest pause between two signals, so they arrive at any phase of its polling
READY = "press Ctrl-C to end"
# A watch polls rarely while nothing happens. This one always does, as if each signal were the first for a while.
AS_IF_QUIET = """
import runpy, sys
sys.argv = sys.argv[1:]
main = runpy.run_path(sys.argv[0])["main"]
import gitmem.signals.watch as waking
waking.BUSY_SECONDS = 0.0
sys.exit(main())
"""


class Watching:
    """A watch of one agent in one worktree; another agent sends from a second worktree."""

    def __init__(self, workbench: Workbench, name: str, command: list[str]) -> None:
        self.where = workbench.repository(name)
        self.other = self.where + "-other"
        workbench.git(self.where, "worktree", "add", "--quiet", "--detach", self.other)
        self.speaker = workbenches.start(self.other, "Speaker")
        workbenches.publish(self.where, workbenches.sessions(workbenches.START))
        workbenches.publish(self.where, workbenches.history(workbench.size.few))
        reader = workbenches.start(self.where, "Reader")  # its record makes the index complete
        self.process = subprocess.Popen(
            command, cwd=self.where, env={**workbench.environment, "GITMEM_SESSION": reader},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out = self.process.stdout
        while READY not in self.process.stderr.readline():
            assert self.process.poll() is None

    def until_printed(self, text: str) -> None:
        """Wait until the watch has printed a text."""
        while text not in self.out.readline():
            assert self.process.poll() is None

    def end(self) -> float:
        """End the watch; return the CPU milliseconds of its whole life, with all its git processes."""
        self.process.send_signal(signal.SIGINT)
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        assert self.process.returncode == 0
        return (used.ru_utime + used.ru_stime) * 1e3


def latency(workbench: Workbench) -> list[Figure]:
    """Measure the p95 from the call of `signals.send` in one worktree to the line that a watch in another prints."""
    watch = [workbench.program("gitmem"), "watch", "--json"]
    count = min(200, workbench.size.sends)
    what = f"`signals.send` in one worktree → printed by `gitmem watch` in another, p95 of {count}"
    limit = "the limit"
    quiet = [sys.executable, "-c", AS_IF_QUIET, *watch]
    found = [
        Figure(f"{what}, one after the other", limit, _sent(workbench, "watch", watch, count), LATE_MILLISECONDS, 1, "ms"),
        Figure(f"{what}, each after a quiet time", limit, _sent(workbench, "watch-quiet", quiet, count),
               LATE_MILLISECONDS, 1, "ms"),
    ]  # fmt: skip
    typed = _typed(workbench, watch, min(100, count))
    return [
        *found,
        Figure("`gitmem signal` typed → printed, p95", limit, typed, LATE_MILLISECONDS, None, "ms"),
    ]


def _sent(workbench: Workbench, name: str, command: list[str], count: int) -> float:
    seen = Watching(workbench, name, command)
    took = []
    with workbenches.open_log(seen.other, seen.speaker, commit_after=None) as log:
        for number in range(count):
            time.sleep(random.uniform(0, GAP_SECONDS))

            def once(text: str = f"number {number} of them") -> None:
                log.signals.send(text, to=["Reader"])
                seen.until_printed(text)

            took.append(wall(once))
    seen.end()
    return p95(took)


def _typed(workbench: Workbench, command: list[str], count: int) -> float:
    seen = Watching(workbench, "watch-typed", command)
    environment = {**workbench.environment, "GITMEM_SESSION": seen.speaker}
    took = []
    for number in range(count):
        time.sleep(random.uniform(0, GAP_SECONDS))

        def once(text: str = f"number {number} of them") -> None:
            say = [workbench.program("gitmem"), "signal", text, "--to", "Reader"]
            with subprocess.Popen(say, cwd=seen.other, env=environment, stdout=subprocess.DEVNULL):
                seen.until_printed(text)

        took.append(wall(once))
    seen.end()
    return p95(took)


def idle(workbench: Workbench) -> list[Figure]:
    """Measure all CPU of a watch that sees nothing for a minute, with its start and its end."""
    seconds = min(60.0, 1.5 * workbench.size.rounds)
    seen = Watching(workbench, "watch-idle", [workbench.program("gitmem"), "watch"])
    time.sleep(seconds)
    used = seen.end()
    what = f"`gitmem watch` idle for {seconds:g} s, CPU with its start"
    return [Figure(what, "the limit", used, IDLE_MILLISECONDS, 1, "ms")]
