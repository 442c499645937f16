"""The guard of commits while git merges, reverts, picks or rebases: only what the committer changes itself counts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..hook_agents import note_program
from .conftest import Desk
from .test_python_path import SCRIPTS


class Two:
    """Ada on main, who claims a.txt, and Ben on a branch of his own; their b.txt conflict."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.repo = desk, desk.repo
        desk("init")
        self.commit("Base", ada=None, **{"a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})
        self.git("branch", "-M", "main")
        note_program(self.repo / ".git" / "gitmem", SCRIPTS / "gitmem")
        desk("hooks", "install", "--git", "pre-commit")
        self.ada, self.ben = desk.start("Ada"), desk.start("Ben")
        self.git("switch", "-qc", "ben")
        self.commit("Ben's", ada=False, **{"b.txt": "ben\n"})
        self.git("switch", "-q", "main")
        assert desk("claim", "a.txt", session=self.ada).status == 0
        self.commit("Ada's", ada=True, **{"a.txt": "ada\n", "b.txt": "ada\n"})

    def git(
        self, *args: str, ada: bool | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        who = {} if ada is None else {"GITMEM_SESSION": self.ada if ada else self.ben}
        env = {**os.environ, **who, "GIT_EDITOR": "true"}
        return subprocess.run(
            ["git", *args], cwd=self.repo, env=env, check=check, capture_output=True, text=True
        )

    def commit(self, subject: str, *, ada: bool | None, **files: str) -> None:
        for name, content in files.items():
            (self.repo / name).write_text(content)
        self.git("add", "--all")
        self.git("commit", "-qm", subject, ada=ada)

    def resolve(self, **more: str) -> None:
        for name, content in {"b.txt": "both\n", **more}.items():
            (self.repo / name).write_text(content)
        self.git("add", "--all")


@pytest.fixture
def two(desk: Desk) -> Two:
    return Two(desk)


def merge(two: Two) -> tuple[str, ...]:
    two.git("switch", "-q", "ben")
    two.git("merge", "main", check=False)
    return ("commit", "--no-edit")


def pick(two: Two) -> tuple[str, ...]:
    two.git("switch", "-q", "ben")
    two.git("cherry-pick", "main", check=False)
    return ("cherry-pick", "--continue")


def pick_and_commit(two: Two) -> tuple[str, ...]:
    pick(two)
    return ("commit", "--no-edit")


def revert(two: Two) -> tuple[str, ...]:
    two.commit("Ada's second", ada=True, **{"b.txt": "ada 2\n"})
    two.git("revert", "--no-edit", "HEAD~1", check=False)
    return ("revert", "--continue")


def rebase(two: Two) -> tuple[str, ...]:
    """Ben puts a commit that has a.txt, as he got it from Ada before, on main without it."""
    two.git("switch", "-qc", "other", "main~1")
    two.commit("Other", ada=False, **{"b.txt": "other\n"})
    two.git("switch", "-qc", "moved", "main")
    two.git("rebase", "--onto", "other", "main~1", "moved", check=False)
    return ("rebase", "--continue")


def rebase_and_commit(two: Two) -> tuple[str, ...]:
    rebase(two)
    return ("commit", "--no-edit")


@pytest.mark.parametrize("begin", [merge, pick, pick_and_commit, revert, rebase, rebase_and_commit])
def test_what_comes_from_another_side_is_nobody_s_change(
    two: Two, begin: Callable[[Two], tuple[str, ...]]
) -> None:
    go_on = begin(two)
    assert "b.txt" in two.git("diff", "--name-only", "--diff-filter=U").stdout
    assert "a.txt" in two.git("diff", "--cached", "--name-only").stdout
    two.resolve()

    done = two.git(*go_on, ada=False, check=False)

    assert done.returncode == 0, done
    assert not two.git("status", "--porcelain").stdout


@pytest.mark.parametrize(
    "begin", [merge, pick, revert, rebase_and_commit]
)  # `rebase --continue` runs no hook
def test_a_claimed_path_that_the_committer_changes_then_is_refused(
    two: Two, begin: Callable[[Two], tuple[str, ...]]
) -> None:
    """The pass that it proposes names that path, not the first one of the commit."""
    go_on = begin(two)
    two.resolve(**{"a.txt": "ben was here\n", "0.txt": "mine\n"})

    refused = two.git(*go_on, ada=False, check=False)

    assert refused.returncode == 1, refused
    (proposed,) = [line for line in refused.stderr.splitlines() if "--anyway" in line]
    assert "--paths a.txt" in proposed and "0.txt" not in proposed
    words = proposed.partition("gitmem ")[2].split()
    assert two.desk(*words, session=two.ben).status == 0
    assert two.git(*go_on, ada=False, check=False).returncode == 0


def test_in_a_linked_worktree(two: Two, tmp_path: Path) -> None:
    two.git("worktree", "add", "-q", str(tmp_path / "linked"), "ben")
    two.repo = tmp_path / "linked"
    two.git("merge", "main", check=False)
    two.resolve()
    assert two.git("commit", "--no-edit", ada=False, check=False).returncode == 0
    assert Path(two.repo, "a.txt").read_text() == "ada\n"
