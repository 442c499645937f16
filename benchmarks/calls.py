"""Whole calls: in one process, from one worktree to another, and from one clone to another."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import gitmem
from gitmem.calls import WORKER
from gitmem.calls.worker import ServedTask

from . import workbench as workbenches
from .measure import Figure, time_here
from .syncing import met
from .workbench import Workbench

HERE, WORKTREES, CLONES = 20.0, 150.0, 2500.0  # milliseconds
CALLEE = "Callee"
GAP_SECONDS = (
    0.3  # between two calls of a worker in another process, so that it has finished with the one before
)
CLONE_ROUNDS = 15


def calls(workbench: Workbench) -> list[Figure]:
    """Measure calls of a worker that waits and does next to nothing."""
    rounds = workbench.size.rounds
    figures = (
        ("of a Python function in the same process", _here(workbench, 3 * rounds), HERE),
        ("from one worktree to another", _worktrees(workbench, rounds), WORKTREES),
        ("from one clone to another, autosync 1s", _clones(workbench, min(CLONE_ROUNDS, rounds)), CLONES),
    )
    return [
        Figure(f"a call {what}, p50, wall", "the limit", statistics.median(took), limit, 1, "ms")
        for what, took, limit in figures
    ]


def _here(workbench: Workbench, count: int) -> list[float]:
    where = workbench.repository("call-here")
    session, callee = workbenches.start(where, "Caller"), _callee(where)
    stop = threading.Event()
    with (
        workbenches.open_log(where, session, commit_after=None) as log,
        workbenches.open_log(where, callee, commit_after=None) as other,
    ):
        worker = threading.Thread(target=other.serve, args=(_upper,), kwargs={"stop": stop})
        worker.start()
        try:
            return [
                time_here(lambda: log.call(CALLEE, "Is it right?").check()).wall for _ in range(count + 5)
            ][5:]
        finally:
            stop.set()
            worker.join()


def _worktrees(workbench: Workbench, count: int) -> list[float]:
    where = workbench.repository("call-worktrees")
    other = where + "-other"
    workbench.git(where, "worktree", "add", "--quiet", "--detach", other)
    session = workbenches.start(where, "Caller")
    took = []
    with _served(workbench, other), workbenches.open_log(where, session, commit_after=None) as log:
        for number in range(count + 2):
            time.sleep(GAP_SECONDS)
            timing = time_here(lambda: log.call(CALLEE, "Is it right?").check())
            took += [timing.wall] if number >= 2 else []
    return took


def _clones(workbench: Workbench, count: int) -> list[float]:
    first, second, _ = met(workbench, "call-clones")
    gitmem_, environment = workbench.program("gitmem"), workbench.environment
    session = workbenches.start(first, "Caller")
    with _served(workbench, second):
        for where in (second, first):
            subprocess.run(
                [gitmem_, "sync", "--publish"], cwd=where, env=environment, check=True, capture_output=True
            )
        for where in (second, first):
            subprocess.run(
                [gitmem_, "setup", "--publish", "yes", "--autosync", "1s"],
                cwd=where,
                env=environment,
                check=True,
                capture_output=True,
            )
        return [_called(workbench, first, session) for _ in range(count + 1)][1:]


def _called(workbench: Workbench, where: str, session: str) -> float:
    call = [workbench.program("gitmem"), "call", CALLEE, "Is it right?", "--timeout", "60s"]
    environment = {**workbench.environment, "GITMEM_SESSION": session}
    start = time.perf_counter()
    done = subprocess.run(call, cwd=where, env=environment, capture_output=True, text=True, check=False)
    took = (time.perf_counter() - start) * 1e3
    if done.returncode:
        raise RuntimeError(f"{call}: {done.stdout}{done.stderr}")
    return took


def _upper(task: ServedTask) -> str:
    return task.message.upper()


def _callee(where: str) -> str:
    with gitmem.open(where) as log:
        started = log.sessions.start(name=CALLEE, agent_identity=workbenches.identity(CALLEE), client=WORKER)
        return str(started.session_id)


@contextlib.contextmanager
def _served(workbench: Workbench, where: str) -> Iterator[None]:
    """Serve the callee in another process."""
    serve = [workbench.program("gitmem"), "serve-agent", CALLEE, "--callable", f"{__name__}:_upper"]
    environment = {**workbench.environment, "PYTHONPATH": ":".join(filter(None, sys.path))}
    with subprocess.Popen(
        serve, cwd=where, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stderr is not None
        line = worker.stderr.readline()
        if "serving" not in line:
            raise RuntimeError(line + worker.stderr.read())
        drained = threading.Thread(target=worker.stderr.read, daemon=True)
        drained.start()
        try:
            yield
        finally:
            worker.terminate()
