"""Appends: one after another in one process, and by many processes at once."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from functools import partial

from gitmem import repo
from gitmem.records.shown_types import ShownSignal

from . import stage as stages
from .by_hand import Hand, Segments, message
from .left_behind import Adoption
from .measure import Figure, wall
from .stage import Stage

TEXT = "Please look at the boundary of the index before the review."
ROUNDS = 3


def sends(stage: Stage) -> list[Figure]:
    """Measure `signals.send`, and after each send a commit of the same line by hand in a copy of the repository."""
    where = stage.repository("sends")
    caller = stages.start(where, "Caller")
    to = stages.NAMES[1]
    stages.start(where, to)
    copy = where + "-by-hand"
    shutil.copytree(where, copy)
    by_hand = Segments(Hand(repo.find(copy).common), stages.dice(5))
    got, base = [], []
    with Adoption(), stages.open_log(where, caller, commit_after=None) as log:
        sent: list[ShownSignal] = []

        def send(text: str) -> None:
            sent.append(log.signals.send(text, to=[to], wu="WU-1").signal)

        for number in range(stage.size.sends):
            text = f"{TEXT} {number}"
            got.append(wall(partial(send, text)))
            line = json.dumps({**sent[-1], "at": sent[-1]["created_at"]}, separators=(",", ":")).encode()
            words = message("Caller", to, text, sent[-1]["signal_id"])
            base.append(wall(partial(by_hand.signal, line, words)))
    stage.await_signals(where, stage.size.sends)
    what = f"`signals.send` in process, median of {stage.size.sends:,}, wall"
    floor = "its objects and the ref written with dulwich, fsynced"
    return [Figure(what, floor, statistics.median(got), statistics.median(base), 0.5, "ms")]


def writers(stage: Stage) -> list[Figure]:
    """Measure many processes that append at once, in both ways in turn; use the median of three rounds."""
    took: dict[str, list[float]] = {"library": [], "hand": []}
    with Adoption() as adopted:
        for number in range(ROUNDS):
            for kind, each in took.items():
                each.append(_at_once(stage, f"writers-{kind}-{number}", kind))
                adopted.wait()
    what = f"{stage.size.writers} processes × {stage.size.each} sends in one clone, wall"
    floor = "the same with one lock and a commit each, with dulwich and no index"
    got, base = (statistics.median(each) for each in took.values())
    return [Figure(what, floor, got, base, 0.2, "ms")]


def _at_once(stage: Stage, name: str, kind: str) -> float:
    """Return the milliseconds from the start command, for which all processes wait, to the last answer."""
    where = stage.repository(name)
    names = stages.NAMES[: stage.size.writers]
    sessions = [stages.start(where, each) for each in names]
    environment = {**stage.environment, "PYTHONPATH": stages.HERE}
    processes = []
    for number, session in enumerate(sessions):
        to = names[(number + 1) % len(names)]
        command = [sys.executable, "-m", "benchmarks.writer", kind, where, session, to, str(stage.size.each)]
        processes.append(
            subprocess.Popen(
                command, cwd=stages.HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
    stage.await_signals(where, len(names) * stage.size.each)
    return took
