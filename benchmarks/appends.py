"""Appends: one after another in one process, and by many processes at once."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from functools import partial

from gitmem import repo
from gitmem.records.record_types import ShownSignal

from . import workbench as workbenches
from .background_processes import AdoptedProcesses
from .dulwich_writer import DulwichRepository, SegmentWriter, message
from .measure import Figure, wall
from .workbench import Workbench

TEXT = "Please look at the boundary of the index before the review."
ROUNDS = 3


def sends(workbench: Workbench) -> list[Figure]:
    """Measure `signals.send`, and after each send a commit of the same line by hand in a copy of the repository."""
    where = workbench.repository("sends")
    caller = workbenches.start(where, "Caller")
    to = workbenches.NAMES[1]
    workbenches.start(where, to)
    copy = where + "-with-dulwich"
    shutil.copytree(where, copy)
    with_dulwich = SegmentWriter(DulwichRepository(repo.find(copy).common), workbenches.dice(5))
    got, base = [], []
    with AdoptedProcesses(), workbenches.open_log(where, caller, commit_after=None) as log:
        sent: list[ShownSignal] = []

        def send(text: str) -> None:
            sent.append(log.signals.send(text, to=[to], wu="WU-1").signal)

        for number in range(workbench.size.sends):
            text = f"{TEXT} {number}"
            got.append(wall(partial(send, text)))
            line = json.dumps({**sent[-1], "at": sent[-1]["created_at"]}, separators=(",", ":")).encode()
            words = message("Caller", to, text, sent[-1]["signal_id"])
            base.append(wall(partial(with_dulwich.signal, line, words)))
    workbench.await_signals(where, workbench.size.sends)
    what = f"`signals.send` in process, median of {workbench.size.sends:,}, wall"
    floor = "its objects and the ref written with dulwich, fsynced"
    return [Figure(what, floor, statistics.median(got), statistics.median(base), 0.5, "ms")]


def writers(workbench: Workbench) -> list[Figure]:
    """Measure many processes that append at once, in both ways in turn; use the median of three rounds."""
    took: dict[str, list[float]] = {"library": [], "dulwich": []}
    with AdoptedProcesses() as adopted:
        for number in range(ROUNDS):
            for kind, each in took.items():
                each.append(_at_once(workbench, f"writers-{kind}-{number}", kind))
                adopted.wait()
    what = f"{workbench.size.writers} processes × {workbench.size.each} sends in one clone, wall"
    floor = "the same with one lock and a commit each, with dulwich and no index"
    got, base = (statistics.median(each) for each in took.values())
    return [Figure(what, floor, got, base, 0.2, "ms")]


def _at_once(workbench: Workbench, name: str, kind: str) -> float:
    """Return the milliseconds from the start command, for which all processes wait, to the last answer."""
    where = workbench.repository(name)
    names = workbenches.NAMES[: workbench.size.writers]
    sessions = [workbenches.start(where, each) for each in names]
    environment = {**workbench.environment, "PYTHONPATH": workbenches.HERE}
    processes = []
    for number, session in enumerate(sessions):
        to = names[(number + 1) % len(names)]
        command = [
            sys.executable,
            "-m",
            "benchmarks.writer",
            kind,
            where,
            session,
            to,
            str(workbench.size.each),
        ]
        processes.append(
            subprocess.Popen(
                command, cwd=workbenches.HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
    pipes = [(process.stdin, process.stdout) for process in processes]
    for _, out in pipes:
        assert out is not None and out.readline() == b"ready\n"

    def race() -> None:
        for word, _ in pipes:
            assert word is not None
            word.write(b"go\n")
            word.flush()
        for _, out in pipes:
            assert out is not None and out.readline() == b"done\n"

    took = wall(race)
    for process in processes:
        process.communicate()
    workbench.await_signals(where, len(names) * workbench.size.each)
    return took
