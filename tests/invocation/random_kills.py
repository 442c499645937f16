"""Callers, a worker, and a gateway with its clients, each of which is killed again and again, all at the same time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.invocation.killable import Process, Scenario, run
from tests.invocation.killed_world import World

CALLERS, CLIENTS = 3, 2
TRIES_MAX = 20
INTERRUPTED = 130  # the exit status of a gateway after Ctrl-C
CALL_TIMEOUT = "30s"
KILLS_PER_RESULT = 2  # at most: else everybody dies at the beginning, on a busy machine


class RandomKills:
    """Kills at times that a seed draws.

    Args:
        kills: How many processes to kill.
        pause: Seconds between two kills, at most.
        port: Of the gateway.

    Attributes:
        unfinished: The keys of calls without a result.
    """

    def __init__(self, world: World, seed: int, kills: int, pause: float, port: int) -> None:
        self.world = world
        self.draw = random.Random(seed)
        self.kills = kills
        self.pause = pause
        self.port = port
        self.token = world.token("client")
        self.unfinished: set[str] = set()
        self._living: dict[str, list[Process]] = {"caller": [], "worker": [], "gateway": []}
        self._waiting = CALLERS + CLIENTS

    def run(self) -> None:
        """Go on until so many were killed, and everybody who was not has a result."""
        lanes = [
            self._serve("worker", lambda: self.world.worker("prices")),
            self._serve("gateway", lambda: self.world.gateway("prices", self.port)),
            *(self._ask(f"call{lane}", self._call) for lane in range(CALLERS)),
            *(self._ask(f"message{lane}", self._message) for lane in range(CLIENTS)),
            self._kill(),
        ]
        run(iter(lanes), len(lanes))

    @property
    def _is_over(self) -> bool:
        return sum(self.world.kills.values()) >= self.kills

    def _ask(self, name: str, start: Callable[[str], Process]) -> Scenario:
        """Ask for one result after the other, each as often as it takes."""
        number = 0
        while not self._is_over:
            key, number = f"{name}-{number}", number + 1
            for _ in range(TRIES_MAX):
                process = start(key)
                yield from process.ended()
                if self.world.note(key, process):
                    break
            else:
                self.unfinished.add(key)
        self._waiting -= 1

    def _call(self, key: str) -> Process:
        found = self.world.call(key, "prices", timeout=CALL_TIMEOUT)
        self._living["caller"].append(found)
        return found

    def _message(self, key: str) -> Process:
        return self.world.client(key, self.port, self.token)

    def _serve(self, kind: str, start: Callable[[], Process]) -> Scenario:
        """Start the next one whenever one was killed."""
        while self._waiting:
            process = start()
            self._living[kind].append(process)
            while process.is_running and self._waiting:
                yield
            yield from process.stop()
            assert process.was_killed or process.status in (0, INTERRUPTED), process.err
            if kind == "worker":
                yield from self.world.programs_end()

    def _kill(self) -> Scenario:
        while not self._is_over:
            while sum(self.world.kills.values()) >= KILLS_PER_RESULT * (len(self.world.shown) + 1):
                yield
            until = time.monotonic() + self.draw.random() * self.pause
            while time.monotonic() < until:
                yield
            kind = self.draw.choice(["caller", "caller", "worker", "gateway"])
            self._living[kind] = [each for each in self._living[kind] if each.is_running]
            if self._living[kind]:
                self.draw.choice(self._living[kind]).send()
                self.world.kills[kind] += 1
            yield
