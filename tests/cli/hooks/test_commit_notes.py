"""Commits of agents are recorded at the next command, at a client's hook, and before a sync."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.hooks import tool_use

from ...sandbox import Clock, open_store
from ..conftest import Run
from .conftest import Hook


def commit(repo: Path, subject: str, **env: str) -> tuple[str, str]:
    """A commit, and what git prints."""
    import os

    (repo / "file").write_text(subject)
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    out = subprocess.run(
        ["git", "commit", "-m", subject],
        cwd=repo,
        env={**os.environ, **env},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repo, capture_output=True, text=True
    ).stdout.strip(), out


def made(repo: Path) -> list[tuple[str, str, str]]:
    store = open_store(repo, Clock())
    rows = store.db().execute("SELECT body FROM line WHERE kind = 'commit'").fetchall()
    store.close()
    records = [json.loads(body) for (body,) in rows]
    return [(each["commit"], each["sender_session"], each["evidence"]) for each in records]


def test_a_tool_hook_records_what_the_agents_command_has_committed(hook: Hook, repo: Path) -> None:
    """The client's input has the command and its output; another commit at that time stays unknown."""
    session = hook.start("claude-code")
    theirs, _ = commit(repo, "a person's")
    own, out = commit(repo, "an agent's")
    tool = {
        "tool_name": "Bash",
        "tool_input": {"command": "git add -A && git commit -m x"},
        "tool_response": {"stdout": out},
    }
    hook("claude-code", "PostToolUse", **tool)  # type: ignore[arg-type]
    found = made(repo)
    assert (own, session, "output") in found and theirs not in [
        oid for oid, _, evidence in found if evidence == "output"
    ]


def test_a_command_and_a_sync_record_what_the_post_commit_hook_has_noted(
    run: Run, repo: Path, start: Callable[..., str]
) -> None:
    """The command that installs the hook says what is published, and one that removes it leaves nothing."""
    answer = run("setup", "--git", "post-commit", "--json").json["clients"]
    assert "git config gitmem.commits off" in answer["git"][0]["remarks"][-1]
    subprocess.run(["git", "commit", "-q", "--amend", "--no-edit", "--date=now"], cwd=repo, check=True)
    session = start("Bohr")
    notes = repo / ".git" / "gitmem" / "commits"
    first, _ = commit(
        repo, "one", GITMEM_SESSION=session, XDG_STATE_HOME="/nonexistent", PATH="/usr/bin:/bin"
    )
    (notes / "by-.git").write_text(f"{first} GITMEM_SESSION={session}\n")
    crowd = notes.parent.parent / "logs" / "HEAD"
    crowd.write_text("".join(crowd.read_text().splitlines(keepends=True)[-1:]))  # nothing just before it
    assert run("whoami", session=session).status == 0
    assert made(repo) == [(first, session, "environment")]
    assert run("doctor", "--json").json["hooks"]["post_commit"] == "installed"
    assert run("remove", "--git", "post-commit").status == 0
    assert not (repo / ".git" / "hooks" / "post-commit").exists() and not (notes / "hooked").exists()


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"tool_input": {"command": "git commit -qm x; git log"}, "tool_response": "[main 0123abc] x\n[fix/a (root-commit) 9876543f] y"}, ["0123abc", "9876543f"]),
        ({"tool_input": {"command": "cat log"}, "tool_response": {"stdout": "[main 0123abc] x"}}, []),
        ({"tool_input": {"command": "git commit"}, "tool_response": {"stdout": "0123abc x\n [main 0123abc] indented\n[main 0123] short"}}, []),
        ({"tool_input": None, "tool_response": 7}, []),
        ({"tool_input": ["git commit"], "tool_response": [[[[[["[main 0123abc] deep"]]]]]]}, []),
        ({"tool_input": "git commit", "output": "[" * 300_000 + "\n" + "[main 0123abc] x\n" * 100}, ["0123abc"] * 64),
    ],
)  # fmt: skip
def test_only_what_git_prints_about_a_new_commit_names_it(
    fields: dict[str, object], found: list[str]
) -> None:
    """Text of other commands names nothing; hostile output is searched within limits."""
    assert tool_use.printed_commits(fields) == found


@pytest.mark.parametrize("variable", ["GITMEM_SESSION", "CLAUDE_CODE_SESSION_ID"])
def test_the_first_commit_of_a_worktree_that_no_hook_has_met_has_its_author(
    variable: str, run: Run, hook: Hook, repo: Path, tmp_path: Path
) -> None:
    """As after EnterWorktree, or in a subagent's own worktree: the variables are inherited. What stood there before is nobody's."""
    session = hook.start("claude-code")
    assert run("setup", "--git", "post-commit").status == 0
    commit(repo, "before")
    there = tmp_path / "there"
    subprocess.run(["git", "worktree", "add", "-q", "-b", "there", str(there)], cwd=repo, check=True)
    value = session if variable == "GITMEM_SESSION" else "h-1"
    first, _ = commit(there, "first", **{variable: value})
    deadline = time.monotonic() + 20
    while not (found := made(repo)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == [(first, session, "environment")]
    by_nobody, _ = commit(there, "a person's")
    run("whoami", session=session, cwd=there)
    assert by_nobody not in [oid for oid, _, _ in made(repo)]
