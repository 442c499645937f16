"""A disk that is full: what is reported as failed is nowhere, and what was acknowledged is there once."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitmem import commit_process
from gitmem.errors import StoreError
from gitmem.git import processes as git_run
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer, ref
from gitmem.log.union import canonical
from gitmem.repo import find
from merge_driver.install import install

from ..clones import Clone, Hub, agree, git
from ..conftest import Git
from .conftest import ROOT, Desk, refs, waiting
from .faults import (
    ALL_STEPS,
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
    settled,
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
    for number in range(
        40
    ):  # what git says of its settings is kept, in a file, when these are some seconds old
        if any((repo / ".git" / "gitmem").glob("config-*")):
            break
        time.sleep(0.2)
        ledger.say(f"young-{number}", port)
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


# SIGKILL in the middle of an append or a sync: the next command works, and what was acknowledged is there once.

NAMES = (
    "open",
    "fdatasync",
    "rename",
    "replace",
    "link",
    "unlink",
    "mkdir",
)  # what others see; the rest only fills files
KILLS = ["killed", "killed-after", "both-killed", "both-killed-after"]


def say(repo: Path, text: str, port: Port = DulwichGit) -> None:
    store = open_store(repo, port)
    assert speak(store, text).commit
    store.close()


@pytest.mark.parametrize("how", ["both-killed", "both-killed-after"])
@pytest.mark.parametrize("deferred", [False, True], ids=["alone", "with deferred receipts"])
def test_killed_at_each_run_of_git_an_append_is_whole_or_absent(
    repo: Path, tmp_path: Path, how: str, deferred: bool
) -> None:
    """Both the command and its git die, before or after git's work."""
    say(repo, "before")
    once, maybe = {"before"}, set()
    for run in range(1, STEPS_MAX):
        if deferred:
            record(repo, f"deferred-{run}", deferred=True)
            once.add(f"deferred-{run}")
        fault = RunOfGit(tmp_path, run, how)
        end = child(speaking(repo, PlumbingGit, f"line-{run}"), fault)
        (maybe if end.died else once).add(f"line-{run}")
        age_locks(repo)
        say(repo, f"after-{run}", PlumbingGit)
        once.add(f"after-{run}")
        check(repo, once, maybe)
        if not fault.happened:
            break
    assert run > 2
    fsck(repo)


@EACH_STEP
def test_killed_at_each_step_an_append_by_plumbing_is_whole_or_absent(repo: Path, stride: int) -> None:
    """The same at every system call that the command makes itself."""
    say(repo, "before")
    once, maybe = {"before"}, set()
    for step in range(1, STEPS_MAX, stride):
        end = child(speaking(repo, PlumbingGit, f"line-{step}"), SystemCall(step, ALL_STEPS, kills=True))
        (maybe if end.died else once).add(f"line-{step}")
        age_locks(repo)
        say(repo, f"after-{step}", PlumbingGit)
        once.add(f"after-{step}")
        check(repo, once, maybe)
        if not end.died:
            break
    assert step > 4
    fsck(repo)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of one bare remote that have shared a log."""
    hub, a, b = (tmp_path / name for name in ("hub.git", "a", "b"))
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git("clone", "--quiet", str(hub), str(a), cwd=tmp_path)
    git("checkout", "--quiet", "-b", "main", cwd=a)
    git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=a)
    git("push", "--quiet", "origin", "main", cwd=a)
    git("clone", "--quiet", str(hub), str(b), cwd=tmp_path)
    for clone in (a, b):
        say(clone, f"start-{clone.name}")
        agree(find(str(clone)))
        sync(clone)
    return a, b


def sync(repo: Path) -> dict[str, object]:
    """Sync as the command does: what became of the only remote."""
    end = child(syncing(repo))
    assert end.answer["status"] == 0, end.answer
    (remote,) = json.loads(end.answer["out"])["remotes"]
    return dict(remote)


def syncing(repo: Path):  # type: ignore[no-untyped-def]  # what `child` takes
    return command(repo, "sync", "--json")


class Story:
    """What two clones say while one of them is killed again and again."""

    def __init__(self, a: Path, b: Path) -> None:
        self.a = a
        self.b = b
        self.hub = a.parent / "hub.git"
        self.once = {"start-a", "start-b"}

    def more(self, number: int) -> None:
        """Something to send, something that waits for its commit, and something deferred."""
        say(self.a, f"a-{number}")
        record(self.a, f"waits-{number}")
        record(self.a, f"deferred-{number}", deferred=True)
        self.once |= {f"a-{number}", f"waits-{number}", f"deferred-{number}"}

    def elsewhere(self, number: int) -> None:
        """The other clone is faster."""
        say(self.b, f"b-{number}")
        sync(self.b)
        self.once.add(f"b-{number}")

    def check(self) -> None:
        """The next sync makes it good, and another one finds nothing to do."""
        age_locks(self.a)
        age_locks(self.hub)
        first = sync(self.a)
        assert first["state"] in ("synced", "up-to-date"), first
        again = sync(self.a)
        assert (again["state"], again["received"], again["sent"]) == ("up-to-date", 0, 0), again
        tip = git("rev-parse", ref.LOG_REF, cwd=self.a)
        assert git("rev-parse", ref.BRANCH, cwd=self.hub) == tip
        found = settled(self.a)
        assert set(found) == self.once and set(found.values()) == {1}
        assert not git("rev-list", "--merges", tip.strip(), cwd=self.a)

    def end(self) -> None:
        self.check()
        sync(self.b)
        assert settled(self.b) == settled(self.a)
        fsck(self.a)
        git("fsck", "--strict", cwd=self.hub)
        left = git("for-each-ref", "--format=%(refname)", "refs/gitmem", cwd=self.a).split()
        assert left == [
            ref.LOG_REF,
            ref.PUBLISHED_REF,
            "refs/gitmem/remotes/origin/accepted",
            "refs/gitmem/remotes/origin/heads/gitmem",
        ]


@pytest.mark.deep
@pytest.mark.parametrize("how", KILLS)
def test_killed_at_each_run_of_git_a_sync_is_made_good_by_the_next(
    pair: tuple[Path, Path], tmp_path: Path, how: str
) -> None:
    """Git alone, or with the command, before or after its work; also when the push has arrived and nobody knows."""
    story = Story(*pair)
    for run in range(1, STEPS_MAX):
        story.more(run)
        if run % 3 == 0:
            story.elsewhere(run)
        fault = RunOfGit(tmp_path, run, how)
        end = child(syncing(story.a), fault)
        age_locks(story.a)
        assert end.died or end.answer["status"] in (0, 4, 5), end.answer
        assert end.died or "Traceback" not in end.answer["err"], end.answer["err"]
        if run % 6 == 0:
            story.check()
        if not fault.happened:
            break
    assert run > 5
    story.end()


@pytest.mark.deep
def test_killed_at_each_step_a_sync_is_made_good_by_the_next(pair: tuple[Path, Path]) -> None:
    """System calls of the commit, the replay, the swap and the bookkeeping."""
    story = Story(*pair)
    step = 1
    while step < STEPS_MAX:
        story.more(step)
        if step % 8 == 1:
            story.elsewhere(step)
        end = child(syncing(story.a), SystemCall(step, NAMES, kills=True))
        age_locks(story.a)
        if step % 12 == 1:
            story.check()
        if not end.died:
            break
        step += 2  # odd ones are enough: an open is followed by what gives the file its name
    assert step > 20
    story.end()


def test_killed_after_the_push_and_before_its_reply_nothing_is_sent_twice(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """The remote has the lines and this clone does not know: the next sync finds them there."""
    a, _ = pair
    hub = tmp_path / "hub.git"
    say(a, "said")
    before = arrived = git("rev-parse", ref.BRANCH, cwd=hub)
    for run in range(1, STEPS_MAX):
        end = child(syncing(a), RunOfGit(tmp_path, run, "both-killed-after"))
        age_locks(a)
        arrived = git("rev-parse", ref.BRANCH, cwd=hub)
        if arrived != before:
            break
    assert end.died and arrived != before
    found = sync(a)
    assert (found["state"], found["sent"], found["received"]) == ("up-to-date", 0, 0)
    assert git("rev-parse", ref.BRANCH, cwd=hub) == arrived


@pytest.mark.deep
def test_killed_at_each_step_the_first_append_leaves_nothing_in_the_way(repo: Path, tmp_path: Path) -> None:
    """A lock on a log that does not exist yet, a half-made state folder: the next command starts the log."""
    for step in range(1, STEPS_MAX, 2):  # odd ones are enough here, too
        clone = tmp_path / f"clone-{step}"
        shutil.copytree(repo, clone)
        end = child(speaking(clone, DulwichGit, "first"), SystemCall(step, NAMES[:5], kills=True))
        age_locks(clone)
        say(clone, "second")
        check(clone, {"second"} if end.died else {"first", "second"}, {"first"})
        if not end.died:
            break
    assert step > 20


# Lock files that somebody left: git's and ours. None of them stops the store, and none that is alive is broken.

OURS = (
    "refs/gitmem/log.lock",
    "packed-refs.lock",
    "objects/tmp_obj_left",
    "objects/pack/tmp_pack_left",
    "HEAD.lock",
    "index.lock",
    "config.lock",
    "shallow.lock",
)


def leave(repo: Path, name: str, seconds: float) -> Path:
    """A file as a process leaves it that was killed so long ago."""
    path = repo / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("left by the dead\n")
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


@PORTS
@pytest.mark.parametrize("name", OURS)
def test_a_lock_of_gits_that_the_dead_left_stops_no_append(repo: Path, port: Port, name: str) -> None:
    """The lock of the log's own ref is broken once it is older than ten seconds; the others are not in the way."""
    store = open_store(repo, port)
    assert speak(store, "before").commit
    left = leave(repo, name, 60)
    assert speak(store, "after").commit
    store.close()
    assert left.exists() == (name != "refs/gitmem/log.lock"), "what is not ours is left alone"
    left.unlink(missing_ok=True)
    check(repo, {"before", "after"}, set())
    fsck(repo)


@PORTS
def test_the_first_append_takes_no_notice_of_an_old_lock(repo: Path, port: Port) -> None:
    """A clone whose first append was killed has a lock and no ref."""
    leave(repo, "refs/gitmem/log.lock", 60)
    store = open_store(repo, port)
    assert speak(store, "first").commit
    store.close()
    check(repo, {"first"}, set())


@PORTS
@pytest.mark.parametrize("started", [True, False], ids=["a log", "no log yet"])
def test_a_lock_that_is_alive_is_waited_for_and_not_broken(repo: Path, port: Port, started: bool) -> None:
    """A lock of this moment may be somebody's: the line is recorded, and committed later."""
    store = open_store(repo, port)
    if started:
        speak(store, "before")
    left = leave(repo, "refs/gitmem/log.lock", 0)
    store.commit_after = 60.0
    assert speak(store, "waits").commit is None
    assert store.commit(0.2, swaps=3) is None
    assert store.waits() and store.commit_failed is None
    assert left.exists()
    left.unlink()
    store.commit_after = 0.0
    assert speak(store, "after").commit
    store.close()
    check(repo, {"waits", "after"} | ({"before"} if started else set()), set())


@PORTS
def test_what_stands_in_our_lock_file_means_nothing(repo: Path, port: Port) -> None:
    """An old file, somebody's process id, a read-only one: a lock is held by the system or not at all."""
    store = open_store(repo, port)
    speak(store, "before")
    lock = repo / ".git" / "gitmem" / "lock"
    lock.write_text(f"{os.getpid()} host42 held by a process that lives\n")
    os.utime(lock, (1, 1))
    began = time.monotonic()
    assert speak(store, "after").commit
    assert time.monotonic() - began < commit_process.COMMIT_SECONDS
    assert "held by" in lock.read_text()
    lock.unlink()
    assert speak(store, "without").commit
    store.close()
    check(repo, {"before", "after", "without"}, set())


def test_locks_that_a_killed_sync_left_do_not_stop_the_next(tmp_path: Path) -> None:
    """On our copy of the remote's tip, on the note of what is published, and on the packed refs."""
    hub = Hub(tmp_path)
    a, b = hub.clone("a"), hub.clone("b")
    for number, name in enumerate(
        (
            "refs/gitmem/remotes/origin/heads/gitmem.lock",
            "refs/gitmem/published.lock",
            "refs/gitmem/log.lock",
            "packed-refs.lock",
            "shallow.lock",
            "FETCH_HEAD.lock",
        )
    ):
        b.add(f"b{number}")
        b.exchange()
        a.add(f"a{number}")
        left = leave(a.path, name, 60)
        assert a.exchange().state == "synced", name
        assert a.exchange().state == "up-to-date", name
        assert a.git.tip(ref.PUBLISHED_REF) == a.tip == hub.tip()
        left.unlink(missing_ok=True)
    b.exchange()
    assert a.texts() == b.texts() and len(a.texts()) == 12
    hub.close()


def test_a_lock_on_the_packed_refs_does_not_stop_a_sync_that_forgets(tmp_path: Path) -> None:
    """A ref that is gone from the remote is pruned here, for which git wants the packed refs."""
    hub = Hub(tmp_path)
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    git("branch", "gitmem-old", "gitmem", cwd=hub.path)
    a.exchange()
    git("pack-refs", "--all", cwd=a.path)
    git("branch", "-D", "gitmem-old", cwd=hub.path)
    leave(a.path, "packed-refs.lock", 60)
    a.add("two")
    assert a.exchange().state == "synced"
    assert hub.texts() == ["one", "two"]
    hub.close()


# Two clones with one segment, united by plain `git fetch`, `git merge` and `git push`: the next sync gives the union.

HOW = ["the tree's own attributes", "our driver", "our driver without its program", "no attributes at all"]


def twins(hub: Hub) -> tuple[Clone, Clone]:
    """Clones that write to the same segment: one is a copy of the other, folder and all."""
    a = hub.clone("a")
    a.add("first")
    a.exchange()
    shutil.copytree(a.path, hub.root / "b", symlinks=True)
    b = hub.open(hub.root / "b")
    assert a.log.token() == b.log.token()
    for number in range(3):
        a.add(f"a{number}")
        b.add(f"b{number}")
    return a, b


def prepare(clone: Clone, how: str, folder: Path) -> None:
    """Give a clone what the case is about."""
    if how.startswith("our driver"):
        program = folder / "gitmem-merge"
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH="{ROOT}" PYTHONSAFEPATH=1 exec "{sys.executable}" -m merge_driver.main "$@"\n'
        )
        program.chmod(0o755)
        install(clone.store.repo, str(program))
        if how.endswith("program"):
            program.unlink()
    elif how == "no attributes at all":
        attributes = Path(clone.store.repo.common) / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("*.jsonl !merge\n")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("pushes", [True, False], ids=["and pushed", "and kept"])
def test_a_merge_by_hand_of_one_segment(hub: Hub, tmp_path: Path, how: str, pushes: bool) -> None:
    """With our driver, with git's union, or with conflict markers: every line once, and linear above the merge."""
    a, b = twins(hub)
    b.exchange()
    prepare(a, how, tmp_path)
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = tmp_path / "by-hand"
    git("worktree", "add", "--quiet", "-B", "gitmem", str(at), ref.LOG_REF, cwd=a.path)
    git("merge", "--quiet", "--no-edit", "origin/gitmem", cwd=at, check=False)
    (segment,) = at.glob("notes/**/*.jsonl")
    merged = segment.read_bytes()
    if how == "our driver":
        assert merged == canonical(merged), "canonical at once"
    assert (b"<<<<<<<" in merged) == (how == "no attributes at all")
    if b"<<<<<<<" in merged:
        git("add", "-A", cwd=at)
        git("commit", "--quiet", "-m", "Merged, whatever this is", cwd=at)
    if pushes:
        git("push", "--quiet", "origin", "gitmem", cwd=at)
    else:
        git("update-ref", ref.LOG_REF, "gitmem", cwd=a.path)
    merge = git("rev-parse", "gitmem", "--", cwd=a.path).split()[0]
    a.add("after a")
    b.add("after b")
    for clone in (a, b, a, b):
        assert clone.exchange().state in ("synced", "up-to-date")
    expected = ["first", *(f"{name}{number}" for name in "ab" for number in range(3)), "after a", "after b"]
    for clone in (a, b):
        assert sorted(text for text in clone.texts() if text[0].isalpha()) == sorted(expected)
        assert len(clone.texts()) == len(expected) + (3 if how == "no attributes at all" else 0)
        assert clone.tip == hub.tip()
        above = ["rev-list", "--merges", "--count", clone.tip, *([f"^{merge}"] if pushes else []), "--"]
        assert git(*above, cwd=clone.path).strip() == "0", "linear above the shared tip"
        fsck(clone.path)
    for name in git("ls-tree", "-r", "--name-only", a.tip, cwd=a.path).split():
        if name.endswith(".jsonl"):
            content = git("show", f"{a.tip}:{name}", cwd=a.path).encode()
            assert content == canonical(content), "canonical again"
