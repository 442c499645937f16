"""Whether messages and claims keep agents from colliding: `python -m benchmarks.collisions [--quick] [--history REPOSITORY]`.

Scripted agents in several clones change the files of a real repository by a plan that a seed fixes: once with nothing, once
with messages only, once with claims and the radar. The clock is simulated; git, the log and its sync are real.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from .collision_agents import TOOLS, Agent, Claims, Logged
from .collision_plan import TURN, Hunks, Plan, Profile, read_history
from .collision_world import RADAR_MINUTES, SAME_CLONE, SYNC_MINUTES, TWO_CLONES, WITH_OFFLINE, Result, World
from .measure import show_progress
from .workbench import environment

COMPACTION = 120
PROFILES = [
    Profile("all online, nothing forgotten"),
    Profile("all online, agents forget", forgets=0.2, compaction=COMPACTION),
    Profile("one of three clones offline for 3 h, agents forget", forgets=0.2, compaction=COMPACTION, offline=(60, 240)),
]  # fmt: skip
QUICK = [Profile("quick", clones=2, agents=2, jobs=4, minutes=240, seeds=1)]
TABLE_HEAD = (
    "| | | jobs done | jobs done twice | minutes wasted | conflicting merges | overlaps | told by a tool |"
    " minutes to the warning | minutes idle |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)
PLACES_HEAD = f"| overlaps, and told by a tool | | {SAME_CLONE} | {TWO_CLONES} | {WITH_OFFLINE} |\n|---|---|--:|--:|--:|"
COLUMNS: list[Callable[[Result], float | None]] = [
    lambda found: found.done,
    lambda found: found.duplicates,
    lambda found: found.wasted,
    lambda found: found.conflicts,
    lambda found: found.overlaps,
    lambda found: found.told,
    lambda found: found.warning,
    lambda found: found.idle,
]


def simulate(
    folder: str, history: str, patches: Sequence[dict[str, Hunks]], profile: Profile, tool: str, seed: int
) -> Result:
    """Run one plan with one tool."""
    plan = Plan(profile, patches, seed)
    os.environ.update(environment(folder))  # the library starts git in this process's environment
    world = World(folder, history, profile, plan)
    agents = [Agent(world, number, TOOLS[tool]) for number in range(profile.clones * profile.agents)]
    try:
        for minute in range(profile.minutes):
            if len({run.job.name for run in world.landed}) == len(plan.jobs):
                break
            world.clock.minute = minute
            _sync(world, agents, minute)
            for agent in agents:
                if minute % TURN == plan.first[agent.number]:
                    if profile.compaction and minute % profile.compaction == plan.first[agent.number]:
                        agent.tool.forget()
                    agent.turn()
    finally:
        for agent in agents:
            if isinstance(agent.tool, Logged):
                agent.tool.log.close()
    return Result(world)


def _sync(world: World, agents: Sequence[Agent], minute: int) -> None:
    """Exchange the log, and with the radar the branches, of each clone that is due and online."""
    for clone, where in enumerate(world.clones):
        of_clone = [agent.tool for agent in agents if agent.clone == clone]
        tool = of_clone[0]
        if not isinstance(tool, Logged) or minute % SYNC_MINUTES != 3 * clone % SYNC_MINUTES:
            continue
        if not world.is_online(clone):
            continue
        if isinstance(tool, Claims) and minute % RADAR_MINUTES < SYNC_MINUTES:
            world.git(where, "push", "--quiet", "--force", "origin", "refs/heads/agent*:refs/heads/agent*")
            if clone == 0:
                world.git(where, "fetch", "--quiet", "origin")
                tool.log.overlap(notify=True)
        tool.log.sync(publish=True)


def measure(history: str, profiles: Sequence[Profile], workers: int) -> str:
    """Return the tables in Markdown."""
    patches = read_history(history)
    asked = [(profile, tool, seed) for profile in profiles for tool in TOOLS for seed in range(profile.seeds)]
    with ProcessPoolExecutor(workers) as pool:
        run = partial(_in_folder, history, patches)
        results = dict(zip(asked, pool.map(run, *zip(*asked, strict=True)), strict=True))
    rows, places = [TABLE_HEAD], [PLACES_HEAD]
    for profile in profiles:
        for tool in TOOLS:
            found = [results[profile, tool, seed] for seed in range(profile.seeds)]
            title = profile.title if tool == next(iter(TOOLS)) else ""
            rows.append(f"| {title} | {tool} | {' | '.join(_cell(found, column) for column in COLUMNS)} |")
            cells = [_place_cell(found, place) for place in (SAME_CLONE, TWO_CLONES, WITH_OFFLINE)]
            places.append(f"| {title} | {tool} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", *places])


def _in_folder(
    history: str, patches: Sequence[dict[str, Hunks]], profile: Profile, tool: str, seed: int
) -> Result:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gitmem-collisions-") as folder:
        found = simulate(folder, history, patches, profile, tool, seed)
    show_progress(f"{profile.title}, {tool}, seed {seed}: {time.monotonic() - started:.0f} s")
    return found


def _cell(found: Sequence[Result], column: Callable[[Result], float | None]) -> str:
    """Return the median of a figure over the seeds, with the least and the greatest."""
    values = [value for value in map(column, found) if value is not None]
    if not values:
        return "–"
    middle = f"{statistics.median(values):g}"
    return middle if min(values) == max(values) else f"{middle} ({min(values):g}–{max(values):g})"


def _place_cell(found: Sequence[Result], place: str) -> str:
    """Return the overlaps at a place, and those that a tool told of."""

    def column(of: int) -> Callable[[Result], float | None]:
        return lambda each: each.places[place][of]

    return f"{_cell(found, column(0))}, told {_cell(found, column(1))}"


def main() -> int:
    """Parse the command line, measure and print the tables; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collisions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small plan, for a first look")
    parser.add_argument(
        "--history", default=".", metavar="REPOSITORY", help="whose files are changed; the one here"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at once")
    asked = parser.parse_args()
    print(measure(os.path.abspath(asked.history), QUICK if asked.quick else PROFILES, asked.workers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
