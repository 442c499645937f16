"""Processes that take turns: one runs at a time, and a seeded scheduler says at each step who goes on.

A process is a thread of its own, and only the one that has the turn runs. Whatever other processes, or
somebody who pulls the plug, could notice is a step: before it the turn may pass on, the process may be
killed or stopped for a while, and what the world does next may happen. So a run is one sequence of steps,
and its seed gives the same one again.
"""

from __future__ import annotations

import heapq
import os
import threading
import traceback
from collections.abc import Callable
from random import Random
from typing import Any

STEPS_MAX = 200_000  # of one run: more is a loop that does not end
real_close = os.close


def _taken_lock() -> threading.Lock:
    """What one thread waits for by taking it, and another gives by releasing it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Killed(BaseException):
    """The process was killed here. Nothing that it would still do has an effect."""


class Process:
    """One process. Times are microseconds since the run began.

    Attributes:
        kill_at: The step before which it is killed, if it comes so far.
        stop_at: The step before which it is stopped for `stop_micros`, as by a laptop that sleeps.
        inside: Above 0 while it is in a call whose parts are no steps (of the port, of the network).
        alone: Above 0 while it must not lose its turn: it holds a lock that others would wait for in earnest.
        is_confined: Whether it may not write to the git folder, as an agent in a sandbox.
        files: Its open file descriptors that no file object closes, each with the path that it was opened by.
        opened: Every file descriptor with the path that it was last opened by, also where that is closed by now.
    """

    def __init__(self, name: str, where: Any, random: Random, act: Callable[[], None]) -> None:
        self.name = name
        self.where = where
        self.random = random
        self.act = act
        self.kill_at = self.stop_at = -1
        self.stop_micros = 0
        self.steps = 0
        self.wakes = 0
        self.inside = 0
        self.alone = 0
        self.is_dead = False
        self.has_ended = False
        self.is_confined = False
        self.number = 0
        self.ident = 0
        self.files: dict[int, str] = {}
        self.opened: dict[int, str] = {}
        self.databases: list[Any] = []
        self.turn = _taken_lock()
        self.thread: threading.Thread | None = None


class Scheduler:
    """Who runs, what time it is, and what has happened so far.

    Attributes:
        now: Microseconds since the run began; it never goes back.
        trace: What happened: time, process, what.
        running: The process whose turn it is; None while the world acts.
    """

    def __init__(self, random: Random, *, switches: float, step_micros: int) -> None:
        self.random = random
        self.switches = switches
        self.step_micros = step_micros
        self.now = 0
        self.trace: list[tuple[int, str, str]] = []
        self.running: Process | None = None
        self.processes: list[Process] = []
        self.crashes: list[str] = []
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._finished = _taken_lock()

    def at(self, micros: int, act: Callable[[], None]) -> None:
        """Something that the world does at a time, between two steps."""
        self._count += 1
        heapq.heappush(self._waiting, (micros, self._count, act))

    def start(self, process: Process, at: int) -> None:
        """A process that begins at a time."""
        process.number = len(self.processes) + 1
        process.wakes = at
        process.thread = threading.Thread(target=self._live, args=(process,), daemon=True)
        self.processes.append(process)
        process.thread.start()

    def run(self) -> None:
        """Until everything has ended, or was killed, and the world does nothing more."""
        first = self._next()
        if first is not None:
            self._give(first)
            self._finished.acquire()

    def step(self, what: str) -> Process:
        """What is called before anything that others could notice."""
        process = self.mine()
        self._count_step(process, what)
        if process.steps == process.kill_at:
            self.kill(process)
            self._pass(process)
        if process.steps >= process.stop_at >= 0 and not process.alone:
            process.stop_at = -1
            process.wakes = self.now + process.stop_micros
            self.note("stopped")
            self._pass(process)
        elif not process.alone and self.random.random() < self.switches:
            self._pass(process)
        return process

    def sleep(self, seconds: float) -> None:
        process = self.mine()
        self._count_step(process, f"sleep {seconds:.6f}")
        process.wakes = self.now + max(0, int(seconds * 1_000_000))
        self._pass(process)

    def note(self, what: str) -> None:
        """What came of a step."""
        self.trace.append((self.now, self.running.name if self.running else "world", what))

    def mine(self) -> Process:
        process = self.running
        assert process is not None
        if process.is_dead:
            raise Killed
        return process

    def _count_step(self, process: Process, what: str) -> None:
        process.steps += 1
        self.trace.append((self.now, process.name, what))
        if len(self.trace) > STEPS_MAX:
            self.crashes.append(f"{process.name} does not come to an end")
            self.kill(process)
            self._pass(process)
        self.now += 1 + self.random.randrange(self.step_micros)

    def kill(self, process: Process) -> None:
        """As `kill -9`: what the system would clean up is cleaned up, and nothing else."""
        if process.is_dead or process.has_ended:
            return
        self.trace.append((self.now, process.name, "killed"))
        process.is_dead = True
        self._release(process)

    @staticmethod
    def _release(process: Process) -> None:
        for handle in process.files:
            try:
                real_close(handle)
            except OSError:
                continue
        process.files.clear()
        for database in process.databases:
            database.close()

    def bury(self) -> None:
        """End the threads of the dead: every call of theirs raises `Killed`, and none has an effect."""
        for process in self.processes:
            if process.thread is not None and process.thread.is_alive():
                process.is_dead = True
                self.running = process
                process.turn.release()
                process.thread.join()
        self.running = None

    def _live(self, process: Process) -> None:
        process.turn.acquire()
        process.ident = threading.get_ident()
        if process.is_dead:
            return
        try:
            process.act()
        except Killed:
            return
        except BaseException:
            if process.is_dead:
                return  # a handler that fell over what is closed by now
            self.crashes.append(f"{process.name} at {self.now}: {traceback.format_exc()}")
        process.has_ended = True
        self._release(process)
        following = self._next()
        if following is None:
            self._finished.release()
        else:
            self._give(following)

    def _give(self, process: Process) -> None:
        self.running = process
        process.turn.release()

    def _pass(self, process: Process) -> None:
        following = self._next()
        if following is not process:
            if following is None:
                self._finished.release()
            else:
                self._give(following)
            process.turn.acquire()
            if process.is_dead:
                raise Killed
        self.running = process

    def _next(self) -> Process | None:
        """Who goes on. The world acts first where its time has come, and time passes where everybody sleeps."""
        self.running = None
        while True:
            while self._waiting and self._waiting[0][0] <= self.now:
                heapq.heappop(self._waiting)[2]()
            alive = [each for each in self.processes if not each.is_dead and not each.has_ended]
            ready = [each for each in alive if each.wakes <= self.now]
            if ready:
                return self.random.choice(ready) if len(ready) > 1 else ready[0]
            times = [each.wakes for each in alive] + [at for at, _, _ in self._waiting[:1]]
            if not times:
                return None
            self.now = max(self.now, min(times))
