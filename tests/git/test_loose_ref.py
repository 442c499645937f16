"""Refs as files: they say what git says of them, and a move that fails leaves nothing behind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import loose_ref

from ..conftest import Git

REF = "refs/gitmem/log"
BELOW = "refs/gitmem/"


def listed(git: Git, repo: Path, prefix: str) -> dict[str, str]:
    """What git says of the refs below a prefix."""
    out = git("for-each-ref", "--format=%(refname) %(objectname)", prefix, cwd=repo)
    return dict(row.split(" ") for row in out.splitlines())


def second(git: Git, repo: Path) -> tuple[str, str]:
    """The one commit of the repository, and another one on top."""
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    old, new = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
    return old, new


def test_all_refs_below_a_prefix_are_told_as_git_tells_them(repo: Path, common: str, git: Git) -> None:
    """Loose, packed, both, in folders and symbolic; no lock of git's, and nothing that only begins alike."""
    old, new = second(git, repo)
    for name in ("log", "packed", "remotes/a/packed", "moved"):
        git("update-ref", BELOW + name, old, cwd=repo)
    git("update-ref", "refs/gitmem2/x", old, cwd=repo)
    git("pack-refs", "--all", cwd=repo)
    git("update-ref", BELOW + "moved", new, cwd=repo)
    git("update-ref", BELOW + "remotes/b/loose", new, cwd=repo)
    git("symbolic-ref", BELOW + "to/a-loose-one", BELOW + "remotes/b/loose", cwd=repo)
    git("symbolic-ref", BELOW + "to/a-packed-one", BELOW + "remotes/a/packed", cwd=repo)
    (repo / ".git" / (REF + ".lock")).write_text(new + "\n")

    found = loose_ref.refs_below(common, BELOW)

    assert found == listed(git, repo, BELOW)
    assert found is not None
    assert len(found) == 7
    assert list(found) == sorted(found)
    assert loose_ref.refs_below(common, "refs/none/") == {}


@pytest.mark.parametrize(
    "content", ["", "torn", "ref: refs/heads/none\n", "REF: refs/heads/main\n", "see: x\n"]
)
def test_what_is_not_plain_is_left_to_git(repo: Path, common: str, git: Git, content: str) -> None:
    """One file that can't be read for sure, and none of them is answered without git."""
    git("update-ref", REF, "HEAD", cwd=repo)
    (repo / ".git" / BELOW / "odd").write_text(content)

    assert loose_ref.refs_below(common, BELOW) is None


def test_where_no_refs_are_nothing_is_said_of_them(tmp_path: Path) -> None:
    """A folder that is no repository is not an empty one."""
    assert loose_ref.refs_below(str(tmp_path), BELOW) is None


def test_a_ref_is_read_wherever_it_stands(
    repo: Path, common: str, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its file, packed, in both or nowhere: without git; through another name with it."""
    old, new = second(git, repo)
    for name in ("packed", "moved"):
        git("update-ref", BELOW + name, old, cwd=repo)
    git("pack-refs", "--all", cwd=repo)
    git("update-ref", BELOW + "moved", new, cwd=repo)
    git("update-ref", BELOW + "loose", new, cwd=repo)
    git("symbolic-ref", BELOW + "alias", BELOW + "packed", cwd=repo)
    names = ("packed", "moved", "loose", "none")

    assert loose_ref.tip_of(common, BELOW + "alias") == old
    monkeypatch.setattr(loose_ref, "queries", None)
    assert [loose_ref.tip_of(common, BELOW + name) for name in names] == [old, new, new, None]


def test_a_move_is_in_the_reflog_as_git_would_write_it(repo: Path, common: str, git: Git) -> None:
    """From nothing and from another commit; what comes with blanks and lines is one line; the file is no program."""
    old, new = second(git, repo)

    assert loose_ref.swap(common, REF, None, old, "began")
    assert loose_ref.swap(common, REF, old, new, "went\n on\tfrom there ")

    rows = (repo / ".git/logs" / REF).read_text().splitlines()
    assert git("log", "-g", "--format=%H %gn %gs", REF, cwd=repo).splitlines() == [
        f"{new} gitmem went on from there",
        f"{old} gitmem began",
    ]
    assert [row.split(" ")[:2] for row in rows] == [["0" * 40, old], [old, new]]
    if os.name != "nt":
        modes = [(repo / ".git" / name / REF).stat().st_mode for name in ("logs", "")]
        assert [stat.S_IMODE(mode) & 0o111 for mode in modes] == [0, 0]


@pytest.mark.parametrize("fails", ["open", "write", "replace"])
def test_a_move_that_fails_has_not_been(
    repo: Path, common: str, git: Git, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """The ref, its reflog and its lock are as before, and the error says which ref, and that it was a file."""
    old, new = second(git, repo)
    assert loose_ref.swap(common, REF, None, old, "began")
    before = (repo / ".git/logs" / REF).read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, fails, fail)
        with pytest.raises(StoreError, match=REF) as caught:
            loose_ref.swap(common, REF, old, new, "went on")

    assert caught.value.code == "store-files"
    assert "No space left on device" in str(caught.value)
    assert loose_ref.tip_of(common, REF) == old
    assert (repo / ".git/logs" / REF).read_bytes() == before
    assert not (repo / ".git" / (REF + ".lock")).exists()
    assert loose_ref.swap(common, REF, old, new, "went on")
