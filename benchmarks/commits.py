"""Commits: the cost of an isolated signal with its commit, and the time until that commit."""

from __future__ import annotations

import os
import subprocess
import time

from . import earlier
from . import stage as stages
from .left_behind import Adoption
from .measure import Figure, Took, not_measured, p95, run, took_in_turn
from .stage import Stage
from .startup import signal_args, with_history

LIMIT_SECONDS = 2.0
POLL_SECONDS = 0.002
LOG_REF_FILE = ("refs", "gitmem", "log")


def isolated(stage: Stage) -> list[Figure]:
    """Measure a signal with its commit and all background work, against a version that commits before it answers."""
    what = "`gitmem signal` and its commit by itself, CPU of all processes"
    floor = f"the same at {earlier.COMMIT}"
    with Adoption() as adopted:
        program = earlier.program(stage)
        if not adopted.works or program is None:
            why = "no Linux" if not adopted.works else f"{earlier.COMMIT} is not in this repository's history"
            return [not_measured(what, floor, 1.5, why)]
        where, session = with_history(stage, "isolated")
        there, its_session = earlier.with_history(stage, program, "isolated-earlier")

        def once(program: str, place: str, caller: str) -> Took:
            before = stage.signals(place)
            environment = {**stage.environment, "GITMEM_SESSION": caller}
            took = run([program, *signal_args("Reader")], place, environment)
            left = adopted.wait()
            assert stage.signals(place) == before + 1, "the signal is not in a commit"
            return Took(took.cpu + left, took.wall)

        ours, base = took_in_turn(
            stage.size.rounds,
            lambda: once(stage.program("gitmem"), where, session),
            lambda: once(program, there, its_session),
            warm=2,
        )
    return [Figure(what, floor, ours.cpu, base.cpu, 1.5, "ms")]


def after_answer(stage: Stage) -> list[Figure]:
    """Measure the p95 from the answer of `gitmem signal` to its commit, on an idle machine."""
    where, session = with_history(stage, "after-answer")
    environment = {**stage.environment, "GITMEM_SESSION": session}
    waits = []
    with Adoption() as adopted:
        for _ in range(stage.size.rounds):
            adopted.wait()
            waits.append(_until_commit(stage, where, environment))
    what = f"answer of `gitmem signal` → its commit, idle machine, p95 of {stage.size.rounds}"
    return [Figure(what, "the limit", p95(waits), LIMIT_SECONDS * 1e3, 1, "ms")]


def _until_commit(stage: Stage, where: str, environment: dict[str, str]) -> float:
    """Return the milliseconds from a signal's last output until the ref has another commit; at least one poll."""
    before = _tip(stage, where)
    command = [stage.program("gitmem"), *signal_args("Reader")]
    with subprocess.Popen(command, cwd=where, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read()
        answered = time.perf_counter()
        until = answered + stages.COMMIT_SECONDS
        while _tip(stage, where) == before:
            if time.perf_counter() > until:
                raise TimeoutError(f"no commit {stages.COMMIT_SECONDS:g} s after the answer")
            time.sleep(POLL_SECONDS)
        passed = time.perf_counter() - answered
    assert process.returncode == 0
    return max(passed, POLL_SECONDS) * 1e3


def _tip(stage: Stage, where: str) -> str:
    """Return the commit of the log's ref; read the ref's file if there is one, otherwise start git."""
    try:
        with open(os.path.join(where, ".git", *LOG_REF_FILE)) as file:
            return file.read().strip()
    except FileNotFoundError:
        return stage.git(where, "rev-parse", "/".join(LOG_REF_FILE)).strip()
