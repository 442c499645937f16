"""Commits: the cost of an isolated signal with its commit, and the time until that commit."""

from __future__ import annotations

import os
import subprocess
import time

from . import earlier_version
from . import workbench as workbenches
from .background_processes import AdoptedProcesses
from .measure import Figure, Timing, not_measured, p95, run, timings_in_turn
from .startup import signal_args, with_history
from .workbench import Workbench

LIMIT_SECONDS = 2.0
POLL_SECONDS = 0.002
LOG_REF_FILE = ("refs", "gitmem", "log")


def isolated(workbench: Workbench) -> list[Figure]:
    """Measure a signal with its commit and all background work, against a version that commits before it answers."""
    what = "`gitmem signal` and its commit by itself, CPU of all processes"
    floor = f"the same at {earlier_version.COMMIT}"
    with AdoptedProcesses() as adopted:
        program = earlier_version.program(workbench)
        if not adopted.works or program is None:
            why = (
                "no Linux"
                if not adopted.works
                else f"{earlier_version.COMMIT} is not in this repository's history"
            )
            return [not_measured(what, floor, 1.5, why)]
        where, session = with_history(workbench, "isolated")
        there, its_session = earlier_version.with_history(workbench, program, "isolated-earlier")

        def once(program: str, place: str, caller: str) -> Timing:
            before = workbench.signals(place)
            environment = {**workbench.environment, "GITMEM_SESSION": caller}
            took = run([program, *signal_args("Reader")], place, environment)
            left = adopted.wait()
            assert workbench.signals(place) == before + 1, "the signal is not in a commit"
            return Timing(took.cpu + left, took.wall)

        ours, base = timings_in_turn(
            workbench.size.rounds,
            lambda: once(workbench.program("gitmem"), where, session),
            lambda: once(program, there, its_session),
            warm=2,
        )
    return [Figure(what, floor, ours.cpu, base.cpu, 1.5, "ms")]


def after_answer(workbench: Workbench) -> list[Figure]:
    """Measure the p95 from the answer of `gitmem signal` to its commit, on an idle machine."""
    where, session = with_history(workbench, "after-answer")
    environment = {**workbench.environment, "GITMEM_SESSION": session}
    waits = []
    with AdoptedProcesses() as adopted:
        for _ in range(workbench.size.rounds):
            adopted.wait()
            waits.append(_until_commit(workbench, where, environment))
    what = f"answer of `gitmem signal` → its commit, idle machine, p95 of {workbench.size.rounds}"
    return [Figure(what, "the limit", p95(waits), LIMIT_SECONDS * 1e3, 1, "ms")]


def _until_commit(workbench: Workbench, where: str, environment: dict[str, str]) -> float:
    """Return the milliseconds from a signal's last output until the ref has another commit; at least one poll."""
    before = _tip(workbench, where)
    command = [workbench.program("gitmem"), *signal_args("Reader")]
    with subprocess.Popen(command, cwd=where, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read()
        answered = time.perf_counter()
        until = answered + workbenches.COMMIT_SECONDS
        while _tip(workbench, where) == before:
            if time.perf_counter() > until:
                raise TimeoutError(f"no commit {workbenches.COMMIT_SECONDS:g} s after the answer")
            time.sleep(POLL_SECONDS)
        passed = time.perf_counter() - answered
    assert process.returncode == 0
    return max(passed, POLL_SECONDS) * 1e3


def _tip(workbench: Workbench, where: str) -> str:
    """Return the commit of the log's ref; read the ref's file if there is one, otherwise start git."""
    try:
        with open(os.path.join(where, ".git", *LOG_REF_FILE)) as file:
            return file.read().strip()
    except FileNotFoundError:
        return workbench.git(where, "rev-parse", "/".join(LOG_REF_FILE)).strip()
