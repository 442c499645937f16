"""SIGKILL and SIGSTOP of writers and committers at any time: every acknowledged line is there once, and git finds nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from gitmem import commit_process
from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit

from .faults import age_locks, check, fsck, open_store, speak

PAUSE_SECONDS = 0.03  # between two faults, at most
WINDOW_SECONDS = 0.02


class Mayhem:
    """Writers that write without end, a committer, and somebody who kills them.

    Attributes:
        kills: How many writers and how many committers were killed.
    """

    def __init__(self, repo: Path, folder: Path, seed: int, writers: int) -> None:
        self.repo = repo
        self.folder = folder
        self.random = Random(seed)
        self.size = writers
        self.writers: list[int] = []
        self.committer = 0
        self.started = 0
        self.kills = {"writer": 0, "committer": 0}
        folder.mkdir()

    def until(self, wanted: int, kills: int) -> None:
        """Go on until so many lines were acknowledged, and so many of each kind were killed; then everybody is killed."""
        with self._ended():
            while len(self.said("a")) < wanted or min(self.kills.values()) < kills:
                while len(self.writers) < self.size:
                    self.writers.append(self._fork(self._write))
                if not self.committer:
                    age_locks(self.repo)  # its locks are of the dead: the next one need not wait
                    self.committer = self._fork(self._commit)
                time.sleep(self.random.random() * PAUSE_SECONDS)
                self._fault()

    def said(self, what: str) -> set[str]:
        """The lines that writers began to write (b), or that were acknowledged (a)."""
        return {
            row[2:]
            for path in self.folder.iterdir()
            for row in path.read_text().splitlines()
            if row.startswith(what)
        }

    def _fork(self, act: Callable[[int], None]) -> int:
        self.started += 1
        pid = os.fork()
        if pid == 0:
            try:
                act(self.started)
            finally:
                os._exit(1)
        os.setpgid(
            pid, pid
        )  # it is killed together with the git that it runs: what a git leaves has tests of its own
        return pid

    def _write(self, number: int) -> None:
        store = open_store(self.repo, commit_after=60.0)
        note = os.open(self.folder / f"writer-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for turn in range(10_000_000):
            text = f"w{number}-{turn}"
            os.write(note, f"b {text}\n".encode())
            speak(store, text)
            os.write(note, f"a {text}\n".encode())
            time.sleep(0.001)

    def _commit(self, number: int) -> None:
        port = PlumbingGit if number % 8 == 0 else DulwichGit
        while True:
            commit_process.run(open_store(self.repo, port, commit_after=WINDOW_SECONDS))
            time.sleep(0.005)

    def _fault(self) -> None:
        draw = self.random.random()
        if draw < 0.3:
            pid = self.random.choice(self.writers)
            self.writers.remove(pid)
            self._kill(pid, "writer")
        elif draw < 0.6 and self.committer:
            self._kill(self.committer, "committer")
            self.committer = 0
        else:
            pid = self.random.choice([*self.writers, self.committer])
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.random.random() * PAUSE_SECONDS)
            os.kill(pid, signal.SIGCONT)

    def _kill(self, pid: int, kind: str) -> None:
        os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), f"a {kind} failed; its traceback is on standard error"
        self.kills[kind] += 1

    @contextmanager
    def _ended(self) -> Iterator[None]:
        try:
            yield
        finally:
            for pid in [*self.writers, *filter(None, [self.committer])]:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(
    ("writers", "wanted", "kills", "seed"),
    [
        (4, 100, 3, 1),
        pytest.param(20, 1_000, 20, 2, marks=pytest.mark.deep),
        *(pytest.param(20, 3_500, 100, seed, marks=pytest.mark.soak) for seed in (3, 4, 5)),
    ],
)
def test_whoever_is_killed_each_acknowledged_line_is_there_once(
    repo: Path, tmp_path: Path, writers: int, wanted: int, kills: int, seed: int
) -> None:
    """Also what was begun and not acknowledged is there once at most, and the objects are whole."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    mayhem = Mayhem(repo, tmp_path / "said", seed, writers)

    mayhem.until(wanted, kills)
    age_locks(repo)

    check(repo, {"before", *mayhem.said("a")}, mayhem.said("b"))
    fsck(repo)
