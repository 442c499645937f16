"""Appends: one after the other in one process, and by many processes at once."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys

from dulwich.objects import Commit, ObjectID

from gitmem import place
from gitmem.log import ref

from . import stage as stages
from .by_hand import Hand
from .measure import Figure, wall
from .stage import Stage

TEXT = "Please look at the boundary of the index before the review."


def sends(stage: Stage) -> list[Figure]:
    """`signals.send`, and after each the same objects and ref in a copy of the repository by hand."""
    where = stage.repository("sends")
    caller = stages.start(where, "Caller")
    stages.start(where, stages.NAMES[1])
    copy = where + "-by-hand"
    shutil.copytree(where, copy)
    hand = Hand(place.find(copy).common)
    tip = hand.tip()
    got, base = [], []
    with stages.open_log(where, caller) as log:
        for number in range(stage.size.sends):
            sent: list[str] = []

            def send(number: int = number, sent: list[str] = sent) -> None:
                outcome = log.signals.send(f"{TEXT} {number}", to=[stages.NAMES[1]], wu="WU-1")
                sent.append(str(outcome.commit))

            got.append(wall(send))
            path, content = _written(log.store.git, sent[0])
            like = Commit.from_string(_raw(where, sent[0]))
            base.append(wall(lambda p=path, c=content, w=like: _put(hand, p, c, w)))
    tip = hand.tip()
    assert hand.read(tip, path) == content
    what = f"`signals.send` in process, median of {stage.size.sends:,}"
    floor = "the same objects and ref with dulwich, fsynced"
    return [Figure(what, floor, statistics.median(got), statistics.median(base), 1.5, "ms")]


def _put(hand: Hand, path: str, content: bytes, like: Commit) -> None:
    hand.append(hand.tip(), path, content, like)
