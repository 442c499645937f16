"""A ref is read and moved as git does it, and what git's refusals to move one mean."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.plumbing import lost_race, tip_of, update_ref
from tests.conftest import Git
from tests.git_on_path import GitOnPath

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
    """From nothing and from another commit; what comes with blanks and lines is one line; the file is no program."""
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
