"""The benchmark of collisions runs on any repository, and its tools keep agents from doing a job twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.collision_plan import Plan, Profile, edited, hot_files, read_history
from benchmarks.collisions import simulate
from tests import templates

SMALL = Profile("small", clones=2, agents=2, jobs=4, shared=4, minutes=180)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A repository whose commits change two files, and often a changelog."""
    templates.copy("history", tmp_path / "repo", _make_history)
    return tmp_path / "repo"


def _make_history(repo: Path) -> None:
    templates.first_commit(repo)
    lines = [f"line {number}\n" for number in range(40)]
    for name in (*(f"file{number}.txt" for number in range(32)), "CHANGES"):
        (repo / name).write_text("".join(lines))
    subprocess.run(["git", "add", "."], cwd=repo, check=True)
    for number in range(33):
        for name in (f"file{number % 32}.txt", f"file{(number * 3 + 1) % 32}.txt", "CHANGES")[
            : 2 + number % 2
        ]:
            path = repo / name
            path.write_text(edited(path.read_text(), [(1 + number, 2)], f"#{number:02}"))
        subprocess.run(["git", "commit", "-qam", f"Change {number}"], cwd=repo, check=True)


def test_jobs_are_the_lines_that_commits_changed(history: Path) -> None:
    patches = read_history(str(history))

    assert len(patches) == 32  # the first commit adds the files
    assert patches[0] == {"file0.txt": [(33, 2)], "file1.txt": [(33, 2)]}
    assert "CHANGES" in hot_files(patches)


def test_a_plan_is_fixed_by_its_seed(history: Path) -> None:
    patches = read_history(str(history))
    one, same, other = (
        [[job.name for job in jobs] for jobs in Plan(SMALL, patches, seed).lists] for seed in (1, 1, 2)
    )

    assert one == same
    assert one != other
    assert sum(map(len, one)) == 4 * (4 + 4)


def test_an_edit_marks_lines_once_also_beyond_the_end() -> None:
    assert edited("a\nb\r\nc", [(2, 1), (2, 1), (9, 3)], "by x") == "a\nb  by x\r\nc  by x"


@pytest.mark.deep
def test_messages_and_claims_keep_jobs_from_being_done_twice(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one plan with a good network, in which without a tool some are."""
    monkeypatch.setenv("HOME", str(tmp_path))  # the benchmark sets its own: put it back afterwards
    patches = read_history(str(history))
    found = {}
    for number, tool in enumerate(("nothing", "messages only", "claims and radar")):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        found[tool] = simulate(str(folder), str(history), patches, SMALL, tool, 2)

    nothing, messages, claims = found.values()
    assert nothing.duplicates > messages.duplicates >= claims.duplicates
    assert nothing.wasted > messages.wasted >= claims.wasted
    assert nothing.overlaps > claims.overlaps
    assert nothing.told == 0
