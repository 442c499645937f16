"""Start: a clone takes up the log that it has under another name, else it begins one of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import Draft, Signature
from gitmem.log import ref
from gitmem.log.committer import create_ref_from_fetched, start_log
from gitmem.log.local_log import LocalLog
from tests.clones import git
from tests.git_on_path import GitOnPath
from tests.log.logs import all_lines, open_log

WHO = Signature("A", "a@a", 1)


class Desk:
    """A clone without a log, and commits that may become one."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.log = open_log(repo, seed=1)
        self.first = start_log(self.log)
        git("update-ref", "-d", ref.LOG_REF, cwd=repo)

    def put(self, onto: str | None = None, **changes: bytes | None) -> str:
        """A log with other files; keys of `changes` are names of segments, or `format`."""
        named = {
            key if key == "format" else f"s/2026-11/21/gm-{key}.jsonl": content
            for key, content in changes.items()
        }
        return self.write(named, onto)

    def write(self, changes: dict[str, bytes | None], onto: str | None = None) -> str:
        return self.log.git.write([Draft(changes, WHO, WHO, "By hand\n")], onto or self.first)[0]

    def name(self, **tips: str) -> None:
        """As a sync leaves them."""
        for remote, tip in tips.items():
            git("update-ref", f"{ref.REMOTES_PREFIX}{remote}/heads/gitmem", tip, cwd=self.repo)

    def lock(self, seconds: float) -> Path:
        """The lock on the log's ref of a process that was killed so long ago."""
        path = self.repo / ".git" / f"{ref.LOG_REF}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (time.time() - seconds, time.time() - seconds))
        return path

    @property
    def refs(self) -> dict[str, str]:
        found = self.log.git.refs("refs/gitmem/")
        return {name: oid for name, oid in found.items() if not name.startswith(ref.REMOTES_PREFIX)}


@pytest.fixture
def desk(repo: Path) -> Desk:
    return Desk(repo)


def test_a_log_begins_with_the_commit_of_all_logs(desk: Desk) -> None:
    """Then the files that every log has; nothing of it is published."""
    tip = start_log(desk.log)
    assert desk.refs == {ref.LOG_REF: tip}
    commit = desk.log.git.commit(tip)
    assert commit.parents == [ref.GENESIS] and commit.message == "Start the log of this repository\n"
    assert (commit.author.name, commit.committer.name) == ("Test Person", "Test Person")
    root = git("rev-parse", "main", cwd=desk.repo).strip()
    files = git("ls-tree", "-r", "--name-only", tip, cwd=desk.repo).split()
    assert files == [".gitattributes", "README.md", "format", f"projects/{root}"]
    content = git("show", f"{tip}:format", f"{tip}:README.md", f"{tip}:.gitattributes", cwd=desk.repo)
    assert (
        content.encode()
        == b'{"format":1,"epoch":0,"turn":0,"publish":"refs/heads/gitmem"}\n' + ref.README + ref.ATTRIBUTES
    )


def test_a_git_that_writes_another_first_commit_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that stands on it would be no kin of any other."""
    write, other = desk.log.git.write, Draft({}, WHO, WHO, "gitmem log\n")
    monkeypatch.setattr(desk.log.git, "write", lambda drafts, onto: write([other, *drafts[1:]], onto))
    with pytest.raises(StoreError) as refused:
        start_log(desk.log)
    assert refused.value.code == "genesis" and ref.GENESIS in refused.value.message
    assert desk.refs == {}


def test_the_log_that_has_everything_is_taken_as_it_is(desk: Desk) -> None:
    """Whatever it is called: no commit is made, and all of it counts as published."""
    less = desk.put(a=b"1\n")
    more = desk.put(less, a=b"1\n2\n")
    desk.name(early=less, later=more)
    assert start_log(desk.log) == more
    assert desk.refs == {ref.LOG_REF: more, ref.PUBLISHED_REF: more}


def test_logs_that_have_something_each_are_united(desk: Desk) -> None:
    """One commit of the person on the first, which names them; only what it stands on was published."""
    one, two, three = desk.put(a=b"1\n"), desk.put(a=b"2\n"), desk.put(b=b"3\n")
    desk.name(one=one, three=three, two=two)
    tip = start_log(desk.log)
    commit = desk.log.git.commit(tip)
    assert desk.refs == {ref.LOG_REF: tip, ref.PUBLISHED_REF: one}
    assert commit.parents == [one]
    assert (commit.author.name, commit.committer.name) == ("Test Person", "Test Person")
    assert commit.message == "Unite the logs that this clone has\n\n" + "".join(
        f"{ref.REMOTES_PREFIX}{name}/heads/gitmem\n" for name in ("one", "three", "two")
    )
    assert all_lines(desk.log) == [b"1", b"2", b"3"]


def test_what_was_published_before_is_not_forgotten(desk: Desk) -> None:
    """Somebody deleted the log's ref alone."""
    tip = desk.put(desk.put(a=b"1\n"), a=b"1\n2\n")
    git("update-ref", ref.PUBLISHED_REF, f"{tip}~1", cwd=desk.repo)
    desk.name(origin=tip)
    assert start_log(desk.log) == tip
    assert desk.refs[ref.PUBLISHED_REF] == desk.log.git.commit(tip).parents[0]


@pytest.mark.parametrize("form", [b'{"format":1,"epoch":1}\n', b'{"format":2}\n', b'{"format":0}\n', b"{}\n"])
def test_a_log_of_another_epoch_or_format_is_not_taken_up(desk: Desk, form: bytes) -> None:
    """It would stop this clone, or empty it."""
    good, bad = desk.put(a=b"1\n"), desk.put(b=b"2\n", format=form)
    desk.name(a=bad, origin=good)
    assert start_log(desk.log) == good
    assert all_lines(desk.log) == [b"1"]


def test_of_what_git_fetched_only_the_usual_remotes_log_is_taken_up(desk: Desk) -> None:
    """A fork that was fetched to look at its code has no say in the log."""
    ours, fork = desk.put(a=b"1\n"), desk.put(b=b"forged\n")
    for remote, tip in (("origin", ours), ("alice", fork)):
        git("remote", "add", remote, "/nowhere.git", cwd=desk.repo)
        git("update-ref", f"refs/remotes/{remote}/gitmem", tip, cwd=desk.repo)
    assert start_log(desk.log) == ours
    assert all_lines(desk.log) == [b"1"]


def test_the_usual_remote_is_looked_up_only_where_git_fetched_a_log(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that a sync left is taken up without a look at the config of the remotes."""
    program = GitOnPath(tmp_path, monkeypatch)
    tip = desk.put(a=b"1\n")
    desk.name(origin=tip)
    assert start_log(desk.log) == tip
    asked = [args.split() for _, args in program.started]
    assert not [args for args in asked if "remote" in args or args[-1].endswith(".remote")]


def test_the_log_of_another_project_is_no_log_of_ours(desk: Desk) -> None:
    """Neither by itself nor beside one that is ours."""
    (root,) = git("rev-parse", "main", cwd=desk.repo).split()
    theirs = {f"projects/{root}": None, f"projects/{'b' * 40}": b""}
    foreign = desk.write({**theirs, "s/2026-11/21/gm-b.jsonl": b"theirs\n"})
    desk.name(other=foreign)
    assert start_log(desk.log) == desk.first
    git("update-ref", "-d", ref.LOG_REF, cwd=desk.repo)
    ours = desk.put(a=b"ours\n")
    desk.name(another=ours)
    assert start_log(desk.log) == ours


def test_a_clone_without_commits_takes_up_one_project(tmp_path: Path) -> None:
    """Which of two strangers it is can't be told; uniting them could not be undone."""
    git("init", "--quiet", str(tmp_path / "empty"), cwd=tmp_path)
    desk = Desk(tmp_path / "empty")
    for name in "abc":
        project = "a" if name == "c" else name
        files = {f"projects/{project * 40}": b"", f"s/2026-11/21/gm-{name}.jsonl": f"{name}\n".encode()}
        desk.name(**{name: desk.write(dict(files))})
    start_log(desk.log)
    assert all_lines(desk.log) == [b"a", b"c"]


@pytest.mark.parametrize("fetched", [True, False], ids=["a log to adopt", "none"])
def test_who_loses_the_race_has_the_log_of_who_won(desk: Desk, fetched: bool) -> None:
    """Two processes of one clone start at the same moment."""
    if fetched:
        desk.name(origin=desk.put(a=b"1\n"))
    won = desk.put(b=b"2\n")
    before_swap(desk.log, lambda: git("update-ref", ref.LOG_REF, won, cwd=desk.repo))
    assert start_log(desk.log) == won
    assert desk.refs == {ref.LOG_REF: won}


@pytest.mark.parametrize("fetched", [True, False], ids=["a log to adopt", "none"])
def test_a_lock_of_the_dead_is_broken_and_one_that_is_alive_is_said(desk: Desk, fetched: bool) -> None:
    """Nothing is recorded then."""
    if fetched:
        desk.name(origin=desk.put(a=b"1\n"))
    left = desk.lock(0)
    with pytest.raises(StoreError) as refused:
        start_log(desk.log)
    assert (refused.value.code, refused.value.next) == ("locked", ["gitmem doctor"])
    assert ref.LOG_REF in refused.value.message and "again" in refused.value.hint
    assert left.exists() and desk.refs == {}
    desk.lock(60)
    assert start_log(desk.log) == desk.refs[ref.LOG_REF]
    assert not left.exists()


def test_who_only_reads_takes_up_what_there_is_and_starts_nothing(desk: Desk) -> None:
    """Nor where somebody else is at it; and a log that is there stays where it is."""
    create_ref_from_fetched(desk.log)
    assert desk.refs == {}
    tip = desk.put(a=b"1\n")
    desk.name(origin=tip)
    lock = desk.log.lock()
    desk.log.make_state()
    with lock:
        assert lock.take()
        create_ref_from_fetched(desk.log)
        assert desk.refs == {}
    create_ref_from_fetched(desk.log)
    assert desk.refs[ref.LOG_REF] == tip
    desk.name(origin=desk.put(tip, b=b"2\n"))
    create_ref_from_fetched(desk.log)
    assert desk.refs[ref.LOG_REF] == tip
    lock = desk.log.lock()
    assert lock.take(), "it is free again"
    lock.release()


def before_swap(log: LocalLog, act: Callable[[], object]) -> None:
    """Have somebody be faster once, just before the log's ref is made."""
    real = log.git.swap
    acts = [act]

    def swap(name: str, old: str | None, new: str, why: str) -> bool:
        while acts:
            acts.pop()()
        return real(name, old, new, why)

    log.git.swap = swap  # type: ignore[method-assign, assignment]
