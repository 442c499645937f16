"""A ref is read and moved as git does it, and what git's refusals to move one mean."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import files
from gitmem.git.files import loose_tip, packed_tip
from gitmem.git.plumbing import lost_race, tip_of, update_ref

from ..conftest import Git
from ..git_on_path import GitOnPath

REF = "refs/gitmem/log"
BELOW = "refs/gitmem/"


@pytest.mark.parametrize(
    "words",
    [
        "fatal: update_ref failed for ref 'r': cannot lock ref 'r': is at 1 but expected 2",
        "fatal: update_ref failed for ref 'r': cannot lock ref 'r': reference already exists",
        "fatal: update_ref failed for ref 'r': cannot lock ref 'r': unable to resolve reference 'r'",
        "error: cannot lock ref 'r': Unable to create '/x/refs/gitmem/log.lock': File exists.",
    ],
)
def test_a_lost_race_is_known_by_git_s_words(words: str) -> None:
    """The caller tries again on the new tip."""
    assert lost_race(words)


@pytest.mark.parametrize(
    "words",
    [
        "error: cannot lock ref 'r': Unable to create '/x/refs/gitmem/log.lock': Permission denied",
        "error: cannot lock ref 'r': Unable to create '/x/refs/gitmem/log.lock': Read-only file system",
        "fatal: trying to write ref 'r' with nonexistent object 1",
        "fatal: write error: No space left on device",
        "",
    ],
)
def test_other_failures_are_no_race(words: str) -> None:
    """To try again would not help: the caller hears of it."""
    assert not lost_race(words)


def test_a_torn_ref_is_an_error(repo: Path) -> None:
    """It is not taken for a missing one, on which a new log would be started."""
    path = repo / ".git/refs/gitmem/log"
    path.parent.mkdir()
    path.write_text("")

    with pytest.raises(StoreError, match="damaged") as caught:
        tip_of(str(repo / ".git"), "refs/gitmem/log")
    assert caught.value.code == "damaged-ref"


def test_a_ref_that_leads_to_another_is_followed(repo: Path, git: Git) -> None:
    """A user may have made the log's ref a name of another one: what it leads to is its tip."""
    git("symbolic-ref", "refs/gitmem/log", "refs/heads/main", cwd=repo)

    assert tip_of(str(repo / ".git"), "refs/gitmem/log") == git("rev-parse", "main", cwd=repo).strip()


def test_a_ref_that_is_made_while_git_is_asked_is_not_damaged(
    repo: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was torn, and git did not take it for a ref; a moment later its file is whole."""
    main = git("rev-parse", "main", cwd=repo).strip()
    (repo / ".git/refs/gitmem").mkdir()
    (repo / ".git/refs/gitmem/log").touch()
    GitOnPath(tmp_path, monkeypatch).does(
        f'"$git" "$@"; code=$?; echo {main} >"{repo}/.git/refs/gitmem/log"; exit $code', to="rev-parse"
    )

    assert tip_of(str(repo / ".git"), "refs/gitmem/log") == main


def test_where_no_repository_is_there_is_no_tip_to_tell(tmp_path: Path) -> None:
    """To say that the ref is missing would have a new log started."""
    with pytest.raises(StoreError, match=r"^git rev-parse failed: fatal: not a git repository") as caught:
        tip_of(str(tmp_path), "refs/gitmem/log")
    assert caught.value.code == "git-failed"


def second(git: Git, repo: Path) -> tuple[str, str]:
    """The one commit of the repository, and another one on top."""
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    old, new = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
    return old, new


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

    assert tip_of(common, BELOW + "alias") == old
    monkeypatch.setenv("PATH", "/nowhere")
    assert [tip_of(common, BELOW + name) for name in names] == [old, new, new, None]


def test_a_move_is_in_the_reflog_as_git_would_write_it(repo: Path, common: str, git: Git) -> None:
    """From no commit and from another one; white space becomes one line; the file is not executable."""
    old, new = second(git, repo)

    assert update_ref(common, REF, None, old, "began")
    assert update_ref(common, REF, old, new, "went\n on\tfrom there ")

    rows = (repo / ".git/logs" / REF).read_text().splitlines()
    assert git("log", "-g", "--format=%H %gn %gs", REF, cwd=repo).splitlines() == [
        f"{new} gitmem went on from there",
        f"{old} gitmem began",
    ]
    assert [row.split(" ")[:2] for row in rows] == [["0" * 40, old], [old, new]]
    if os.name != "nt":
        modes = [(repo / ".git" / name / REF).stat().st_mode for name in ("logs", "")]
        assert [stat.S_IMODE(mode) & 0o111 for mode in modes] == [0, 0]


# The quick way to a ref's value says nothing where it is not sure.


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
