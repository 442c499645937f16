"""A repository with a claim of somebody's, a tool that manages git's hooks, and a gitmem that notes how it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = dict(os.environ)  # the tests' own has no home, and npm's and pip's settings are there
NAMES = ("pre-commit", "pre-push", "post-commit", "post-merge")
INSTALL_SECONDS = 300
PACKAGES = ("husky@9", "lefthook@2")


@pytest.fixture(scope="session")
def tools(pytestconfig: pytest.Config) -> Path:
    """A folder with the programs husky, lefthook and pre-commit, kept between runs."""
    import fcntl

    folder = Path(pytestconfig.cache.mkdir("hook-tools"))
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs = folder / "bin"
        if not programs.exists():
            npm = [
                "npm",
                "install",
                "--silent",
                "--ignore-scripts",  # lefthook would install hooks in the repository around it
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(folder),
                *PACKAGES,
            ]
            subprocess.run(npm, check=True, env=OUTSIDE, timeout=INSTALL_SECONDS)
            venv.create(folder / "venv", with_pip=True)
            pip = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet", "pre-commit>=4"]
            subprocess.run(pip, check=True, env=OUTSIDE, timeout=INSTALL_SECONDS)
            programs.mkdir()
            for name in ("husky", "lefthook"):
                (programs / name).symlink_to(folder / "node_modules" / ".bin" / name)
            (programs / "pre-commit").symlink_to(folder / "venv" / "bin" / "pre-commit")
    return programs


class Repository:
    """A repository whose file a.txt somebody else has claimed, and the person who commits there.

    Attributes:
        top: The work tree.
        home: The person's home folder.
        ran: The file to which the user's hooks write a line at each run.
    """

    def __init__(self, folder: Path, tools: Path | None) -> None:
        self.top, self.home, self.ran = folder / "repo", folder / "home", folder / "ran"
        self.calls = folder / "calls"
        programs = folder / "programs"
        for each in (self.top, self.home, programs):
            each.mkdir()
        program = programs / "gitmem"
        start = f"import sys; sys.argv[0] = {str(program)!r}; sys.path.insert(0, {str(ROOT)!r})"
        code = f"{start}; from cli.main import main; sys.exit(main())"
        program.write_text(
            f'#!/bin/sh\necho "$*" >>"{self.calls}"\nexec "{sys.executable}" -c "{code}" "$@"\n'
        )
        program.chmod(0o755)
        path = [str(programs), *([str(tools)] if tools else []), OUTSIDE["PATH"]]
        self.env = {
            "PATH": os.pathsep.join(path), "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"),
            "PRE_COMMIT_HOME": str(self.home / "pre-commit"), "RAN": str(self.ran), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org", "GITMEM_COMMIT_AFTER": "0", "CI": "1",
        }  # fmt: skip
        self.run("git", "init", "--quiet", "--initial-branch=main")
        for name in ("a.txt", "b.txt"):
            (self.top / name).write_text("x\n")
        self.run("git", "add", "-A")
        self.run("git", "commit", "--quiet", "-m", "First")
        self.run("git", "init", "--quiet", "--bare", str(folder / "hub"))
        self.run("git", "remote", "add", "hub", str(folder / "hub"))
        self.run("git", "worktree", "add", "--quiet", str(folder / "other"))
        self.env["GITMEM_SESSION"] = self.session("Bob")
        self.run("gitmem", "claim", "a.txt", "--for", "1h", GITMEM_SESSION=self.session("Ann"))

    def session(self, name: str) -> str:
        found = json.loads(
            self.run("gitmem", "session", "start", "--name", name, "--json", GITMEM_SESSION="")
        )
        return str(found["session_id"])

    def run(self, *command: str, status: int | None = 0, **env: str) -> str:
        """Run a command, expect its status, and return all that it printed."""
        done = subprocess.run(
            command, cwd=self.top, env={**self.env, **env}, text=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert status is None or done.returncode == status, done.stdout
        return done.stdout

    def hooks(self, command: str) -> None:
        """Set up or remove all of gitmem's hooks; post-merge comes with post-commit."""
        for name in NAMES[:3]:
            self.run("gitmem", command, "--git", name)

    def states(self) -> set[str]:
        """Return the states that `gitmem doctor` tells."""
        found = json.loads(self.run("gitmem", "doctor", "--json", status=None))["hooks"]
        return {
            "replaced" if name in found["replaced"] else found[name.replace("-", "_")] for name in NAMES[:3]
        }

    def follow(self) -> None:
        """Run the commands that `gitmem doctor` proposes for hooks that were replaced."""
        found = json.loads(self.run("gitmem", "doctor", "--json", status=None))
        for step in found["next"]:
            if "--git" in step:
                self.run(*step.split())

    def seen(self) -> dict[str, tuple[bytes, int]]:
        """Return git's hooks and the work tree, each file with its content and mode."""
        folders = (self.top / ".git" / "hooks", self.top)
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        kept = [
            path
            for path in files
            if ".git" not in path.relative_to(self.top).parts[:1] or "hooks" in path.parts
        ]
        return {
            str(path): (path.read_bytes(), path.stat().st_mode) for path in kept if "gitmem" not in path.parts
        }

    def do(self, *command: str, status: int = 0, calls: bool = True) -> tuple[dict[str, int], dict[str, int]]:
        """Run git; return how often each hook of the user's ran, and how often each of gitmem's programs was started by hooks.

        Args:
            calls: Whether gitmem's program for a commit or merge is expected, which runs in the background.
        """
        self.ran.write_text("")
        self.calls.write_text("")
        self.run(*command, status=status)
        until = time.monotonic() + (10 if calls else 0.3)
        while time.monotonic() < until and (not calls or "note-commits" not in self.calls.read_text()):
            time.sleep(0.05)
        return _counted(self.ran), _counted(self.calls)

    def check(self, user: int, ours: int) -> None:
        """Check how often each hook of the user's and of gitmem's runs in a commit, a push and a merge."""
        (self.top / "b.txt").write_text(os.urandom(4).hex())
        ran, calls = self.do("git", "commit", "-m", "x", "b.txt", calls=bool(ours))
        assert (ran.get("pre-commit", 0), ran.get("post-commit", 0)) == (user, user)
        assert (calls.get("gate --hook pre-commit", 0), calls.get("background note-commits", 0)) == (
            ours,
            ours,
        )
        (self.top / "a.txt").write_text(os.urandom(4).hex())
        self.do("git", "commit", "-m", "x", "a.txt", status=ours, calls=not ours and False)
        self.run("git", "checkout", "--quiet", "HEAD", "a.txt")
        ran, calls = self.do("git", "push", "--quiet", "hub", "main", calls=False)
        assert (ran.get("pre-push", 0), calls.get("gate --hook pre-push", 0)) == (user, ours)
        self.run("git", "checkout", "--quiet", "-B", "side", "HEAD~1")
        (self.top / "c.txt").write_text(os.urandom(4).hex())
        self.run("git", "add", "c.txt")
        self.run("git", "commit", "--quiet", "--no-verify", "-m", "side", "c.txt")
        self.run("git", "checkout", "--quiet", "main")
        ran, calls = self.do("git", "merge", "--quiet", "--no-ff", "--no-edit", "side", calls=bool(ours))
        assert (ran.get("post-merge", 0), calls.get("background note-commits", 0)) == (user, ours)


def _counted(path: Path) -> dict[str, int]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {each: lines.count(each) for each in lines}


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Repository]:
    """`repository(tools)`: a repository, and the programs that are on the PATH there."""

    def make(tools: Path | None = None) -> Repository:
        return Repository(tmp_path, tools)

    return make
