"""What it costs a clone that reads a log for the first time that its lines are attested."""

from __future__ import annotations

import glob
import itertools
import os

from . import workbench as workbenches
from .measure import Figure, Timed, cpu_of, in_turn
from .workbench import Workbench

ROUNDS = 7


def first_look(workbench: Workbench) -> list[Figure]:
    """Measure a command that makes the index of a log with attestations, against one of the same lines without writers."""
    count = workbench.size.many
    looks = [_look(workbench, f"attested-{attests}", count, attests=attests) for attests in (True, False)]
    got, base = in_turn(min(ROUNDS, workbench.size.rounds), *looks)
    what = f"first command in a clone of {count:,} lines that {count // workbenches.ATTESTED:,} commits attest, CPU"
    return [Figure(what, "the same lines without writers", got, base, 1.5, "ms")]


def _look(workbench: Workbench, name: str, count: int, *, attests: bool) -> Timed:
    where = workbench.repository(name)
    workbenches.start(where, "Caller")
    make = workbenches.line if attests else workbenches.unsigned
    lines = itertools.islice(workbenches.history(count, make=make), count)
    workbenches.publish(where, lines, commits=20)
    look = cpu_of([workbench.program("gitmem"), "log", "-n", "1"], where, workbench.environment)

    def once() -> float:
        for path in glob.glob(os.path.join(where, ".git", "gitmem", "index-*")):
            os.unlink(path)
        return look()

    return once
