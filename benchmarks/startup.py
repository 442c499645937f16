"""Whole commands, from start to answer: the cost of each call by hooks and agents."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from itertools import cycle

from . import nodes
from . import workbench as workbenches
from .background_processes import AdoptedProcesses
from .measure import Figure, Timed, Timing, cpu_of, in_turn, run, timings_in_turn
from .workbench import Workbench

FLOOR = "`python -c pass`"
TEXT = "Please look at the boundary of the index."
THREAD_SIGNALS = 5


def inbox(workbench: Workbench) -> list[Figure]:
    """Measure `gitmem inbox` with nothing new, in a log with some history."""
    where, session = with_history(workbench, "inbox")
    took, floor = against_python(workbench, where, session, lambda: ["inbox"])
    return [Figure("`gitmem inbox` with nothing new, CPU", FLOOR, took.cpu, floor.cpu, 1.6, "ms")]


def signal(workbench: Workbench) -> list[Figure]:
    """Measure a directed signal while no other gitmem process runs in the clone."""
    where, session = with_history(workbench, "signal")
    with workbenches.open_log(where, session) as log:
        log.inbox()  # two broadcasts of the day before its start
    took, floor = against_python(workbench, where, session, lambda: signal_args("Reader"))
    return [
        Figure("`gitmem signal` to one agent, CPU", FLOOR, took.cpu, floor.cpu, 2.5, "ms"),
        Figure("`gitmem signal` to one agent, wall", FLOOR, took.wall, floor.wall, 2.5, "ms"),
    ]


def signal_args(to: str) -> list[str]:
    """Return the arguments of a directed signal."""
    return ["signal", TEXT, "--to", to, "--wu", "WU-1"]


def everyday(workbench: Workbench) -> list[Figure]:
    """Measure the other commands that agents and their scripts call often."""
    where, session = with_history(workbench, "everyday")
    asked, thread = _conversations(workbench, where, session)
    unanswered = cycle(asked)
    memory = nodes.memory(workbench, f"memory-{workbench.size.few_nodes}", workbench.size.few_nodes)
    reader = workbenches.start(memory, "Everyday")
    commands: dict[str, Callable[[], list[str]]] = {
        "reply": lambda: ["reply", next(unanswered), "The boundary is right as it is."],
        "gate": lambda: ["gate", "--wu", "WU-1"],
        "whoami": lambda: ["whoami"],
        "thread": lambda: ["thread", thread],
        "mem create": lambda: ["mem", "create", "The index is rebuilt where its version differs."],
        "mem context": lambda: ["mem", "context", "--wu", nodes.WU],
    }
    found = []
    for name, command in commands.items():
        place = (memory, reader) if name == "mem context" else (where, session)
        took, floor = against_python(workbench, *place, command)
        found.append(Figure(f"`gitmem {name}`, CPU", FLOOR, took.cpu, floor.cpu, 4, "ms"))
    return found


def _conversations(workbench: Workbench, where: str, session: str) -> tuple[Sequence[str], str]:
    """Create signals that a session has read, one for each reply, and a thread of a few signals."""
    speaker = workbenches.start(where, "Speaker", "WU-1")
    with workbenches.open_log(where, speaker) as log:
        sent = [log.signals.send(TEXT, to=[session]).signal for _ in range(workbench.size.rounds + 2)]
        first = str(sent[0]["signal_id"])
        for _ in range(THREAD_SIGNALS - 1):
            log.signals.send(TEXT, to=[session], thread=first)
    with workbenches.open_log(where, session) as log:
        log.inbox()
    return [str(each["signal_id"]) for each in sent[1:]], first


def merge(workbench: Workbench) -> list[Figure]:
    """Measure the merge driver on three files that share half of their lines."""
    dice = random.Random(7)
    count = workbench.size.lines
    lines = [line for stream, line in workbenches.history(2 * count) if stream == "signals"]
    folder = os.path.join(workbench.folder, "merge")
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
    driver = cpu_of([workbench.program("gitmem-merge"), *paths.values()], folder, workbench.environment)
    empty: Timed = cpu_of(workbenches.python(), folder, workbench.environment)

    def once() -> float:
        shutil.copy(spare, paths["ours"])  # the driver writes the union there
        return driver()

    got, base = in_turn(workbench.size.rounds, once, empty)
    return [Figure(f"merge driver on 3 × {count:,} lines, CPU", FLOOR, got, base, 2, "ms")]


def with_history(workbench: Workbench, name: str) -> tuple[str, str]:
    """Return a repository in which 20 agents have sent signals, and the id of a session that started in it."""
    where = workbench.repository(name)
    session = workbenches.start(where, "Caller")
    workbenches.publish(where, workbenches.sessions(workbenches.START))
    workbenches.publish(where, workbenches.history(workbench.size.few))
    workbenches.start(where, "Reader")  # its record makes the index complete
    return where, session


def against_python(
    workbench: Workbench, where: str, session: str, args: Callable[[], list[str]]
) -> tuple[Timing, Timing]:
    """Measure a command and an empty Python in turn.

    The background processes of a command end before the next one starts.
    """
    environment = {**workbench.environment, "GITMEM_SESSION": session}
    with AdoptedProcesses() as adopted:

        def once() -> Timing:
            took = run([workbench.program("gitmem"), *args()], where, environment)
            adopted.wait()
            return took

        return timings_in_turn(
            workbench.size.rounds,
            once,
            lambda: run(workbenches.python(), where, workbench.environment),
            warm=2,
        )
