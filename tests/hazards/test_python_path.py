"""A project whose PYTHONPATH has modules named as Python's: no entry of gitmem runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..hook_agents import Agent, note_program
from .conftest import ROOT, Desk, Said, waiting

# Installed as users have it; the wheel and an editable installation both have these scripts.
SCRIPTS = Path(sys.executable).parent
OURS = (
    "gitmem",
    "dulwich",
    "pydantic",
    "typer",
    "filelock",
    "rapidfuzz",
    "cryptography",
    "mcp",
    "watchfiles",
)


class Project:
    """A repository with `src/`, on the PYTHONPATH of its user."""

    def __init__(self, desk: Desk, top: Path) -> None:
        self.repo, self.src, self.marks = desk.repo, desk.repo / "src", top / "marks"
        self.src.mkdir()
        self.marks.mkdir()
        loaded = (
            "import sys; print(*sys.modules)"  # by the interpreter and its .pth files, before any program
        )
        early = subprocess.run(
            [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
        ).stdout.split()
        for name in {*sys.stdlib_module_names, *OURS} - set(early):
            text = f"open({str(self.marks)!r} + '/{name}-' + __name__, 'w').close()\nraise ImportError('taken')\n"
            (self.src / f"{name}.py").write_text(text)
        self.env = {**os.environ, "PYTHONPATH": str(self.src), "GITMEM_COMMIT_AFTER": "0.05"}
        self.run(sys.executable, "-c", "")
        for mark in self.ran():  # what the interpreter imports itself, before any program can prevent it
            (self.src / f"{mark.partition('-')[0]}.py").unlink()
            (self.marks / mark).unlink()

    def run(self, *command: str, cwd: Path | None = None, given: bytes = b"", **env: str) -> Said:
        done = subprocess.run(
            command,
            cwd=cwd or self.repo,
            env={**self.env, **env},
            input=given,
            capture_output=True,
            timeout=60,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def gitmem(self, *args: str, **env: str) -> Said:
        found = self.run(str(SCRIPTS / "gitmem"), *args, **env)
        assert found.status == 0, found
        return found

    def ran(self) -> list[str]:
        """The modules of the project that were run."""
        return sorted(os.listdir(self.marks))


@pytest.fixture
def project(desk: Desk, tmp_path: Path) -> Project:
    made = Project(desk, tmp_path)
    made.gitmem("init")
    return made


def test_the_trap_works(project: Project) -> None:
    assert project.run(sys.executable, "-c", "import csv").status == 1
    assert project.ran() == ["csv-csv"]


@pytest.mark.parametrize("path", ["src", "{src}", "src:", "other:src/", "src:{python}"])
def test_commands_and_the_processes_that_they_start(project: Project, path: str) -> None:
    env = {"PYTHONPATH": path.format(src=project.src, python=os.pathsep.join(sys.path))}
    session = project.gitmem("session", "start", "--name", "Ada", "--json", **env).json["session_id"]
    project.gitmem("signal", "Tabs?", "--to", "Ada", **env, GITMEM_SESSION=session)
    deadline = time.monotonic() + 30
    while waiting(project.repo):  # the committer is a process of its own
        assert time.monotonic() < deadline
        time.sleep(0.05)
    project.gitmem("log", **env)
    project.gitmem("sync", "--auto", **env)
    project.gitmem("--help", **env)

    assert project.ran() == []


@pytest.mark.parametrize("module", ["cli", "gitmem_cli"])
def test_python_m_in_the_folder_itself(project: Project, module: str) -> None:
    found = project.run(
        sys.executable, "-m", module, "roster", cwd=project.src, PYTHONPATH=f"{ROOT}{os.pathsep}{project.src}"
    )

    assert (found.status, project.ran()) == (0, []), found


def test_hooks_of_clients_and_git(project: Project, desk: Desk) -> None:
    note_program(desk.repo / ".git" / "gitmem", SCRIPTS / "gitmem")
    for hook in ("pre-commit", "pre-push", "post-commit"):
        project.gitmem("hooks", "install", "--git", hook)
    claude = Agent("claude-code", "claude-1", desk.repo, **project.env)
    claude.reads("SessionStart")
    (here,) = os.listdir(desk.repo / ".git" / "gitmem" / "sessions")
    other = project.gitmem("session", "start", "--name", "Ben", "--json").json["session_id"]
    project.gitmem("claim", "src/", GITMEM_SESSION=other)
    project.gitmem("signal", "Tabs?", "--to", here, GITMEM_SESSION=other)
    assert "Tabs?" in claude.reads("PostToolUse")
    (project.src / "own.py").write_text("1\n")
    project.run("git", "add", "src/own.py")
    refused = project.run("git", "commit", "-qm", "Own", CLAUDE_CODE_SESSION_ID="claude-1")
    assert refused.status == 1 and "Ben" in refused.err, refused
    project.run("git", "commit", "-qm", "Own", "--no-verify", CLAUDE_CODE_SESSION_ID="claude-1")
    project.run("git", "push", "-q", str(desk.repo), "HEAD:refs/heads/other")
    time.sleep(1)  # post-commit leaves a process behind

    assert project.ran() == []


def test_workers_but_not_what_they_run(project: Project) -> None:
    """A worker imports nothing of the project; the program that it runs for a task has the user's PYTHONPATH."""
    session = project.gitmem("session", "start", "--name", "Ada", "--json").json["session_id"]
    worker = subprocess.Popen(
        [SCRIPTS / "gitmem", "serve-agent", "bot", "--exec", "printenv PYTHONPATH"],
        cwd=project.repo, env=project.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while "bot" not in project.gitmem("roster").out and time.monotonic() < deadline:
            time.sleep(0.1)
        found = project.gitmem("call", "bot", "Go", "--timeout", "40s", "--json", GITMEM_SESSION=session)
    finally:
        worker.terminate()
        worker.communicate()

    assert str(project.src) in found.out
    assert project.ran() == []


def test_the_mcp_server_and_the_merge_driver(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    told = project.run(str(SCRIPTS / "gitmem"), "mcp", given=json.dumps(hello).encode() + b"\n")
    assert '"serverInfo"' in told.out, told
    for name in ("base", "ours", "theirs"):
        (tmp_path / name).write_text("")
    merged = project.run(
        str(SCRIPTS / "gitmem-merge"), *(str(tmp_path / name) for name in ("base", "ours", "theirs"))
    )
    assert merged.status == 0, merged

    assert project.ran() == []
