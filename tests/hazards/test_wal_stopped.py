"""Writers and committers that are stopped or killed at any step: nothing that was acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem import commit_process
from gitmem.log import committer, lock, ref, start, wal_files
from tests.log.logs import without_locks

from .faults import (
    ALL_STEPS,
    EACH_STEP,
    STEPS_MAX,
    SystemCall,
    age_locks,
    check,
    child,
    fsck,
    open_store,
    record,
    speak,
)

STOPS = ["listed", "opened", "locked", "looked", "written", "synced"]


class Stopped:
    """A writer in a process of its own that stops itself (SIGSTOP) at a step of its append.

    Args:
        repo: The repository.
        stop: The step, one of `STOPS`.
        times: How often it stops there: each append that it repeats comes by again.
        locks: Whether files can be locked.
    """

    def __init__(self, repo: Path, stop: str, *, locks: bool, times: int = 1) -> None:
        self.times = times
        read, self._write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if not locks:
                    lock.lock_file = lambda handle, exclusive: True  # type: ignore[assignment]
                store = open_store(repo, commit_after=60.0)
                store.db()
                self._bend(stop)
                speak(store, "stopped")
                os.write(self._write, b"y")
            finally:
                os._exit(0)
        os.close(self._write)
        self._read = read

    def _bend(self, stop: str) -> None:  # noqa: C901  (one branch for each damage)
        def stops() -> None:
            if self.times:
                self.times -= 1
                os.kill(os.getpid(), signal.SIGSTOP)

        def after(module: Any, name: str, wanted: Callable[..., bool] = lambda *args: True) -> None:
            real = getattr(module, name)

            def call(*args: Any, **options: Any) -> Any:
                done = real(*args, **options)
                if wanted(*args):
                    stops()
                return done

            setattr(module, name, call)

        def is_generation(path: object, *rest: object) -> bool:
            return str(path).endswith(wal_files.WAL)

        if stop == "listed":
            after(wal_files, "newest")
        elif stop == "opened":
            after(os, "open", is_generation)
        elif stop == "locked":
            after(lock, "lock_file")
        elif stop == "looked":
            after(os.path, "samestat")
        elif stop == "written":
            after(os, "write", lambda handle, data: b"stopped" in bytes(data))
        else:
            after(wal_files, "sync_data")

    def wait(self) -> bool:
        """Wait until it stops (True) or ends."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def go(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> bool:
        """Let it run to its end; whether its line was acknowledged."""
        self.go()
        while self.wait():
            self.go()
        said = os.read(self._read, 1)
        os.close(self._read)
        return said == b"y"


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_writer_that_is_stopped_over_two_commits_records_once(
    repo: Path, stop: str, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look and its write the generation is committed and removed, and so is the one after it."""
    if not locks:
        without_locks(monkeypatch)
    monkeypatch.setattr(committer, "WRITER_SECONDS", 0.01)
    store = open_store(repo)
    speak(store, "before")
    store.close()
    record(repo, "in its generation")
    writer = Stopped(repo, stop, locks=locks, times=2)
    assert writer.wait()
    said = {"before", "in its generation"}
    for turn in range(2):
        for number in range(2):
            store = open_store(repo)
            speak(store, f"meanwhile {turn} {number}")
            said.add(f"meanwhile {turn} {number}")
            store.close()
        if turn == 0:
            writer.go()
            if not writer.wait():
                break  # it comes by once
    assert writer.end() if turn else os.read(writer._read, 1) == b"y"

    check(repo, {*said, "stopped"}, set())
    assert not wal_files.damaged(open_store(repo).log.wal.folder)


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_writer_that_is_killed_while_it_is_stopped_stops_nobody(repo: Path, stop: str, locks: bool) -> None:
    """Its line is there once or not at all, and its lock is free."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    writer = Stopped(repo, stop, locks=locks)
    assert writer.wait()
    os.kill(writer.pid, signal.SIGKILL)
    assert not writer.wait()
    store = open_store(repo)
    speak(store, "after")
    store.close()

    check(repo, {"before", "after"}, {"stopped"})


def commit(repo: Path) -> Callable[[], object]:
    """For `child`: be the committer, which commands start."""

    def act() -> None:
        commit_process.run(open_store(repo, commit_after=0.01))

    return act


@EACH_STEP
def test_a_committer_that_is_killed_at_any_step_loses_and_doubles_nothing(repo: Path, stride: int) -> None:
    """Writers go on, and the next committer takes over what it left."""
    store = open_store(repo)
    speak(store, "before")
    store.close()
    said = {"before"}
    for step in range(1, STEPS_MAX, stride):
        record(repo, f"waits-{step}")
        record(repo, f"deferred-{step}", deferred=True)
        said |= {f"waits-{step}", f"deferred-{step}"}
        end = child(commit(repo), SystemCall(step, ALL_STEPS, kills=True))
        age_locks(repo)
        if step % 8 == 0 or not end.died:
            check(repo, said, set())
        if not end.died:
            break
    assert step > 20
    fsck(repo)


FAILS: dict[str, tuple[object, str]] = {
    "the new generation": (wal_files, "sync_names"),
    "the look at the ref": (ref, "read_format"),
    "the first commit of a log": (start, "start"),
    "the index": (committer, "notify_moved"),
    "the removal": (committer, "_remove"),
}


@pytest.mark.parametrize("what", FAILS)
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyError("1234"), MemoryError()])
def test_a_committer_that_fails_at_a_step_keeps_what_waits(
    repo: Path, what: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever kind of error it is."""
    if what != "the first commit of a log":
        store = open_store(repo)
        speak(store, "before")
        store.close()
    record(repo, "waits")

    def fails(*args: object, **options: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*FAILS[what], fails)
        try:
            committer.commit_waiting(open_store(repo).log)
        except Exception as raised:
            assert isinstance(raised, MemoryError) or "1234" in str(raised) or "nput/output" in str(raised), (
                raised
            )
    record(repo, "later")

    check(repo, {"waits", "later"} | ({"before"} if what != "the first commit of a log" else set()), set())
