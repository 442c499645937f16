"""SIGKILL in the middle of an append or a sync: the next command works, and what was acknowledged is there once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from gitmem.repo import find
from tests.clones import agree, git

from .faults import (
    ALL_STEPS,
    EACH_STEP,
    STEPS_MAX,
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
    for step in range(1, STEPS_MAX):
        clone = tmp_path / f"clone-{step}"
        shutil.copytree(repo, clone)
        end = child(speaking(clone, DulwichGit, "first"), SystemCall(step, NAMES[:5], kills=True))
        age_locks(clone)
        say(clone, "second")
        check(clone, {"second"} if end.died else {"first", "second"}, {"first"})
        if not end.died:
            break
    assert step > 20
