"""A disk that is full: what is reported as failed has been withdrawn, and what was acknowledged is there once."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.plumbing import PlumbingGit
from gitmem.log import append

from .faults import (
    STEPS_MAX,
    WRITES,
    Fault,
    Port,
    RunOfGit,
    SystemCall,
    age_locks,
    check,
    child,
    fsck,
    open_store,
    speak,
    speaking,
    texts,
)

PORTS = pytest.mark.parametrize("port", [DulwichGit, PlumbingGit])


class SizeLimit(Fault):
    """Files of the child, of the index and of git can't grow beyond so many bytes: a disk that is full, for real."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def prepare(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, resource.RLIM_INFINITY))


class Ledger:
    """What was said in a repository, and what became of it."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.once: set[str] = set()
        self.maybe: set[str] = set()
        self.failed = 0

    def say(self, text: str, port: Port, fault: Fault | None = None) -> bool:
        """Say it in a child; whether it was acknowledged."""
        end = child(speaking(self.repo, port, text), fault)
        if end.died:
            self.maybe.add(text)
        elif end.failed is None:
            self.once.add(text)
        else:
            self.failed += 1
            assert end.failed[-1] in ".;" and len(end.failed) > 20, end.failed
        self.steps = end.steps
        return end.answer is not None

    def wait(self, text: str) -> None:
        """Put an entry into the spool, as a writer does that can't lead."""
        store = open_store(self.repo)
        held = store.log.lock()
        assert held.take()
        found = open_store(self.repo)
        speak_queued(found, text)
        held.release()
        store.close()
        found.close()
        self.once.add(text)


def speak_queued(store, text: str) -> None:  # type: ignore[no-untyped-def]  # a store
    real = append.append
    try:
        append.append = lambda log, entry: real(log, entry, wait_seconds=0.0)  # type: ignore[assignment]
        assert speak(store, text).queued
    finally:
        append.append = real


@PORTS
@pytest.mark.parametrize("waits", [False, True], ids=["alone", "with a full spool"])
def test_a_full_disk_at_each_write_of_an_append(repo: Path, port: Port, waits: bool) -> None:
    """Whichever write finds no space: a failed line never appears, an acknowledged or waiting one is there once."""
    ledger = Ledger(repo)
    ledger.say("before", port)
    for step in range(1, STEPS_MAX):
        if waits:
            ledger.wait(f"waits-{step}")
        ledger.say(f"line-{step}", port, SystemCall(step, WRITES, kills=False))
        steps = ledger.steps
        age_locks(repo)
        ledger.say(f"after-{step}", port)
        check(repo, ledger.once, ledger.maybe)
        if steps < step:
            break
    assert ledger.failed > (3 if port is DulwichGit else -1)
    fsck(repo)
