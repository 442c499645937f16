"""What it costs a clone that reads a log for the first time that its lines are attested."""

from __future__ import annotations

import glob
import itertools
import os

from . import earlier_version
from . import workbench as workbenches
from .measure import Figure, Timed, cpu_of, in_turn
from .workbench import Workbench

ROUNDS = 7


def first_look(workbench: Workbench) -> list[Figure]:
    """Measure a command that makes the index of a log with attestations, against a version that had none."""
    count = workbench.size.many
    what = f"first command in a clone of {count:,} lines that {count // workbenches.ATTESTED:,} commits attest, CPU"
    earlier = earlier_version.program(workbench, earlier_version.UNSIGNED)
    floor = f"the same lines without writers, by {earlier_version.UNSIGNED}"
    if earlier is None:
        missing = f"{earlier_version.UNSIGNED} is not in the history of these sources"
        return [Figure(what, floor, 0, 0, 1.5, "ms", missing=missing)]
    looks = (
        _look(workbench, workbench.program("gitmem"), count, attests=True),
        _look(workbench, earlier, count, attests=False),
    )
    got, base = in_turn(min(ROUNDS, workbench.size.rounds), *looks)
    return [Figure(what, floor, got, base, 1.5, "ms")]


def _look(workbench: Workbench, program: str, count: int, *, attests: bool) -> Timed:
    where = workbench.repository(f"attested-{attests}")
    workbenches.start(where, "Caller")
    make = workbenches.line if attests else workbenches.unsigned
    lines = itertools.islice(workbenches.history(count, make=make), count)
    workbenches.publish(where, lines, commits=20, attests=attests)
    look = cpu_of([program, "log", "-n", "1"], where, workbench.environment)

    def once() -> float:
        for path in glob.glob(os.path.join(where, ".git", "gitmem", "index-*")):
            os.unlink(path)
        return look()

    return once
