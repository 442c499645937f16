"""A disk that is full: what is reported as failed has been withdrawn, and what was acknowledged is there once."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import fast_import
from gitmem.git.inprocess import DulwichGit
from gitmem.git.plumbing import PlumbingGit
from gitmem.index import catch_up
from gitmem.log import append
from gitmem.log.lock import Lock
from gitmem.operations.store import Store

from ..conftest import Git
from .conftest import Desk, refs
from .faults import (
    STEPS_MAX,
    WRITES,
    End,
    Fault,
    Port,
    RunOfGit,
    SystemCall,
    age_locks,
    check,
    child,
    command,
    fsck,
    open_store,
    speak,
    speaking,
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
        return self.tell(text, child(speaking(self.repo, port, text), fault)).answer is not None

    def tell(self, text: str, end: End) -> End:
        """Note how it ended."""
        if end.died:
            self.maybe.add(text)
        elif end.failed is None:
            self.once.add(text)
        else:
            self.failed += 1
            assert "missing" not in end.failed, "the log is whole"
            assert end.failed[-1] in ".;" and len(end.failed) > 20, end.failed
        self.steps = end.steps
        return end

    def wait(self, text: str) -> None:
        """Put an entry into the spool, as a writer does that can't lead."""
        store = open_store(self.repo)
        speak_queued(store, text)
        store.close()
        self.once.add(text)


def speak_queued(store: Store, text: str) -> None:
    """Say something while somebody else leads for longer than one waits."""
    leader = open_store(Path(store.place.common)).log.lock()
    assert leader.take()
    real = append.append
    try:
        append.append = lambda log, entry: real(log, entry, wait_seconds=0.0)  # type: ignore[assignment]
        assert speak(store, text).queued
    finally:
        append.append = real
        leader.release()


@pytest.mark.deep
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


@pytest.mark.deep
@PORTS
def test_a_full_disk_at_each_write_of_an_append_that_had_to_wait(repo: Path, port: Port) -> None:
    """The entry is in the spool when its writer becomes the leader, and what it leads fails."""
    ledger = Ledger(repo)
    ledger.say("before", port)
    take = Lock.take

    def waiting(text: str) -> str:
        """Say it where somebody else leads until the entry has been spooled."""

        def later(lock: Lock) -> bool:
            return (
                take(lock) if any((repo / ".git" / "gitmem" / "spool").glob("[0-9]*-wait.spool")) else False
            )

        Lock.take = later  # type: ignore[method-assign]
        return speaking(repo, port, text)()

    for step in range(1, STEPS_MAX):
        fault = SystemCall(step, WRITES, kills=False)
        end = ledger.tell(f"line-{step}", child(lambda step=step: waiting(f"line-{step}"), fault))  # type: ignore[misc]
        age_locks(repo)
        ledger.say(f"after-{step}", port)
        check(repo, ledger.once, ledger.maybe)
        if end.steps < step:
            break
    assert ledger.failed
    fsck(repo)


@PORTS
def test_a_disk_that_takes_no_more_bytes(repo: Path, port: Port) -> None:
    """Objects, refs, the spool, the index and git's own files alike: none may grow beyond a few bytes."""
    ledger = Ledger(repo)
    ledger.say("before", port)
    for size in (0, 20, 41, 100, 160, 250, 1_000, 20_000, 40_000, 80_000, 1_000_000):
        ledger.wait(f"waits-{size}")
        acknowledged = ledger.say(f"line-{size}", port, SizeLimit(size))
        age_locks(repo)
        ledger.say(f"after-{size}", port)
        check(repo, ledger.once, ledger.maybe)
    assert acknowledged
    assert ledger.failed > 2
    fsck(repo)


@pytest.mark.parametrize("how", ["full", "full-after", "killed", "killed-after"])
@pytest.mark.parametrize("waits", [False, True], ids=["alone", "with a full spool"])
def test_each_run_of_git_fails_once(repo: Path, tmp_path: Path, how: str, waits: bool) -> None:
    """Git that reports a full disk or is killed, before or after its work: failed is withdrawn, the rest is kept."""
    ledger = Ledger(repo)
    ledger.say("before", PlumbingGit)
    for run in range(1, STEPS_MAX):
        if waits:
            ledger.wait(f"waits-{run}")
        fault = RunOfGit(tmp_path, run, how)
        ledger.say(f"line-{run}", PlumbingGit, fault)
        age_locks(repo)
        ledger.say(f"after-{run}", PlumbingGit)
        check(repo, ledger.once, ledger.maybe)
        if not fault.happened:
            break
    assert run > 2
    fsck(repo)


@pytest.mark.parametrize("gc", [False, True])
@pytest.mark.parametrize("how", ["hangs", "hangs-after"])
def test_a_git_that_hangs_is_stopped(
    repo: Path, tmp_path: Path, how: str, gc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append has failed; but while a gc runs, git moves the ref as well: after that the line is there, and told so."""
    monkeypatch.setattr(fast_import, "TIMEOUT_SECONDS", 0.3)
    ledger = Ledger(repo)
    ledger.say("before", PlumbingGit)
    if gc:
        (repo / ".git" / "gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}")
    fault = RunOfGit(tmp_path, 2, how)  # the first one reads, the second is the import
    assert ledger.say("hanging", PlumbingGit, fault) == (gc and how == "hangs-after")
    assert fault.happened
    age_locks(repo)
    ledger.say("after", PlumbingGit)
    check(repo, ledger.once, ledger.maybe)
    fsck(repo)


def test_the_first_append_of_a_clone_fails_at_each_run_of_git(repo: Path, tmp_path: Path) -> None:
    """No half-made log stays behind: the next command starts one, or finds it."""
    for run in range(1, STEPS_MAX):
        clone = tmp_path / f"clone-{run}"
        subprocess.run(["git", "clone", "--quiet", str(repo), str(clone)], check=True)
        ledger = Ledger(clone)
        fault = RunOfGit(tmp_path, run, "full")
        ledger.say("first", PlumbingGit, fault)
        ledger.say("second", PlumbingGit)
        check(clone, ledger.once, ledger.maybe)
        if not fault.happened:
            break
    assert run > 4


def test_the_command_says_so_with_status_4(desk: Desk, tmp_path: Path) -> None:
    """A signal that finds the disk full ends with a sentence, a hint and status 4, and is nowhere; or it is kept."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    statuses = []
    once, never = set(), set()
    for run in range(1, STEPS_MAX):
        fault = RunOfGit(tmp_path, run, "full")
        act = command(desk.repo, "signal", "--to", "Curie", "--json", f"line-{run}", session=planck)
        said = child(act, fault).answer
        if not fault.happened:
            break
        statuses.append(said["status"])
        answer = json.loads(said["out"])
        (once if said["status"] == 0 else never).add(f"line-{run}")
        assert said["status"] in (0, 4), said
        if said["status"] == 4:
            assert answer["error"]["message"] and "Traceback" not in said["err"]
            assert said["err"].startswith("gitmem: ")
            assert answer["error"]["hint"], answer
    check(desk.repo, once | {f"line-{run}"}, set())
    assert 4 in statuses
    # Whole and no reader is the worse for it: what was withdrawn is in nobody's inbox.
    shown = child(command(desk.repo, "inbox", "--for", "Curie", "--json", "--no-mark")).answer
    messages = [signal["message"] for signal in json.loads(shown["out"])["signals"]]
    assert set(messages) == once | {f"line-{run}"} and not never & set(messages)


def test_a_refused_line_is_not_recovered(desk: Desk, git: Git) -> None:
    """Where the ref could not be moved, its reflog does not say that it was: `doctor --fix` would bring the line."""
    desk.start("Planck")
    git("pack-refs", "--all", cwd=desk.repo)
    before = refs(desk.repo)
    way = desk.repo / ".git" / "refs" / "gitmem" / "log"
    way.mkdir(parents=True)
    assert desk("mem", "create", "a refused secret").status == 4
    way.rmdir()
    assert refs(desk.repo) == before
    reflog = (desk.repo / ".git" / "logs" / "refs" / "gitmem" / "log").read_text().splitlines()
    assert reflog[-1].split()[1] in before

    assert desk("doctor", "--fix", "--json").status == 0
    assert "a refused secret" not in git("grep", "--text", "", "refs/gitmem/log", cwd=desk.repo)
    assert desk("mem", "create", "a kept word").status == 0
    assert "a kept word" in git("grep", "--text", "", "refs/gitmem/log", cwd=desk.repo)


def test_a_full_disk_does_not_stop_readers(desk: Desk) -> None:
    """What is known is answered, with the same bytes, though nothing can be recorded."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "Look at this.", "--to", "Curie")
    usual = child(command(desk.repo, "inbox", "--no-mark", "--json", session=curie)).answer
    for size in (0, 100, 20_000):
        full = child(
            command(desk.repo, "inbox", "--no-mark", "--json", session=curie), SizeLimit(size)
        ).answer
        assert full == usual


def test_an_inbox_that_cannot_mark_says_so_and_shows_again(desk: Desk) -> None:
    """Shown, but not recorded: status 4 after the answer, and the signal stays unread."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "Look at this.", "--to", "Curie")
    full = child(command(desk.repo, "inbox", session=curie), SizeLimit(0)).answer
    assert "Look at this." in full["out"]
    assert full["status"] == 4 and full["err"].startswith("gitmem: ")
    again = child(command(desk.repo, "inbox", "--count", session=curie)).answer
    assert again["out"] == "1\n"


def test_an_index_that_fails_does_not_undo_the_commit(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is derived: an object that can't be read for it is no reason to call a recorded line failed."""
    store = open_store(repo)
    speak(store, "before")

    def fails(*args: object, **options: object) -> None:
        raise StoreError("The object 1234 of the log is missing.")

    with monkeypatch.context() as patch:
        patch.setattr(catch_up, "catch_up", fails)
        assert speak(store, "committed").commit
        speak_queued(store, "queued")
    check(repo, {"before", "committed", "queued"}, set())
