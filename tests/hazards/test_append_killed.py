"""SIGKILL at each step of an append: what was acknowledged is there, once, and the next command works."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.log import committer

from ..log.logs import all_lines, entry, open_log, record
from .faults import ALL_STEPS, EACH_STEP

STEPS_MAX = 300


def _killed_at(step: int, act: Callable[[], None]) -> tuple[bool, bool]:
    """Run `act` in a child that dies just before its nth system call. (died, acknowledged)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **options: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **options)

            return call

        real_write = os.write
        for name in ALL_STEPS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            act()
            real_write(write, b"y")
        finally:
            os._exit(0)
    os.close(write)
    acknowledged = os.read(read, 1) == b"y"
    os.close(read)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), acknowledged


def _age_locks(repo: Path) -> None:
    """Locks that the dead left are a minute old: ten seconds is when they are broken."""
    for lock in (repo / ".git" / "refs").rglob("*.lock"):
        os.utime(lock, (time.time() - 60, time.time() - 60))


@EACH_STEP
@pytest.mark.parametrize("waits", [False, True], ids=["alone", "behind others"])
def test_killed_at_each_step_an_append_loses_nothing_acknowledged(
    repo: Path, waits: bool, stride: int
) -> None:
    """The line of a killed append is there once or not at all; an acknowledged one is there once, and what waited, too."""
    log = open_log(repo)
    record(log, entry(log, "before"))
    expected = {"before"}
    optional: set[str] = set()
    for step in range(1, STEPS_MAX, stride):
        if waits:
            log.append(entry(log, f"waits-{step}"))
            expected.add(f"waits-{step}")

        def act(step: int = step) -> None:
            mine = open_log(repo)
            record(mine, entry(mine, f"line-{step}"))

        died, acknowledged = _killed_at(step, act)
        (expected if acknowledged else optional).add(f"line-{step}")
        _age_locks(repo)
        after = open_log(repo)
        record(after, entry(after, f"after-{step}"))
        expected.add(f"after-{step}")
        committer.commit_waiting(after, deferred=True)
        texts = [line.decode().split('"text":"')[1][:-2] for line in all_lines(after)]
        assert len(texts) == len(set(texts))
        assert expected <= set(texts) <= expected | optional
        if not died:
            break
    else:
        pytest.fail("the append never ended")
    assert step > 8


@pytest.mark.parametrize("deferred", [False, True], ids=["to be committed", "deferred"])
def test_killed_at_each_step_a_recorded_entry_is_whole_or_absent(repo: Path, deferred: bool) -> None:
    """A torn record is never taken for an entry, and keeps nobody from writing behind it."""
    log = open_log(repo)
    record(log, entry(log, "before"))
    acknowledged: dict[str, bool] = {}
    for step in range(1, STEPS_MAX):

        def act(step: int = step) -> None:
            mine = open_log(repo)
            mine.append(entry(mine, f"line-{step}", deferred=deferred))

        died, acknowledged[f"line-{step}"] = _killed_at(step, act)
        if not died:
            break
    committer.commit_waiting(open_log(repo), deferred=True)
    texts = [line.decode().split('"text":"')[1][:-2] for line in all_lines(open_log(repo))]
    assert len(texts) == len(set(texts))
    assert {text for text, is_known in acknowledged.items() if is_known} <= set(texts)
    assert set(texts) <= {"before", *acknowledged}
    assert acknowledged[f"line-{step}"]
