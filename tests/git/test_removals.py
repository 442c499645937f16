"""Which commits took lines out of which files: whatever a repository's settings say, and never less than all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import history
from tests.conftest import Git
from tests.git_on_path import GitOnPath

ODD = """
[diff]
    external = false
    renames = copies
    orderFile = nowhere
    noprefix = true
[diff "upper"]
    textconv = false
"""
Found = Callable[[], list[tuple[str, str]] | None]


@pytest.fixture(params=["plain", "odd"])
def found(repo: Path, git: Git, request: pytest.FixtureRequest) -> Found:
    """What took lines away; also in a repository whose settings change what a person sees of differences."""

    def ask() -> list[tuple[str, str]] | None:
        commits = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
        if request.param == "odd":
            with open(repo / ".git/config", "a", encoding="utf-8") as config:
                config.write(ODD)
            (repo / ".git/info").mkdir(exist_ok=True)
            (repo / ".git/info/attributes").write_text("*.jsonl diff=upper\n")
        return history.removals(str(repo / ".git"), commits)

    return ask


def commit(git: Git, repo: Path, **files: bytes | None) -> str:
    """A commit that puts files, or takes them away."""
    for name, content in files.items():
        path = repo / f"{name}.jsonl"
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", "change", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


def test_what_only_grew_lost_nothing(repo: Path, git: Git, found: Found) -> None:
    """New files, and lines at any place of a file."""
    commit(git, repo, a=b"b\nd\n", b=b"x\n")
    commit(git, repo, a=b"a\nb\nc\nd\n\xff e\n", c=b"b\nd\n")
    commit(git, repo, a=b"a\nb\nc\nd\n\xff e\nf\n")

    assert found() == []


def test_each_commit_that_took_a_line_away_is_named_with_the_file(repo: Path, git: Git, found: Found) -> None:
    """A line, a whole file, and one that another took over; names are bytes."""
    commit(git, repo, a=b"a\nb\n", b=b"x\ny\n", c=b"1\n2\n3\n")
    one = commit(git, repo, a=b"a\nc\n")
    two = commit(git, repo, b=None, z=b"x\ny\n")
    three = commit(git, repo, **{"ä\tö": b"1\n"}, c=b"1\n\xff 2\n")
    four = commit(git, repo, **{"ä\tö": b""})

    assert found() == [(one, "a.jsonl"), (two, "b.jsonl"), (three, "c.jsonl"), (four, "ä\tö.jsonl")]


@pytest.mark.parametrize("attributes", ["", "*.jsonl binary\n"])
def test_what_git_takes_for_no_text_is_named_with_every_change(repo: Path, git: Git, attributes: str) -> None:
    """It says how many lines were removed of text alone."""
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text(attributes)
    one = commit(git, repo, a=b"a\n\0b\n", b=b"x\n\0\n")
    two = commit(git, repo, a=b"a\n\0b\nc\n")
    three = commit(git, repo, b=None)

    assert history.removals(str(repo / ".git"), [one, two, three]) == [(two, "a.jsonl"), (three, "b.jsonl")]


def test_a_merge_is_compared_with_each_side(repo: Path, git: Git, found: Found) -> None:
    """One that forgot what one side had."""
    start = commit(git, repo, a=b"a\n")
    ours = commit(git, repo, a=b"a\nb\n")
    git("checkout", "--quiet", "-b", "side", start, cwd=repo)
    commit(git, repo, a=b"a\nc\n")
    git("checkout", "--quiet", "main", cwd=repo)
    git("merge", "--quiet", "-s", "ours", "-m", "merge", "side", cwd=repo)
    merge = git("rev-parse", "HEAD", cwd=repo).strip()

    assert ours != merge
    assert found() == [(merge, "a.jsonl")]


def test_many_commits_are_asked_for_in_portions(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    for number in range(5):
        commit(git, repo, a=b"%d\nx\n" % number)
        taken.append(commit(git, repo, a=b"x\n"))
    commits = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
    program = GitOnPath(tmp_path, monkeypatch)

    rows = history.removals(str(repo / ".git"), commits, at_once=2) or []

    assert [each for each, _ in rows] == taken
    assert len(program.started) == -(-len(commits) // 2)


@pytest.mark.parametrize("content", [b"", None])
def test_what_can_not_be_read_is_not_taken_for_whole(
    repo: Path, git: Git, found: Found, content: bytes | None
) -> None:
    """An older file that a power loss has emptied, or that is gone."""
    commit(git, repo, a=b"a\n")
    oid = git("rev-parse", "HEAD:a.jsonl", cwd=repo).strip()
    commit(git, repo, a=b"a\nb\n")
    path = repo / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    if content is None:
        os.unlink(path)
    else:
        path.write_bytes(content)

    assert found() is None
