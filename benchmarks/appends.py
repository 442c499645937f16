"""Appends: one after the other in one process, and by many processes at once."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from functools import partial

from gitmem import place

from . import stage as stages
from .by_hand import Hand
from .measure import Figure, wall
from .stage import Stage

TEXT = "Please look at the boundary of the index before the review."


def sends(stage: Stage) -> list[Figure]:
    """`signals.send`, and after each the same objects and ref by hand in a copy of the repository."""
    where = stage.repository("sends")
    caller = stages.start(where, "Caller")
    stages.start(where, stages.NAMES[1])
    copy = where + "-by-hand"
    shutil.copytree(where, copy)
    ours, hand = Hand(place.find(where).common), Hand(place.find(copy).common)
    got, base = [], []
    with stages.open_log(where, caller) as log:
        for number in range(stage.size.sends):
            token = log.store.log.token()

            def send(text: str = f"{TEXT} {number}") -> None:
                log.signals.send(text, to=[stages.NAMES[1]], wu="WU-1")

            took = wall(send)
            commit = ours.commit(ours.tip())
            day = stages.day(commit.commit_time)
            path = f"signals/{day}/gm-{token}.jsonl"
            content, tip = ours.read(commit.id, path), hand.tip()
            words = (path, content, commit.author, commit.message)
            got.append(took)
            base.append(wall(partial(hand.append, tip, *words)))
    assert hand.read(hand.tip(), path) == content
    what = f"`signals.send` in process, median of {stage.size.sends:,}"
    floor = "the same objects and ref with dulwich, fsynced"
    return [Figure(what, floor, statistics.median(got), statistics.median(base), 1.5, "ms")]


def writers(stage: Stage) -> list[Figure]:
    """Many processes that append at once, three ways in turn; the middle of three rounds."""
    kinds = ("spool", "hand", "alone")
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(3):
        for kind in kinds:
            took[kind].append(_at_once(stage, f"writers-{kind}-{number}", kind))
    got, hand, alone = (statistics.median(took[kind]) for kind in kinds)
    what = f"{stage.size.writers} processes × {stage.size.each} sends in one clone, wall"
    return [
        Figure(what, "the same with one lock and a commit each, with dulwich and no index", got, hand, 0.6, "ms"),
        Figure(what, "`signals.send` with one lock and a commit each", got, alone, None, "ms"),
    ]  # fmt: skip


def _at_once(stage: Stage, name: str, kind: str) -> float:
    """Milliseconds from the word to start, said to processes that wait for it, to the last one's word that it is done."""
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
    with stages.open_log(where, sessions[0]) as log:
        (count,) = log.store.db().execute("SELECT count(*) FROM line WHERE kind = 'signal'").fetchone()
    assert count == len(names) * stage.size.each, f"{kind}: {count} signals are in the log"
    return took
