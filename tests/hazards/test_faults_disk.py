"""A disk that is full: what is reported as failed is nowhere, and what was acknowledged is there once."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import processes as git_run
from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer

from ..conftest import Git
from .conftest import Desk, refs, waiting
from .faults import (
    EACH_STEP,
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
    record,
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
        if end.died or end.code == "wal-unknown":
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
        """Record an entry that waits for its commit."""
        record(self.repo, text)
        self.once.add(text)


@pytest.mark.deep
@PORTS
@pytest.mark.parametrize("waits", [False, True], ids=["alone", "behind others"])
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
    assert ledger.failed >= 2, "the record and its sync"
    fsck(repo)


@EACH_STEP
@PORTS
def test_a_full_disk_at_each_write_of_a_commit_loses_nothing_and_stops_no_writer(
    repo: Path, port: Port, stride: int
) -> None:
    """Writers are answered while no commit can be made; the first one that succeeds has all."""
    ledger = Ledger(repo)
    ledger.say("before", port)
    failed = 0

    def commit() -> str:
        return str(committer.commit_waiting(open_store(repo, port).log, deferred=True))

    for step in range(1, STEPS_MAX, stride):
        ledger.wait(f"waits-{step}")
        end = child(commit, SystemCall(step, WRITES, kills=False))
        failed += end.failed is not None
        assert end.failed is None or "Nothing was recorded" not in end.failed, end.failed
        ledger.wait(f"meanwhile-{step}")
        age_locks(repo)
        if step % 5 == 0 or end.steps < step:
            check(repo, ledger.once, set())
        if end.steps < step:
            break
    assert failed >= 2
    fsck(repo)


@PORTS
def test_a_disk_that_takes_no_more_bytes(repo: Path, port: Port) -> None:
    """Objects, refs, the write-ahead log, the index and git's own files alike: none may grow beyond a few bytes."""
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


@pytest.mark.parametrize(
    "how",
    [
        "full",
        "killed-after",
        *(pytest.param(how, marks=pytest.mark.deep) for how in ("full-after", "killed")),
    ],
)
@pytest.mark.parametrize("waits", [False, True], ids=["alone", "behind others"])
def test_each_run_of_git_fails_once(repo: Path, tmp_path: Path, how: str, waits: bool) -> None:
    """Git that reports a full disk or is killed, before or after its work: recording needs no git, so all is kept."""
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
    assert run > 2 and not ledger.failed
    fsck(repo)


@pytest.mark.parametrize("how", ["hangs", "hangs-after"])
def test_a_git_that_hangs_is_stopped(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The commit does not come about, or nobody hears that it did: the line waits, and is there once."""
    monkeypatch.setattr(git_run, "TIMEOUT_SECONDS", 0.3)
    ledger = Ledger(repo)
    ledger.say("before", PlumbingGit)
    fault = RunOfGit(tmp_path, 2, how)  # the first one reads, the second moves the ref
    assert ledger.say("hanging", PlumbingGit, fault)
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


def test_the_command_says_so_with_status_4(desk: Desk) -> None:
    """A signal that finds the disk full ends with a sentence, a hint and status 4, and is nowhere; or it is kept."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    statuses = []
    once = set()
    for size in (0, 60, 400, 2_000, 1_000_000):
        act = command(desk.repo, "signal", "--to", "Curie", "--json", f"line-{size}", session=planck)
        said = child(act, SizeLimit(size)).answer
        statuses.append(said["status"])
        answer = json.loads(said["out"])
        assert said["status"] in (0, 4), said
        if said["status"] == 0:
            once.add(f"line-{size}")
        else:
            assert "Nothing was recorded" in answer["error"]["message"] and "Traceback" not in said["err"]
            assert said["err"].startswith("gitmem: ")
            assert answer["error"]["hint"], answer
    assert statuses[:2] == [4, 4] and statuses[-1] == 0
    check(desk.repo, once, set())
    # Whole and no reader is the worse for it: what failed is in nobody's inbox.
    shown = child(command(desk.repo, "inbox", "--for", "Curie", "--json", "--no-mark")).answer
    assert {signal["message"] for signal in json.loads(shown["out"])["signals"]} == once


def test_a_ref_that_cannot_move_costs_no_line(desk: Desk, git: Git) -> None:
    """The line waits, and the next commit has it once."""
    desk.start("Planck")
    git("pack-refs", "--all", cwd=desk.repo)
    before = refs(desk.repo)
    way = desk.repo / ".git" / "refs" / "gitmem" / "log"
    way.mkdir(parents=True)
    (way / "in-the-way").touch()
    said = desk("mem", "create", "a patient word", "--json")
    assert (said.status, said.json["recorded"], said.json["commit"]) == (0, True, None)
    (way / "in-the-way").unlink()
    way.rmdir()
    assert refs(desk.repo) == before

    assert desk("doctor", "--fix", "--json").status == 0
    assert desk("mem", "create", "a later word").status == 0
    found = git(
        "grep", "--text", "-h", "-o", "-E", "a (patient|later) word", "refs/gitmem/log", cwd=desk.repo
    )
    assert sorted(set(found.split("\n"))) == ["", "a later word", "a patient word"]
    assert waiting(desk.repo) == []


def test_a_full_disk_does_not_stop_readers(desk: Desk) -> None:
    """What is known is answered, with the same bytes, though nothing can be recorded."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "Look at this.", "--to", "Curie")
    asked = command(desk.repo, "inbox", "--no-mark", "--json", session=curie)
    usual = child(asked).answer
    for size in (0, 100, 20_000):
        full = child(asked, SizeLimit(size)).answer
        assert (full["status"], full["out"]) == (usual["status"], usual["out"])
        assert full["err"] == ""


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

    def fails() -> None:
        raise StoreError("The object 1234 of the log is missing.")

    with monkeypatch.context() as patch:
        patch.setattr(store, "adopt", fails)
        assert speak(store, "committed").commit
        store.commit_after = 60.0
        assert speak(store, "waits").commit is None
    check(repo, {"before", "committed", "waits"}, set())
