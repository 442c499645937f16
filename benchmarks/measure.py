"""Time two things in turn, so that other load on the machine affects both equally."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence

Timed = Callable[[], float]
TABLE_HEAD = """| what | floor | figure | of the floor | ratio | at most | met? |
|---|---|--:|--:|--:|--:|---|"""


class Figure:
    """One line of the table: two medians in one unit, and the limit of their ratio.

    Attributes:
        at_most: The limit of the ratio; None for a line without a target.
        missing: Why it was not measured; None if it was.
    """

    def __init__(
        self,
        what: str,
        floor: str,
        got: float,
        base: float,
        at_most: float | None,
        unit: str,
        *,
        missing: str | None = None,
    ) -> None:
        self.what = what
        self.floor = floor
        self.got = got
        self.base = base
        self.at_most = at_most
        self.unit = unit
        self.missing = missing

    @property
    def ratio(self) -> float:
        """Our median divided by the floor's."""
        return self.got / self.base

    @property
    def met(self) -> bool | None:
        """Whether the ratio is within the limit; None without a limit or a measurement."""
        return None if self.at_most is None or self.missing else self.ratio <= self.at_most

    def row(self) -> str:
        """Return the line of the table in Markdown."""
        limit = "" if self.at_most is None else f"{self.at_most:g} ×"
        if self.missing:
            return f"| {self.what} | {self.floor} | not measured: {self.missing} | | | {limit} | |"
        met = {True: "yes", False: "**no**", None: ""}[self.met]
        return (
            f"| {self.what} | {self.floor} | {_short(self.got)} {self.unit} | {_short(self.base)} {self.unit}"
            f" | {self.ratio:.2f} × | {limit} | {met} |"
        )


def not_measured(what: str, floor: str, at_most: float | None, why: str) -> Figure:
    """Return a line of the table with the reason why it was not measured."""
    return Figure(what, floor, math.nan, math.nan, at_most, "", missing=why)


class Timing:
    """The milliseconds of a measurement: CPU, with that of awaited children, and wall clock."""

    __slots__ = ("cpu", "wall")

    def __init__(self, cpu: float, wall: float) -> None:
        self.cpu = cpu
        self.wall = wall


def run(
    command: Sequence[str], folder: str, environment: dict[str, str], *, stdin: str = os.devnull
) -> Timing:
    """Run a command to its end, without output.

    Raises:
        RuntimeError: It failed.
    """
    null, given = os.open(os.devnull, os.O_RDWR), os.open(stdin, os.O_RDONLY)
    try:
        quiet = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
        with contextlib.chdir(folder):  # posix_spawn takes no working folder
            start = time.perf_counter()
            pid = os.posix_spawn(command[0], list(command), environment, file_actions=quiet)
        _, status, used = os.wait4(pid, 0)
        passed = time.perf_counter() - start
    finally:
        os.close(null)
        os.close(given)
    if status:
        raise RuntimeError(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return Timing((used.ru_utime + used.ru_stime) * 1e3, passed * 1e3)


def cpu_of(
    command: Sequence[str], folder: str, environment: dict[str, str], *, stdin: str = os.devnull
) -> Timed:
    """Return a function that measures the CPU milliseconds of a command and its awaited children."""
    return lambda: run(command, folder, environment, stdin=stdin).cpu


def wall_of(
    command: Sequence[str], folder: str, environment: dict[str, str], *, stdin: str = os.devnull
) -> Timed:
    """Return a function that measures the milliseconds from the start of a command to its end."""
    return lambda: run(command, folder, environment, stdin=stdin).wall


def in_turn(rounds: int, one: Timed, other: Timed, *, warm: int = 1) -> tuple[float, float]:
    """Return the medians of two measurements that are taken in pairs, with alternating order."""
    for _ in range(warm):
        one()
        other()
    ones, others = [], []
    for number in range(rounds):
        if number % 2:
            others.append(other())
            ones.append(one())
        else:
            ones.append(one())
            others.append(other())
    return statistics.median(ones), statistics.median(others)


def timings_in_turn(
    rounds: int, one: Callable[[], Timing], other: Callable[[], Timing], *, warm: int = 1
) -> tuple[Timing, Timing]:
    """Return both clocks' medians, measured as by `in_turn`."""
    taken: tuple[list[Timing], list[Timing]] = ([], [])

    def recorder(place: int, measure: Callable[[], Timing]) -> Timed:
        def once() -> float:
            taken[place].append(measure())
            return 0.0

        return once

    in_turn(rounds, recorder(0, one), recorder(1, other), warm=warm)
    first, second = (
        Timing(
            statistics.median(each.cpu for each in some[warm:]),
            statistics.median(each.wall for each in some[warm:]),
        )
        for some in taken
    )
    return first, second


def cpu_here(body: Callable[[], object], before: Callable[[], object] = lambda: None) -> Timed:
    """Return a function that measures the CPU milliseconds of a call in this process, without its preparation."""

    def once() -> float:
        before()
        start = time.process_time()
        body()
        return (time.process_time() - start) * 1e3

    return once


def time_here(body: Callable[[], object]) -> Timing:
    """Return both clocks of one call in this process."""
    before, start = cpu(), time.perf_counter()
    body()
    passed = time.perf_counter() - start
    return Timing((cpu() - before) * 1e3, passed * 1e3)


def cpu() -> float:
    """Return the CPU seconds of this process and its awaited children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def wall(body: Callable[[], object]) -> float:
    """Return the milliseconds of a call."""
    start = time.perf_counter()
    body()
    return (time.perf_counter() - start) * 1e3


def p95(took: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(took)[min(len(took) - 1, int(len(took) * 0.95))]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def show_progress(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)
