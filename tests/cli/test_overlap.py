"""`gitmem overlap`, from the command line to the reader."""

from __future__ import annotations

from pathlib import Path

from ..conftest import Git
from .conftest import Run


def branch(git: Git, repo: Path, name: str, text: str) -> None:
    git("switch", "--quiet", "-c", name, "main", cwd=repo)
    (repo / "README").write_text(text)
    git("commit", "--quiet", "-am", name, cwd=repo)


def test_pairs_are_listed_and_told(run: Run, git: Git, repo: Path) -> None:
    """Exit status 1 for a conflict; the other side has it in its inbox."""
    assert run("overlap").status == 0
    nobody = run("overlap", "--notify", session=None)
    assert "Nobody was told: no two branches are in conflict." in nobody.out
    assert (
        "No branch has recent commits, a session or uncommitted files: nothing to compare"
        in run("overlap").out
    )
    branch(git, repo, "one", "one\n")
    run("session", "start", "--name", "One", "--agent-identity", "a:b:one")
    branch(git, repo, "other", "other\n")
    run("session", "start", "--name", "Other", "--agent-identity", "a:b:other")
    git("switch", "--quiet", "main", cwd=repo)

    said = run("overlap")

    assert said.status == 1
    assert said.out.splitlines()[1].split() == ["conflict", "one", "(One)", "other", "(Other)", "README"]
    assert "next: gitmem overlap --notify" in said.out
    found = run("overlap", "one", "--notify", "--json", "--as", "One").json
    assert (found["conflicts"], len(found["sent"]), found["overlaps"][0]["conflicting"]) == (1, 1, ["README"])
    assert "one and other conflict in README" in run("inbox", "--as", "Other").out
    again = run("overlap", "--notify", "--json", "--as", "One").json
    assert (again["sent"], again["warnings"]) == (
        [],
        ["Nobody was told: all of them were told already."],
    )
    assert run("overlap", "nowhere", "--json").json["error"]["code"] == "unknown-branch"


def test_what_strangers_named_is_shown_escaped(run: Run, git: Git, repo: Path) -> None:
    """No escape of a file's name reaches the terminal."""
    for name in ("one", "other"):
        git("switch", "--quiet", "-c", name, "main", cwd=repo)
        (repo / "a\n\x1b[2Jb").write_text(name)
        git("add", "--all", cwd=repo)
        git("commit", "--quiet", "-m", name, cwd=repo)
    git("switch", "--quiet", "main", cwd=repo)
    said = run("overlap")
    assert "\x1b" not in said.out
    assert "a\\u000a\\u001b[2Jb" in said.out
