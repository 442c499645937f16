"""The command line, run in this process in a repository of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli import main as front
from tests import in_process

NEEDS_SHELL = re.compile(r"[^\w \"'./:=@%+,-]")


class Said:
    """What a command answered."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        lines = self.out.splitlines()
        assert len(lines) == 1, f"not one line: {self.out!r} {self.err!r}"
        return json.loads(lines[0])

    @property
    def is_silent(self) -> bool:
        return (self.status, self.out, self.err) == (0, "", "")

    def __repr__(self) -> str:
        return f"exit {self.status}\n{self.out}\n--- err\n{self.err}"


Run = Callable[..., Said]


def let_wait(request: pytest.FixtureRequest, patch: pytest.MonkeyPatch) -> None:
    """Let what a command records wait, unless the test wants commits or sets a time itself."""
    if "commits" not in request.fixturenames and os.environ["GITMEM_COMMIT_AFTER"] == "0":
        patch.setenv("GITMEM_COMMIT_AFTER", "3600")
        in_process.no_committer(patch)


@pytest.fixture
def run(
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    request: pytest.FixtureRequest,
) -> Run:
    """`run("inbox", "--json", session="sess-…", cwd=…)`: the exit status and what was printed."""
    monkeypatch.chdir(repo)
    with (repo / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Test Person\n\temail = person@example.org\n")

    def command(*args: str, session: str | None = None, cwd: Path | None = None, **env: str) -> Said:
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            if session is not None:
                patch.setenv("GITMEM_SESSION", session)
            let_wait(request, patch)
            for name, value in env.items():
                patch.setenv(name, value)
            capfdbinary.readouterr()
            status = front.main(args)
            out, err = capfdbinary.readouterr()
        return Said(status, out.decode(), err.decode())

    return command


@pytest.fixture
def shell(run: Run, repo: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """`shell("gitmem roster", session="sess-…")`: what an agent's shell does with lines that it was shown.

    A command of gitmem that needs no shell, but for its quotes, runs in this process.
    """

    def lines(script: str, *, session: str | None = None, cwd: Path = repo, **env: str) -> Said:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env |= {"GITMEM_SESSION": session} if session else {}
        if script.startswith("gitmem ") and not NEEDS_SHELL.search(script):
            with monkeypatch.context() as patch:
                let_wait(request, patch)
                said = in_process.gitmem(*shlex.split(script)[1:], cwd=cwd, env=env)
            return Said(said.returncode, said.stdout.decode(), said.stderr.decode())
        done = subprocess.run(
            ["sh", "-c", script], cwd=cwd, env={**os.environ, "PATH": path, **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    return lines


@pytest.fixture(autouse=True)
def _in_order(pool_in_order: None) -> None:
    """A session without a name of its own must not get one that a test asks for later."""


@pytest.fixture
def start(run: Run) -> Callable[..., str]:
    """`start("Planck")`: a new session of that name; its id."""

    def session(name: str, *more: str) -> str:
        found = run(
            "session",
            "start",
            "--name",
            name,
            "--agent-identity",
            f"test:worker:{name.lower()}",
            *more,
            "--json",
        )
        assert found.status == 0, found
        return str(found.json["session_id"])

    return session


def create(run: Run, *args: str, **more: str) -> str:
    """Create a memory node; its id."""
    return run("mem", "create", *args, "-q", **more).out.strip()
