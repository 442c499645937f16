"""Clones that left files with a remote: what they lack is told exactly, and brought only when it is asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem.git import fetch

from ..conftest import Git


@pytest.fixture
def lent(repo: Path, git: Git) -> Path:
    """A remote of two commits, each with a file in a folder of its own."""
    for name in ("one", "two"):
        (repo / name).mkdir()
        (repo / name / "file").write_text(name)
        git("add", name, cwd=repo)
        git("commit", "--quiet", "-m", name, cwd=repo)
    git("config", "uploadpack.allowFilter", "true", cwd=repo)
    git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=repo)
    return repo


def clone(git: Git, lent: Path, kind: str) -> str:
    less = lent.parent / "less"
    git("clone", "--quiet", "--bare", f"--filter={kind}", f"file://{lent}", str(less))
    git("tag", "-a", "-m", "a tag is no log", "v1", "main~1", cwd=less)
    for name, at in (("main", "main"), ("old", "main~1"), ("tag", "v1")):
        git("update-ref", f"refs/copies/{name}", at, cwd=less)
    return str(less)


def ids(git: Git, lent: Path, *names: str) -> set[str]:
    return set(git("rev-parse", *names, cwd=lent).split())


def test_what_is_not_here_is_told(lent: Path, git: Git) -> None:
    """Of two commits the files of both, once each; of a history all; of a whole clone nothing."""
    less = clone(git, lent, "blob:none")
    old, tip = git("rev-list", "--reverse", "main", cwd=lent).split()[1:]
    first, last = ids(git, lent, "main:README", "main:one/file"), ids(git, lent, "main:two/file")

    assert set(fetch.missing_objects(less, [old])) == first
    assert sorted(fetch.missing_objects(less, [old, tip])) == sorted(first | last)
    assert fetch.missing_objects(less, []) == []
    assert fetch.promised_objects(less, tip) == first | last
    assert fetch.is_incomplete(less, tip)
    whole = str(lent / ".git")
    assert (
        fetch.missing_objects(whole, [tip]),
        fetch.promised_objects(whole, tip),
        fetch.is_incomplete(whole, tip),
    ) == (
        [],
        set(),
        False,
    )


def test_what_nobody_promised_is_not_promised(lent: Path, git: Git) -> None:
    """A commit whose file was lost here: no remote has it, so nothing of it is left to one."""
    less = clone(git, lent, "blob:none")
    lost = git("hash-object", "-w", "--stdin", cwd=Path(less), input="lost").strip()
    tree = git("mktree", cwd=Path(less), input=f"100644 blob {lost}\tlost\n").strip()
    oid = git("commit-tree", "-p", "main", "-m", "ours", tree, cwd=Path(less)).strip()
    (Path(less) / "objects" / lost[:2] / lost[2:]).unlink()

    assert fetch.promised_objects(less, oid) == set()
    assert fetch.missing_objects(less, [oid]) == [lost]


@pytest.mark.parametrize("kind", ["blob:none", "tree:0"])
def test_all_that_the_copies_lack_is_brought(lent: Path, git: Git, kind: str) -> None:
    """Folders first, then what is in them; from who promised it, and nothing that is here is asked for."""
    less = clone(git, lent, kind)
    tip = git("rev-parse", "main", cwd=lent).strip()
    before = (Path(less) / "config").read_bytes(), git("for-each-ref", cwd=Path(less))
    asked: list[tuple[str, set[str]]] = []

    def online(name: str, args: list[str], given: bytes) -> None:
        asked.append((name, set(given.decode("ascii").split())))
        subprocess.run(["git", *args], cwd=less, input=given, check=True, timeout=30)

    fetch.fetch_missing(less, "refs/copies/", online)
    rounds = len(asked)
    fetch.fetch_missing(less, "refs/copies/", online)
    fetch.fetch_missing(str(lent / ".git"), "refs/", online)

    files = ids(git, lent, "main:README", "main:one/file", "main:two/file")
    assert asked[-1][1] >= (files if kind == "blob:none" else set())
    assert (rounds, len(asked)) == (len(asked), 1 if kind == "blob:none" else rounds)
    assert {name for name, _ in asked} == {"origin"}
    assert fetch.missing_objects(less, [tip]) == []
    assert not fetch.is_incomplete(less, tip)
    assert ((Path(less) / "config").read_bytes(), git("for-each-ref", cwd=Path(less))) == before
    assert not (Path(less) / "FETCH_HEAD").exists()


def test_a_remote_that_never_gives_them_is_not_asked_for_ever(lent: Path, git: Git) -> None:
    """It answers, and what was promised is still not here; nothing outside of the prefix is asked for."""
    less = clone(git, lent, "blob:none")
    asked: list[str] = []

    fetch.fetch_missing(less, "refs/none/", lambda name, *_: asked.append(name))
    assert asked == []
    fetch.fetch_missing(less, "refs/copies/", lambda name, *_: asked.append(name))
    assert asked == ["origin"] * fetch.ROUNDS_MAX
