"""A history of agents and people who rewrite each other's commits: nobody's commit is attributed to somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from .people import History


@pytest.mark.parametrize(
    ("commits", "seed"),
    [(40, 1), pytest.param(500, 2, marks=pytest.mark.deep), pytest.param(500, 3, marks=pytest.mark.deep)],
)
def test_commits_of_sessions_are_attributed_and_those_of_people_are_not(
    commits: int, seed: int, repo: Path, tmp_path: Path
) -> None:
    """At least 95 of 100 commits with something of a session name it; none names another, and none of people names a session."""
    history = History(repo, tmp_path / "linked", tmp_path / "far", seed)
    history.run(commits)
    wanted, found, wrong, people, missed = history.score()
    assert (wrong, people) == (0, 0), missed
    assert wanted > commits / 4 and found >= 0.95 * wanted, (wanted, found, missed)
    for store in history.stores:
        store.close()
