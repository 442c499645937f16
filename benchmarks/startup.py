"""Commands, from nothing to their answer: what a hook and an agent pay each time."""

from __future__ import annotations

import os
import random
import shutil

from . import stage as stages
from .measure import Figure, Timed, cpu_of, in_turn
from .stage import Stage

FLOOR = "`python -c pass`"


def inbox(stage: Stage) -> list[Figure]:
    """`gitmem inbox` with nothing new, in a log with some history."""
    where, session = _with_history(stage, "inbox")
    command = [stage.program("gitmem"), "inbox"]
    got, base = _against_python(stage, command, where, session)
    return [Figure("`gitmem inbox` with nothing new, CPU", FLOOR, got, base, 2, "ms")]


def signal(stage: Stage) -> list[Figure]:
    """The common shape of a signal, with the git that it starts."""
    where, session = _with_history(stage, "signal")
    command = [stage.program("gitmem"), "signal", "Please look at the boundary of the index.",
               "--to", "Reader", "--wu", "WU-1"]  # fmt: skip
    got, base = _against_python(stage, command, where, session)
    return [Figure("`gitmem signal`, the common shape, CPU (goal: 5 ×)", FLOOR, got, base, 15, "ms")]


def merge(stage: Stage) -> list[Figure]:
    """The merge driver on three files that share half of their lines."""
    dice = random.Random(7)
    count = stage.size.lines
    lines = [line for stream, line in stages.history(2 * count) if stream == "signals"]
    folder = os.path.join(stage.folder, "merge")
    os.makedirs(folder, exist_ok=True)
    parts = {
        "base": lines[: count // 2],
        "ours": lines[:count],
        "theirs": lines[: count // 2] + lines[count:],
    }
    paths = {}
    for name, own in parts.items():
        own = own + dice.choices(lines[: count // 2], k=max(0, count - len(own)))
        paths[name] = os.path.join(folder, name)
        with open(paths[name], "wb") as file:
            file.write(b"".join(line + b"\n" for line in sorted(own[:count])))
    spare = paths["ours"] + "-before"
    shutil.copy(paths["ours"], spare)
    driver = cpu_of([stage.program("gitmem-merge"), *paths.values()], folder, stage.environment)

    def once() -> float:
        shutil.copy(spare, paths["ours"])  # the driver leaves the union there
        return driver()

    got, base = in_turn(stage.size.rounds, once, _empty(stage, folder))
    return [Figure(f"merge driver on 3 × {count:,} lines, CPU", FLOOR, got, base, 2, "ms")]


def _with_history(stage: Stage, name: str) -> tuple[str, str]:
    """A repository where 20 agents have spoken, and the id of a session that started in it."""
    where = stage.repository(name)
    session = stages.start(where, "Caller")
    stages.publish(where, stages.sessions(stages.START))
    stages.publish(where, stages.history(stage.size.few))
    stages.start(where, "Reader")  # after whose record the index has all of it
    return where, session


def _against_python(stage: Stage, command: list[str], where: str, session: str) -> tuple[float, float]:
    environment = {**stage.environment, "GITMEM_SESSION": session}
    return in_turn(stage.size.rounds, cpu_of(command, where, environment), _empty(stage, where), warm=2)


def _empty(stage: Stage, where: str) -> Timed:
    return cpu_of(stages.python(), where, stage.environment)
