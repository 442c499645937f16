"""What git's refusals to move a ref mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import loose_ref, run
from gitmem.git.queries import lost_race, tip_of
from tests.conftest import Git


@pytest.mark.parametrize(
    "words",
    [
        "fatal: update_ref failed for ref 'r': cannot lock ref 'r': is at 1 but expected 2",
        "fatal: update_ref failed for ref 'r': cannot lock ref 'r': reference already exists",
        "fatal: update_ref failed for ref 'r': cannot lock ref 'r': unable to resolve reference 'r'",
        "error: cannot lock ref 'r': Unable to create '/x/refs/gitmem/log.lock': File exists.",
        "warning: Not updating refs/gitmem/log (new tip 1 does not contain 2)",
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

    for tip in (tip_of, loose_ref.tip_of):
        with pytest.raises(StoreError, match="damaged") as caught:
            tip(str(repo / ".git"), "refs/gitmem/log")
        assert caught.value.code == "damaged-ref"


def test_a_ref_that_leads_to_another_is_followed(repo: Path, git: Git) -> None:
    """A user may have made the log's ref a name of another one: what it leads to is its tip."""
    git("symbolic-ref", "refs/gitmem/log", "refs/heads/main", cwd=repo)

    for tip in (tip_of, loose_ref.tip_of):
        assert tip(str(repo / ".git"), "refs/gitmem/log") == git("rev-parse", "main", cwd=repo).strip()


def test_a_ref_that_is_made_while_git_is_asked_is_not_damaged(
    repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git did not see it yet; a moment later its file is there, and whole."""
    main = git("rev-parse", "main", cwd=repo).strip()
    asked = run.run

    def made_meanwhile(common: str, args: list[str], *, check: bool) -> run.Result:
        done = asked(common, args, check=check)
        git("update-ref", "refs/gitmem/log", main, cwd=repo)
        return done

    monkeypatch.setattr(run, "run", made_meanwhile)

    assert tip_of(str(repo / ".git"), "refs/gitmem/log") == main


def test_where_no_repository_is_there_is_no_tip_to_tell(tmp_path: Path) -> None:
    """To say that the ref is missing would have a new log started."""
    with pytest.raises(StoreError, match=r"^git rev-parse failed: fatal: not a git repository") as caught:
        tip_of(str(tmp_path), "refs/gitmem/log")
    assert caught.value.code == "git-failed"
