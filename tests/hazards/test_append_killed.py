"""SIGKILL at each step of an append: what was acknowledged is there, once, and the next command works."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.log import append
from gitmem.log.append import drain_all

from ..log.logs import all_lines, entry, open_log

STEPS = ("open", "write", "fsync", "rename", "replace", "link", "unlink", "mkdir", "utime", "chmod")
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
        for name in STEPS:
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


@pytest.mark.parametrize("waits", [False, True], ids=["alone", "with a full spool"])
def test_killed_at_each_step_an_append_loses_nothing_acknowledged(repo: Path, waits: bool) -> None:
    """The line of a killed append is there once or not at all; an acknowledged one is there once."""
    log = open_log(repo)
    append.append(log, entry(log, "before"))
    expected = {"before"}
    optional: set[str] = set()
    for step in range(1, STEPS_MAX):
        if waits:
            waiting = entry(log, f"waits-{step}")
            waiting.token = log.token()
            log.spool.put(waiting, log.now())
            expected.add(f"waits-{step}")

        def act(step: int = step) -> None:
            mine = open_log(repo)
            append.append(mine, entry(mine, f"line-{step}"))

        died, acknowledged = _killed_at(step, act)
        (expected if acknowledged else optional).add(f"line-{step}")
        _age_locks(repo)
        after = open_log(repo)
        append.append(after, entry(after, f"after-{step}"))
        expected.add(f"after-{step}")
        drain_all(after)
        texts = [line.decode().split('"text":"')[1][:-2] for line in all_lines(after)]
        assert len(texts) == len(set(texts))
        assert expected <= set(texts) <= expected | optional
        if not died:
            break
    else:
        pytest.fail("the append never ended")
    assert step > 8


def test_killed_at_each_step_a_spooled_entry_is_whole_or_absent(repo: Path) -> None:
    """A torn spool file is never taken for an entry."""
    log = open_log(repo)
    append.append(log, entry(log, "before"))
    for step in range(1, STEPS_MAX):

        def act(step: int = step) -> None:
            mine = open_log(repo)
            append.append(mine, entry(mine, f"line-{step}", rides=True))

        died, acknowledged = _killed_at(step, act)
        _age_locks(repo)
        drain_all(open_log(repo))
        texts = {line.decode().split('"text":"')[1][:-2] for line in all_lines(open_log(repo))}
        assert f"line-{step}" in texts or not acknowledged
        if not died:
            break
    assert acknowledged
