"""Many clones of one remote that write at once: the time until a signal is on the remote."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from gitmem.log import ref

from . import workbench as workbenches
from .measure import Figure, show_progress
from .workbench import Workbench

DELAY_SECONDS = 0.2
GAP_SECONDS = 2.0


class Run:
    """The results of one run: the seconds of each signal, and the final state of the remote."""

    def __init__(self, waits: list[tuple[float, float]], asked: dict[str, int]) -> None:
        self.from_send = sorted(wait for wait, _ in waits)
        self.from_due = sorted(wait for _, wait in waits)
        self.asked = asked
        self.merges = self.outboxes = self.lines = 0

    def at(self, share: float) -> float:
        """Return a percentile of the time from the send, in milliseconds."""
        return _percentile(self.from_send, share)

    def due_at(self, share: float) -> float:
        """Return a percentile of the time from the due time, with the wait for an earlier sync of the clone."""
        return _percentile(self.from_due, share)


def _percentile(seconds: list[float], share: float) -> float:
    return seconds[min(len(seconds) - 1, int(len(seconds) * share))] * 1e3


def twenty(workbench: Workbench) -> list[Figure]:
    """Measure 20 clones."""
    return _clones(workbench, workbench.size.clones, 10, 4)


def fifty(workbench: Workbench) -> list[Figure]:
    """Measure 50 clones."""
    return _clones(workbench, workbench.size.many_clones, 4, 5)


def _clones(workbench: Workbench, clones: int, signals: int, at_most: float) -> list[Figure]:
    """Measure the p95 of clones that send signals, in turn with the floor.

    Args:
        workbench: The workbench.
        clones: The number of clones.
        signals: The number of signals of each.
        at_most: The limit of the ratio.
    """
    runs: dict[str, list[Run]] = {"shared": [], "own": []}
    for number in range(workbench.size.clone_rounds):
        for kind, found in runs.items():
            found.append(_run(workbench, f"{kind}-{clones}-{number}", kind, clones, signals))
    ours, floor = runs["shared"], runs["own"]
    for each in (*ours, *floor):
        figures = ", ".join(f"{each.at(share):.0f}" for share in (0.5, 0.95, 1))
        show_progress(
            f"p50, p95, longest {figures} ms; p95 from when it was due {each.due_at(0.95):.0f} ms; {each.asked}"
        )
    what = f"{clones} clones × {signals} signals, each every {GAP_SECONDS:g} s, {DELAY_SECONDS:g} s before each push and fetch"
    base = "each clone pushing a ref of its own"
    merges, outboxes = max(each.merges for each in ours), max(each.outboxes for each in ours)
    least = min(each.lines for each in ours)
    after = f"{merges} merge commits, {outboxes} outboxes left after healing, {least} of {clones * signals} signals there"
    rows: list[tuple[str, Callable[[Run], float], float | None]] = [
        (f"p95 ({after})", lambda run: run.at(0.95), at_most),
        ("p50", lambda run: run.at(0.5), None),
        ("the longest", lambda run: run.at(1), None),
        ("p95 from when it was due", lambda run: run.due_at(0.95), None),
    ]
    return [
        Figure(f"{what}: {name}", base, _middle(ours, of), _middle(floor, of), limit, "ms")
        for name, of, limit in rows
    ]


def _middle(runs: list[Run], of: Callable[[Run], float]) -> float:
    return statistics.median(of(each) for each in runs)


class Process:
    """A clone, and the process that writes to it."""

    def __init__(self, workbench: Workbench, kind: str, where: str, number: int, signals: int) -> None:
        session = workbenches.start(where, f"Clone{number}")
        command = [
            *(sys.executable, "-m", "benchmarks.busy_clone", kind, where, session),
            *(
                str(number),
                str(signals),
                str(GAP_SECONDS * workbench.size.pace),
                str(DELAY_SECONDS * workbench.size.pace),
            ),
        ]
        environment = {**workbench.environment, "PYTHONPATH": workbenches.HERE}
        self.process = subprocess.Popen(
            command,
            cwd=workbenches.HERE,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, word: str) -> None:
        """Write a command to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Read an answer of the process."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"a clone ended with {self.process.wait()}"
        return line if line == "ready\n" else json.loads(line)


def _run(workbench: Workbench, name: str, kind: str, clones: int, signals: int) -> Run:
    hub = os.path.join(workbench.folder, name + ".git")
    first = workbench.repository(name)
    workbench.git(workbench.folder, "clone", "--quiet", "--bare", first, hub)
    processes = []
    for number in range(clones):
        where = f"{first}-{number}"
        workbench.git(workbench.folder, "clone", "--quiet", hub, where)
        processes.append(Process(workbench, kind, where, number, signals))
    for each in processes:
        each.answer()
    for each in processes:  # one after another: afterwards all have the same log and nothing to send
        each.send("meet")
        each.answer()
    start = time.monotonic() + 1
    for each in processes:
        each.send(f"go {start}")
    told = [each.answer() for each in processes]
    run = Run(
        [(sent, due) for each in told for sent, due in each["waits"]],
        {what: sum(each["asked"][what] for each in told) for what in told[0]["asked"]},
    )
    if kind == "shared":
        for each in processes:
            each.send("heal")
            each.answer()
        _count(workbench, hub, run)
    for each in processes:
        each.process.communicate()
    return run


def _count(workbench: Workbench, hub: str, run: Run) -> None:
    refs = workbench.git(hub, "for-each-ref", "--format=%(refname)").split()
    run.outboxes = sum("outbox" in each for each in refs)
    run.merges = len(workbench.git(hub, "rev-list", "--merges", ref.BRANCH).split())
    run.lines = workbench.signals(hub, ref.BRANCH)
