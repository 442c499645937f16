"""A session follows its client: through `/clear`, into another worktree; and no other agent takes its place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.clients import client_scope
from tests.conftest import Git
from tests.hook_agents import SHELL, said

from ..conftest import Run
from .conftest import Hook

CLAUDE = "claude-code"
START, END, TOOL, PROMPT = "SessionStart", "SessionEnd", "PostToolUse", "UserPromptSubmit"


def names(run: Run, *more: str) -> dict[str, dict[str, Any]]:
    """The sessions of the roster by their names."""
    return {each["display_name"]: each for each in run("roster", *more, "--json").json["sessions"]}


def add(git: Git, repo: Path, path: Path) -> Path:
    git("worktree", "add", "--quiet", "--detach", str(path), cwd=repo)
    return path


# /clear


def clear(hook: Hook, old: str, new: str, cwd: Path | None = None, **env: str) -> str:
    """What the model reads at the start after a `/clear`."""
    hook(CLAUDE, END, old, reason="clear", cwd=cwd, env=env)
    return hook.reads(CLAUDE, START, new, source="clear", cwd=cwd, env=env)


@pytest.mark.parametrize("identity", [None, "claude:tester:shop"])
def test_a_cleared_agent_goes_on_with_its_name_and_mail(hook: Hook, run: Run, identity: str | None) -> None:
    """Also beside another session of the worktree, with and without an identity."""
    run("setup")
    hook.start(CLAUDE, "other")
    ours = hook.start(CLAUDE, "before")
    if identity:
        run("session", "set", "--agent-identity", identity, session=ours)
    name = next(each for each, row in names(run).items() if row["session_id"] == ours)
    run("signal", "Shall we use quartz?", "--to", name, "--as", "human:person@example.org")

    text = clear(hook, "before", "after")
    assert f"You are {name} (" in text and "Shall we use quartz?" in text and "worked in" not in text
    assert names(run)[name]["session_id"] == ours and len(names(run, "--all")) == 2
    assert run("whoami", "--json", CLAUDE_CODE_SESSION_ID="after").json["session_id"] == ours
    assert run("whoami", "--json", CLAUDE_CODE_SESSION_ID="before").json["session_id"] != ours
    run("signal", "And marble?", "--to", name, "--as", "human:person@example.org")
    assert "And marble?" in hook.reads(CLAUDE, TOOL, "after")
    assert not (hook.state / "beats" / "before").exists() and not (hook.state / "flags" / "before").exists()
    hook(CLAUDE, END, "after", reason="other")
    assert name not in names(run)


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_the_work_of_an_agent_comes_back_with_its_context(
    hook: Hook, run: Run, repo: Path, source: str
) -> None:
    """What it was asked about a task that it gave, the result that waits for its seal, and the task that it has; each was shown before."""
    run("setup")
    ours = hook.start(CLAUDE, "before")
    run("session", "set", "--agent-identity", "claude:planner:shop", "--name", "Ada", GITMEM_SESSION=ours)
    peer = run("session", "start", "--name", "Ben", "--agent-identity", "codex:writer:shop", "--json").json
    theirs, me = {"GITMEM_SESSION": peer["session_id"]}, {"GITMEM_SESSION": ours}
    ask = ("--role", "implementer/general", "--scope", "paths=src/**", "-q")
    given = [run("delegate", text, "--to", "Ben", *ask, **me).out.strip() for text in ("Sort it", "Test it")]
    held = run("delegate", "Write it", "--to", "Ada", *ask, **theirs).out.strip()
    assert [run("task", "take", each, **theirs).status for each in given] == [0, 0]
    assert run("task", "take", held, **me).status == 0
    run("task", "message", "--ask", given[0], "Up or down?", **theirs)
    run("task", "done", given[1], "12 cases", **theirs)
    assert "Up or down?" in hook.reads(CLAUDE, "UserPromptSubmit", "before", prompt="next")
    if source == "clear":
        text = clear(hook, "before", "after")
    else:
        text = hook.reads(CLAUDE, START, "before", source="compact")
    assert (
        f"waits for you: {given[0]} Sort it, asks a question; next: gitmem task show {given[0]} (and 1 more"
        in text
    )
    assert f"you have: {held} Write it" in text


def test_who_resumes_the_conversation_before_a_clear_is_another_agent(hook: Hook, run: Run) -> None:
    """In another window, while the agent goes on: neither reads the other's mail."""
    ours = hook.start(CLAUDE, "before")
    clear(hook, "before", "after")
    resumed = hook.start(CLAUDE, "before", source="resume")
    assert resumed != ours
    for session, other in (("before", ours), ("after", resumed)):
        for who in (ours, resumed):
            run("signal", f"Only for {who}.", "--to", who, "--as", "human:person@example.org")
        text = hook.reads(CLAUDE, TOOL, session)
        assert "Only for sess-" in text and f"Only for {other}." not in text


def test_two_that_are_cleared_at_once_are_told_apart_by_their_windows(hook: Hook, run: Run) -> None:
    """Claude Code names its process to its hooks. Without that nobody can tell them apart: neither gets the other's mail."""
    one, two = hook.start(CLAUDE, "one"), hook.start(CLAUDE, "two")
    for old, window in (("one", "71"), ("two", "72")):
        hook(CLAUDE, END, old, reason="clear", env={"CLAUDE_PID": window})
    for new, window, ours in (("two-b", "72", two), ("one-b", "71", one)):
        hook(CLAUDE, START, new, source="clear", env={"CLAUDE_PID": window})
        assert run("whoami", "--json", CLAUDE_CODE_SESSION_ID=new).json["session_id"] == ours

    run(
        "signal",
        "Only for one.",
        "--to",
        one,
        "--as",
        "human:person@example.org",
        "--intent",
        "propose",
        "--requires-ack",
    )
    for old in ("one-b", "two-b"):
        hook(CLAUDE, END, old, reason="clear")
    for new in ("three", "four"):
        text = hook.reads(CLAUDE, START, new, source="clear")
        assert "Only for one." not in text and "has 1 unread (1 wants an answer)" in text
        assert f"`gitmem inbox --for {one}` shows its messages" in text
    left = {each["session_id"]: each for each in run("roster", "--json").json["sessions"]}
    assert (left[one]["status"], left[one]["unread"]) == ("ended", 1) and two not in left
    assert "unread messages: gitmem inbox --for" in run("roster").out
    assert "Only for one." in run("inbox", "--for", one).out


def test_a_clear_without_an_end_twice_and_in_two_worktrees(
    hook: Hook, run: Run, git: Git, tmp_path: Path
) -> None:
    """Whose context was cleared is not known then: a new session, once, and nobody's mail. Each worktree has its own."""
    side = add(git, hook.repo, tmp_path / "side")
    ours = hook.start(CLAUDE, "open")
    run("signal", "Only for the first.", "--to", ours, "--as", "human:person@example.org")
    for _ in range(2):
        assert "Only for the first." not in hook.reads(CLAUDE, START, "unknown", source="clear")
    assert len(names(run)) == 2

    there = hook.start(CLAUDE, "there", cwd=side)
    hook(CLAUDE, END, "open", reason="clear")
    hook(CLAUDE, END, "there", reason="clear", cwd=side)
    hook(CLAUDE, START, "there-b", source="clear", cwd=side)
    assert "Only for the first." in hook.reads(CLAUDE, START, "open-b", source="clear")
    assert "Only for the first." not in hook.reads(CLAUDE, START, "open-b", source="clear")
    for new, session in (("there-b", there), ("open-b", ours)):
        assert run("whoami", "--json", CLAUDE_CODE_SESSION_ID=new).json["session_id"] == session


def test_an_ended_session_with_unread_mail_stays_in_the_roster_until_it_is_read_by_its_agent(
    hook: Hook, run: Run
) -> None:
    """Ended otherwise than by a `/clear`, too; a resumed conversation reads it."""
    ours = hook.start(CLAUDE, "one")
    run("signal", "Are you there?", "--to", ours, "--as", "human:person@example.org")
    hook(CLAUDE, END, "one", reason="other")
    assert [row["unread"] for row in names(run).values()] == [1]
    assert "Are you there?" in hook.reads(CLAUDE, START, "one", source="resume")
    assert [(row["status"], row["unread"]) for row in names(run).values()] == [("live", 0)]


# Worktrees


def test_another_worktree_at_an_old_path_is_nobody_yet(
    run: Run, git: Git, repo: Path, tmp_path: Path
) -> None:
    """The mail of the agent that worked there is neither shown nor marked, and its session is not at work any more."""
    run("setup")
    side = add(git, repo, tmp_path / "side")
    ours = run("session", "start", "--name", "Ada", "--json", cwd=side).json["session_id"]
    run("signal", "Only for Ada.", "--to", "Ada", "--as", "human:person@example.org")
    assert run("whoami", "--json", cwd=side).json["session_id"] == ours

    git("worktree", "remove", str(side), cwd=repo)
    row = names(run)["Ada"]
    assert (row["status"], row["unread"]) == ("gone", 1)
    assert "Ada's worktree side is gone." in run("roster").out
    add(git, repo, side)
    asked = run("inbox", cwd=side)
    assert "Only for Ada." not in asked.out and "You act as Ada" not in asked.out + asked.err
    assert run("inbox", "--for", "Ada", "--json").json["unread"] == 1
    assert names(run)["Ada"]["status"] == "gone"
    new = run("session", "start", "--name", "Bea", "--json", cwd=side).json
    assert "Ada" not in new["remark"] or "has 1 unread" in new["remark"]
    assert run("inbox", "--json", cwd=side).json["signals"] == []
    # Whoever still has the session's id goes on with it, wherever that is.
    assert "Only for Ada." in run("inbox", session=ours).out
    assert names(run)["Ada"]["status"] == "live"


@pytest.mark.parametrize("how", ["move", "repair"])
def test_a_worktree_that_moves_keeps_its_session(
    run: Run, git: Git, repo: Path, tmp_path: Path, how: str
) -> None:
    """By git, or by hand and `git worktree repair`."""
    run("setup")
    side, moved = add(git, repo, tmp_path / "side"), tmp_path / "moved"
    ours = run("session", "start", "--name", "Ada", "--json", cwd=side).json["session_id"]
    if how == "move":
        git("worktree", "move", str(side), str(moved), cwd=repo)
    else:
        shutil.move(side, moved)
        git("worktree", "repair", str(moved), cwd=repo)
    run("signal", "For Ada.", "--to", "Ada", "--as", "human:person@example.org")
    assert run("whoami", "--json", cwd=moved).json["session_id"] == ours
    assert "For Ada." in run("inbox", cwd=moved).out
    assert names(run)["Ada"]["status"] == "live"


def test_a_pruned_or_damaged_worktree_is_told_so(run: Run, git: Git, repo: Path, tmp_path: Path) -> None:
    """What is left of it is a folder; the command after that works."""
    run("setup")
    side = add(git, repo, tmp_path / "side")
    run("session", "start", "--name", "Ada", cwd=side)
    folder = repo / ".git" / "worktrees" / "side"
    kept = (folder / "commondir").read_bytes()
    (folder / "commondir").write_bytes(b"../nowhere\n")
    asked = run("inbox", "--json", cwd=side)
    assert asked.status == 2 and "git folder is damaged (HEAD or commondir)" in asked.json["error"]["message"]
    (folder / "commondir").write_bytes(kept)
    shutil.rmtree(folder)
    asked = run("inbox", "--json", cwd=side)
    assert asked.status == 2 and "git folder is gone (removed or pruned)" in asked.json["error"]["message"]
    assert asked.json["next"] == [f"gitmem -C {repo} roster"]
    assert run(*asked.json["next"][0].split()[1:]).status == 0
    assert names(run)["Ada"]["status"] == "gone"


# EnterWorktree, subagents with a worktree of their own


@pytest.fixture
def shell(hook: Hook, tmp_path: Path) -> Callable[..., str]:
    """Run the installed script with a client's JSON, as Claude Code does from another worktree than that of its project."""
    path = tmp_path / "hook.sh"
    path.write_text(client_scope.script_text(CLAUDE))
    started = tmp_path / "started"
    program = tmp_path / "bin" / "gitmem"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\npwd >>{started}\nexec {Path(sys.executable).parent / "gitmem"} "$@"\n')
    program.chmod(0o755)

    def run(event: str, session: str, cwd: Path, **more: object) -> str:
        """The folders in which gitmem was started."""
        started.unlink(missing_ok=True)
        (hook.state / "program").unlink(missing_ok=True)  # else it starts that one
        env = {
            **os.environ, "CLAUDE_PROJECT_DIR": str(hook.repo), "CLAUDE_CODE_SESSION_ID": session, "CLAUDECODE": "1",
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        done = subprocess.run(
            [SHELL, str(path), event], cwd=cwd, env=env, input=json.dumps(said(CLAUDE, event, session, cwd, **more)),
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        return started.read_text() if started.exists() else ""

    return run


def test_a_session_that_enters_a_worktree_works_there(
    hook: Hook, run: Run, git: Git, shell: Callable[..., str]
) -> None:
    """The hooks have the project's folder in a variable, and run in the new worktree: gitmem starts there, once."""
    shell(START, "one", hook.repo, source="startup")
    (ours,) = hook.sessions()
    shell(PROMPT, "one", hook.repo)
    assert shell(TOOL, "one", hook.repo) == ""
    side = add(git, hook.repo, hook.repo / ".claude" / "worktrees" / "side")

    assert shell(TOOL, "one", side, tool_name="EnterWorktree") == f"{side}\n"
    assert shell(TOOL, "one", side) == ""
    assert [(each["session_id"], each["worktree"]) for each in names(run).values()] == [(ours, "side")]
    commit = {
        "tool_input": {"command": "git commit -m x"},
        "tool_response": {"stdout": "[detached HEAD 1] x"},
    }
    git("commit", "--quiet", "--allow-empty", "-m", "Inside", cwd=side)
    assert shell(TOOL, "one", side, **commit) == f"{side}\n"
    made = run("why", git("rev-parse", "HEAD", cwd=side).strip(), "--json").json
    assert ours in str(made)

    agent = add(git, hook.repo, hook.repo / ".claude" / "worktrees" / "agent-a1")
    git("commit", "--quiet", "--allow-empty", "-m", "Isolated", cwd=agent)
    assert shell(TOOL, "one", agent, agent_id="a1", agent_type="general-purpose") == f"{agent}\n"
    assert shell(TOOL, "one", agent, agent_id="a1", agent_type="general-purpose") == ""
    made = run("why", git("rev-parse", "HEAD", cwd=agent).strip(), "--json").json
    assert ours in str(made)
    assert [each["worktree"] for each in names(run).values()] == ["side"]
    assert shell(TOOL, "one", side) == ""
    assert shell(TOOL, "one", hook.repo) == f"{hook.repo}\n"
    assert [each["worktree"] for each in names(run).values()] == [hook.repo.name]


def test_a_hook_in_a_folder_of_another_repository_is_of_its_project(
    hook: Hook, git: Git, shell: Callable[..., str], tmp_path: Path
) -> None:
    """Such as a vendored one: its log is another one."""
    other = hook.repo / "vendor"
    other.mkdir()
    git("init", "--quiet", cwd=other)
    assert shell(START, "one", other, source="startup") == f"{hook.repo}\n"
    assert len(hook.sessions()) == 1


# Nested agents


def test_a_nested_agent_does_not_take_the_mail_of_the_one_that_started_it(hook: Hook, run: Run) -> None:
    """`claude -p` in another one's shell has its GITMEM_SESSION, with hooks of its own and without."""
    outer = hook.start(CLAUDE, "outer")
    run("signal", "Only for the outer one.", "--to", outer, "--as", "human:person@example.org")
    inside = {"GITMEM_SESSION": outer, "CLAUDE_CODE_SESSION_ID": "inner"}
    for args in (("inbox",), ("inbox", "--count"), ("whoami",)):
        asked = run(*args, **inside)
        assert (
            "Only for the outer one." not in asked.out
            and "1" not in asked.out.split()
            and outer not in asked.out
        )
    inner = hook.start(CLAUDE, "inner", env=inside)
    assert inner != outer
    assert "Only for the outer one." not in run("inbox", **inside).out
    assert run("whoami", "--json", **inside).json["session_id"] == inner
    assert "Only for the outer one." in run("inbox", session=outer, CLAUDE_CODE_SESSION_ID="outer").out


def test_a_session_that_a_person_named_is_for_one_client_at_a_time(hook: Hook, run: Run) -> None:
    """It was exported in a terminal: the client there works as it, one that this starts does not, the next one does."""
    named = run("session", "start", "--name", "Hal", "--json").json["session_id"]
    run("signal", "Only for Hal.", "--to", "Hal", "--as", "human:person@example.org")
    env = {"GITMEM_SESSION": named}
    assert "You are Hal (" in hook.reads(CLAUDE, START, "outer", env=env)
    inner = hook.reads(CLAUDE, START, "inner", env=env)
    assert "You are Hal (" not in inner
    inside = {**env, "CLAUDE_CODE_SESSION_ID": "inner"}
    assert run("whoami", "--json", **inside).json["session_id"] not in (None, named)
    assert run("whoami", "--json", **env, CLAUDE_CODE_SESSION_ID="outer").json["session_id"] == named
    hook(CLAUDE, END, "inner", env=env)
    hook(CLAUDE, END, "outer", env=env)
    assert "You are Hal (" in hook.reads(CLAUDE, START, "next", env=env)
    assert names(run)["Hal"]["session_id"] == named


def test_of_two_clients_the_one_that_began_last_runs_a_command(hook: Hook, run: Run) -> None:
    """Codex within Claude Code, and the other way round: both variables are set. Until both are known nobody acts."""
    outer = hook.start(CLAUDE, "c-outer")
    run("signal", "Only for the outer one.", "--to", outer, "--as", "human:person@example.org")
    both = {"CLAUDE_CODE_SESSION_ID": "c-outer", "CODEX_THREAD_ID": "x-inner", "GITMEM_SESSION": outer}
    asked = run("inbox", **both)
    assert asked.status == 2 and "Only for the outer one." not in asked.out + asked.err
    assert "CLAUDE_CODE_SESSION_ID and CODEX_THREAD_ID are set" in asked.err
    inner = run("session", "start", "--json", **both).json["session_id"]
    assert inner != outer
    for env in (both, {**both, "GITMEM_SESSION": inner}):
        assert run("whoami", "--json", **env).json["session_id"] == inner
    assert "Only for the outer one." in run("inbox", session=outer, CLAUDE_CODE_SESSION_ID="c-outer").out
