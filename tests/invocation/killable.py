"""Processes of gitmem that a test can kill: at their nth step, or at any time. They are forked, so that they start at once."""

from __future__ import annotations

import ctypes
import faulthandler
import io
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from tests.hazards.faults import SystemCall

# What others see: a synced file, a name, a process that starts or ends, an output. Files that are opened for writing count, too. A kill
# is before the step; what only fills files has tests of its own.
STEPS = (
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "link",
    "unlink",
    "posix_spawn",
    "pipe",
    "killpg",
)
FOREVER_SECONDS = 150.0  # longer than anything here may take: a minute after a lease, and as much again
PAUSE_SECONDS = 0.01

DESCRIPTORS_MAX = 1024
PR_SET_PDEATHSIG = 1

Scenario = Generator[None, None, None]


class _CountedFile(io.FileIO):
    """A file each write to which is a step."""

    fault: SystemCall

    def write(self, data: Any) -> int:
        self.fault.count()
        return super().write(data) or 0


class Process:
    """A forked process that runs a command, or a function.

    Args:
        step: It is killed just before this step; 0 for never.
    """

    def __init__(self, folder: Path, job: Callable[[], int], notes: Path, step: int = 0) -> None:
        notes.parent.mkdir(exist_ok=True)
        self._out, self._err = notes.with_suffix(".out"), notes.with_suffix(".err")
        self._status: int | None = None
        self._started = time.monotonic()
        for each in (self._out, self._err):
            each.touch()
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            status = 70
            try:
                _die_with_the_test(parent)
                status = self._run(folder, job, SystemCall(step, STEPS, kills=True))
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 70
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(status)

    def _run(self, folder: Path, job: Callable[[], int], fault: SystemCall) -> int:
        for number, path in ((1, self._out), (2, self._err)):
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.dup2(file, number)
            os.close(file)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.closerange(3, DESCRIPTORS_MAX)  # of the test run: whoever reads them would wait for this process
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        faulthandler.register(signal.SIGUSR1, 2, all_threads=True)
        os.chdir(folder)
        _CountedFile.fault = fault
        out, err = (io.BufferedWriter(_CountedFile(each, "wb", closefd=False)) for each in (1, 2))
        sys.stdout = io.TextIOWrapper(out, encoding="utf-8")
        sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
        fault.prepare()
        _count_forks(fault)
        status = job()
        sys.stdout.flush()
        fault.count()  # it has answered, and not ended
        return status

    @property
    def out(self) -> str:
        """What it has printed."""
        return self._out.read_text()

    @property
    def err(self) -> str:
        """What it has printed on standard error."""
        return self._err.read_text()

    @property
    def answer(self) -> dict[str, Any] | None:
        """The JSON that it has printed, if that is whole."""
        text = self.out
        return dict(json.loads(text)) if text.endswith("}\n") else None

    @property
    def is_running(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is None

    @property
    def was_killed(self) -> bool:
        return not self.is_running and os.WIFSIGNALED(self._status or 0)

    @property
    def status(self) -> int:
        """Its exit status."""
        assert not self.is_running and not self.was_killed, self.err
        return os.waitstatus_to_exitcode(self._status or 0)

    def send(self, number: int = signal.SIGKILL) -> None:
        if self.is_running:
            os.kill(self.pid, number)

    def ended(self, seconds: float = FOREVER_SECONDS) -> Scenario:
        """Wait for its end; the test fails if that takes too long."""
        end = time.monotonic() + seconds
        while self.is_running:
            if time.monotonic() > end:
                self.send(signal.SIGUSR1)  # where it hangs
                time.sleep(1)
                raise AssertionError(f"it hangs: {self._out.name}: {self.out}{self.err}")
            yield

    def stop(self) -> Scenario:
        """End a worker or gateway as Ctrl-C does, once it serves."""
        while self.is_running and "serving" not in self.err:
            yield
        self.send(signal.SIGINT)
        yield from self.ended()


def _count_forks(fault: SystemCall) -> None:
    """Let each start of a process by `subprocess` be a step, as one of `os` is."""
    real = subprocess._fork_exec  # type: ignore[attr-defined]

    def fork_exec(*args: Any) -> int:
        fault.count()
        return int(real(*args))

    subprocess._fork_exec = fork_exec  # type: ignore[attr-defined]


def _die_with_the_test(parent: int) -> None:
    """Let Linux kill this process if the test run dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def is_alive(pid: int) -> bool:
    """Whether a process runs: an ended one that nobody waits for counts as ended."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def run(scenarios: Iterator[Scenario], lanes: int = 1) -> None:
    """Run scenarios to their ends, some of them at the same time."""
    running: list[Scenario] = []
    is_last = False
    while running or not is_last:
        while len(running) < lanes and not is_last:
            following = next(scenarios, None)
            is_last = following is None
            if following is not None:
                running.append(following)
        running = [each for each in running if _goes_on(each)]
        time.sleep(PAUSE_SECONDS)


def _goes_on(scenario: Scenario) -> bool:
    try:
        next(scenario)
    except StopIteration:
        return False
    return True
