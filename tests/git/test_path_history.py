"""How far paths are behind: odd names, and what is too far to count."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gitmem.git import path_changes
from tests.conftest import Git

ODD = ("new\nline", "cr\r")  # git reads them only where names end in NUL


def saved(git: Git, repo: Path, **files: str | None) -> str:
    """A commit of the user's; None removes a file."""
    for name, content in files.items():
        if content is None:
            (repo / name).unlink()
        else:
            (repo / name).write_text(content)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", "m", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


@pytest.mark.parametrize("name", ODD)
def test_odd_names_that_came_or_went_are_told(repo: Path, common: str, git: Git, name: str) -> None:
    """The commit that brought a file is what was known of it; one that is there no more is gone."""
    old = saved(git, repo, went="1", **{name + "went": "1", "a" + name: "1"})
    saved(git, repo, **{name: "1", name + "went": None, "went": None})
    tip = saved(git, repo, **{name: "2"})
    asked = (name, "went", name + "went", "a" + name, "README")
    known = path_changes.behind(common, tip, [(old, path) for path in asked])

    assert {path: (each.count, each.gone) for (_, path), each in known.items()} == {
        name: (1, False),
        "went": (1, True),
        name + "went": (1, True),
    }


@pytest.mark.parametrize("name", ODD)
def test_an_older_git_knows_nothing_of_odd_names_and_all_of_the_others(
    repo: Path, common: str, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Before 2.38 its `cat-file` has no way to be asked for them."""
    old = saved(git, repo, plain="1", **{name: "1"})
    tip = saved(git, repo, plain="2", **{name: "2"})
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--batch-check*" -z") echo "error: unknown switch" >&2; exit 129;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    known = path_changes.behind(common, tip, [(old, name), (old, "plain")])

    assert {path: each.count for (_, path), each in known.items()} == {"plain": 1}


def test_a_change_beyond_what_is_counted_is_no_change_of_the_tip(repo: Path, common: str, git: Git) -> None:
    """Of a path that was changed further back it is told that it moved on, and no commit that did not touch it."""
    steps = (("early", "1"), ("early", "2"), ("late", "1"), ("late", "2"), ("late", "3"))
    commits = [saved(git, repo, **{name: content}) for name, content in steps]

    found = path_changes.behind(
        common, commits[-1], [(commits[0], "early"), (commits[0], "late")], walk_max=2
    )

    early, late = found[commits[0], "early"], found[commits[0], "late"]
    assert (early.count, early.last, early.at_least) == (0, None, True)
    assert (late.count, late.last, late.at_least) == (2, commits[-1], True)
