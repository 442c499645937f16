"""One run: a seed, a place, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from gitmem.log import ref, squash

from . import agent_actions, checks
from .adversary import Adversary
from .disk import Disk
from .faults import Faults, Hand
from .patched_system import PatchedSystem
from .scheduler import Scheduler
from .storage import InMemory, OnDisk
from .world import SECOND, World

PLACES = {"memory": InMemory, "disk": OnDisk}
HEALING = 60 * SECOND
NAMES = "abcd"


class Run:
    """What came of a seed: what is wrong, if anything is, and what happened."""

    def __init__(self, seed: int, world: World) -> None:
        self.seed = seed
        self.world = world
        self.wrong: list[str] = []
        self.spawned = 0

    @property
    def trace(self) -> list[str]:
        return [f"{at / SECOND:.6f} {name} {what}" for at, name, what in self.world.turns.trace]

    @property
    def outcomes(self) -> list[str]:
        return self.world.outcomes


def simulate(
    seed: int,
    root: Path,
    place: str = "memory",
    *,
    hostile: bool = False,
    forgetful: bool = False,
    voting: bool = False,
) -> Run:
    """Run a seed below a folder that does not exist yet.

    Args:
        seed: What everything is drawn from.
        root: The folder to make.
        place: `memory`, or `disk` for real repositories.
        hostile: Whether an adversary pushes to the remote all the time.
        forgetful: Whether texts are forgotten, and the log is written anew.
        voting: Whether agents of three clones, one of them offline for a while, propose with need and veto.
    """
    random = Random(seed)
    root.mkdir(parents=True)
    turns = Scheduler(
        random, switches=random.choice([0.02, 0.1, 0.3, 0.6]), step_micros=random.choice([50, 500, 5_000])
    )
    places = PLACES[place](root)
    world = World(seed, turns, places)
    world.weather = Faults(random)
    world.forgetful = forgetful
    world.voting = voting
    run = Run(seed, world)

    def disk(path: str) -> Disk | None:
        return turns.running.where.on_disk(path) if turns.running is not None else None

    around = PatchedSystem(turns, disk)
    limits = {
        "SEGMENT_MAX_BYTES": (ref, random.choice([900, 4_000, ref.SEGMENT_MAX_BYTES])),
        "EACH_MAX": (squash, random.choice([1, squash.EACH_MAX])),
    }
    with places.entered(), around.exchanged(), _set(limits):
        try:
            adversary = Adversary(world, Random(f"{seed} adversary")) if hostile else None
            _live(world, random, adversary)
            _heal(world, random)
            run.wrong = checks.healed(world)
        finally:
            turns.bury()
            run.spawned = around.spawned
            world.close()
    return run


@contextmanager
def _set(limits: Mapping[str, tuple[Any, int]]) -> Iterator[None]:
    """Smaller limits than those of the product: what is rare there happens in a run of seconds."""
    with ExitStack() as stack:
        for name, (module, value) in limits.items():
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def _live(world: World, random: Random, adversary: Adversary | None) -> None:
    hand = world.hand = Hand(world, random)
    for name in NAMES[: 3 if world.voting else random.choice([1, 2, 3, 3, 4, 4])]:
        clone = world.add_clone(name)
        clone.cannot_lock = world.weather.has_no_locks
        clone.disk.errors = world.weather.io_errors
        if random.random() < 0.3:
            clone.skew = int(random.choice([-86_000, -4_000, -61, -2, 2, 61, 4_000, 86_000]) * SECOND)
    until = random.choice([3, 12, 60]) * SECOND
    hand.schedule(until)
    if adversary is not None:
        adversary.schedule(until, adversary.random.randrange(2, 12))
    if world.voting:
        _leave_one_offline(world, random, until)
    crowd = Crowd(world, hand, random)
    for _ in range(random.randrange(30, 60) if world.voting else random.randrange(4, 18)):
        crowd.somebody(random.randrange(until))
    for _ in range(random.choice([0, 1, 2, 3, 4, 6])):
        crowd.rush(random.randrange(until))
    world.turns.run()


def _leave_one_offline(world: World, random: Random, until: int) -> None:
    """From some time on one clone reaches no remote, as a rule until all is over."""
    clone = random.choice(world.clones)

    def leave() -> None:
        clone.is_offline = True

    world.turns.at(random.randrange(until), leave)


class Crowd:
    """Who comes when, and what for."""

    def __init__(self, world: World, hand: Hand, random: Random) -> None:
        self.world = world
        self.hand = hand
        self.random = random
        self.count = 0

    def somebody(self, at: int) -> None:
        long = self.random.random() < 0.15
        count = self.random.randrange(4, 9) if long else self.random.choice([1, 1, 1, 2, 3])
        plan = agent_actions.drawn(
            self.random,
            count,
            forgetful=self.world.forgetful,
            hostile=bool(self.world.stranger),
            voting=self.world.voting,
        )
        self._comes(at, self.random.random(), plan, self.random.choice([0.5, 5.0, 20.0]) if long else 0.0)

    def rush(self, at: int) -> None:
        """Many at once: writers in one clone, or syncs of all."""
        one = self.random.random() if self.random.random() < 0.4 else None
        plan = self.random.choice(
            [
                ["say"],
                ["say", "sync"],
                ["sync"],
                ["sync", "say", "sync"],
                ["read", "say"],
                ["say", "sync", "say"],
            ]
        )
        for number in range(self.random.randrange(2, 9)):
            share = one if one is not None else number / 8
            self._comes(at + self.random.randrange(20_000), share, plan, 0.0)

    def _comes(self, at: int, share: float, plan: list[str], gap: float) -> None:
        """A process in the clone that is this far along the list of clones, with those that are copied by then."""
        self.count += 1
        name = str(self.count)

        def begin() -> None:
            clone = self.world.clones[int(share * len(self.world.clones))]
            process = agent_actions.process(self.world, clone, name, plan, gap)
            self.hand.doom(process)
            self.world.turns.start(process, self.world.turns.now)

        self.world.turns.at(at, begin)


def _repair(world: World, random: Random) -> None:
    """Somebody repairs the shared branch, as the answer of a sync says; a clone that never synced may not be able to."""
    for clone in random.sample(world.clones, len(world.clones)):
        if world.hub.tip(ref.BRANCH) in world.bad:
            world.tamper()
            process = agent_actions.process(world, clone, "repairing", ["sync", "repair"])
            world.turns.start(process, world.turns.now)
            world.turns.run()
    tip = world.hub.tip(ref.BRANCH)
    if tip is not None and tip in world.bad:
        if tip not in world.newer and any(world.local_tip(clone) is not None for clone in world.clones):
            world.wrong.append(f"nobody could repair {tip}")
        world.places.delete_on_hub(ref.BRANCH)  # as an administrator would where no clone has a log


def _heal(world: World, random: Random) -> None:
    """Everything is started again, and each clone syncs a few times: who draws no lot leaves the folding to others."""
    weather = world.weather
    weather.lost_request = weather.lost_reply = weather.hangs = weather.raced = 0.0
    world.is_away = False
    for clone in world.clones:
        clone.is_offline = clone.disk.is_full = clone.cannot_lock = False
        clone.disk.errors = 0.0
        for lock in sorted((clone.root / ".git" / "refs").rglob("*.lock")):
            os.utime(lock, (0, 0))  # also where a clock that jumped would take it for a young one
    world.turns.switches = 0.0
    world.turns.now += HEALING
    if world.hostile:
        _repair(world, random)
    for turn in range(4):
        for clone in random.sample(world.clones, len(world.clones)):
            process = agent_actions.process(world, clone, f"healing{turn}", ["sync"])
            world.turns.start(process, world.turns.now)
            world.turns.run()
