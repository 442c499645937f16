"""The quick way to a ref's value says nothing where it is not sure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import files
from gitmem.git.files import loose_tip, packed_tip

from ..conftest import Git

REF = "refs/gitmem/log"
BELOW = "refs/gitmem/"


def test_a_loose_ref_is_read(repo: Path, git: Callable[..., str]) -> None:
    """It is what git says."""
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    git("update-ref", REF, "HEAD", cwd=repo)

    assert loose_tip(str(repo / ".git"), REF) == head
    assert packed_tip(str(repo / ".git"), REF) is None


def test_a_packed_ref_is_found_whole(repo: Path, git: Callable[..., str]) -> None:
    """Neither a longer name nor a peeled tag is taken for it."""
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    for name in ("refs/gitmem/log", "refs/gitmem/log2", "refs/a/refs/gitmem/lo", "refs/heads/a"):
        git("update-ref", name, "HEAD", cwd=repo)
    git("tag", "-a", "-m", "x", "v1", cwd=repo)
    git("pack-refs", "--all", cwd=repo)
    common = str(repo / ".git")

    assert loose_tip(common, REF) is None
    assert packed_tip(common, REF) == head
    assert packed_tip(common, "refs/heads/a") == head
    for name in ("refs/gitmem/lo", "gitmem/log", "og", "refs/none", ""):
        assert packed_tip(common, name) is None


@pytest.mark.parametrize("oid", ["a1" * 20, "b2" * 32])
def test_an_id_of_either_length_is_read(tmp_path: Path, oid: str) -> None:
    """And of no other one, wherever it stands; the first line of a packed file may be a ref."""
    (tmp_path / "refs").mkdir()
    for length, name in ((len(oid), "whole"), (len(oid) - 1, "short"), (len(oid) + 1, "long")):
        (tmp_path / "refs" / name).write_text((oid + "c")[:length] + "\n")
    rows = [
        f"{(tmp_path / 'refs' / name).read_text().strip()} refs/p-{name}\n"
        for name in ("whole", "short", "long")
    ]
    (tmp_path / "packed-refs").write_text("".join(rows))
    common = str(tmp_path)

    assert [loose_tip(common, f"refs/{name}") for name in ("whole", "short", "long")] == [oid, None, None]
    assert [packed_tip(common, f"refs/p-{name}") for name in ("whole", "short", "long")] == [oid, None, None]


@pytest.mark.parametrize(
    "content", ["", "ref: refs/heads/main\n", "0123\n", "Z" * 40 + "\n", "a" * 41, "a" * 40 + " x\n"]
)
def test_what_is_not_plainly_an_id_is_none(repo: Path, content: str) -> None:
    """Symbolic, torn and foreign content is left to git."""
    path = repo / ".git" / REF
    path.parent.mkdir(parents=True)
    path.write_text(content)

    assert loose_tip(str(repo / ".git"), REF) is None


def test_nothing_there_is_none(repo: Path) -> None:
    """Also where a folder stands in the ref's place."""
    (repo / ".git" / REF).mkdir(parents=True)

    assert loose_tip(str(repo / ".git"), REF) is None
    assert loose_tip(str(repo / ".git"), "refs/none") is None
    assert packed_tip(str(repo / ".git"), REF) is None


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

    found = files.plain_refs_below(common, BELOW)

    assert found == listed(git, repo, BELOW)
    assert found is not None
    assert len(found) == 7
    assert list(found) == sorted(found)
    assert files.plain_refs_below(common, "refs/none/") == {}


@pytest.mark.parametrize(
    "content", ["", "torn", "ref: refs/heads/none\n", "REF: refs/heads/main\n", "see: x\n"]
)
def test_what_is_not_plain_is_left_to_git(repo: Path, common: str, git: Git, content: str) -> None:
    """One file that can't be read for sure, and none of them is answered without git."""
    git("update-ref", REF, "HEAD", cwd=repo)
    (repo / ".git" / BELOW / "odd").write_text(content)

    assert files.plain_refs_below(common, BELOW) is None


def test_where_no_refs_are_nothing_is_said_of_them(tmp_path: Path) -> None:
    """A folder that is no repository is not an empty one."""
    assert files.plain_refs_below(str(tmp_path), BELOW) is None
