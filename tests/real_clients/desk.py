"""A repository with two worktrees: a real client works in one of them, and a peer writes to it from the other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.real_clients.clients import RUN_SECONDS, Client
from tests.real_clients.model import Asked, Model, Play, serving

PEER = "Curie"


def until(holds: Callable[[], object]) -> bool:
    """Whether something comes to hold while a client has time."""
    end = time.monotonic() + RUN_SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


class Home:
    """A home folder, a repository and the program of gitmem; a client runs in it as on a new machine."""

    def __init__(self, home: Path, work: Path, gitmem: Path) -> None:
        self.home = home
        self.work = work
        self.gitmem_program = gitmem
        self.home.mkdir(exist_ok=True)
        node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
        path = os.pathsep.join([str(gitmem.parent), node, "/usr/local/bin", "/usr/bin", "/bin"])
        self.env = {
            "HOME": str(self.home),
            "PATH": path,
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "SHELL": "/bin/sh",
        }
        # A login shell, which some clients run commands in, takes its PATH from here.
        (self.home / ".profile").write_text(f'PATH="{path}"\n')
        self.git("init", "--quiet", "--initial-branch=main", str(self.work), cwd=self.home)
        self.git("config", "user.name", "Test Person")
        self.git("config", "user.email", "person@example.org")
        self.git("commit", "--quiet", "--allow-empty", "-m", "First")

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.work, env=self.env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout

    def gitmem(self, *args: str, cwd: Path | None = None, session: str | None = None) -> Any:
        """What the program of gitmem answers, run in the client's worktree unless another one is named."""
        env = {**self.env, **({"GITMEM_SESSION": session} if session else {})}
        done = subprocess.run(
            [self.gitmem_program, *args, "--json"],
            cwd=cwd or self.work,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"gitmem {' '.join(args)}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def left(self) -> list[int]:
        """The processes that the client has left behind: those that know our home."""
        mark = f"HOME={self.home}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def clear(self) -> None:
        """End what the client has left behind."""
        for each in self.left():
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue


class Desk(Home):
    """The two worktrees, the program of gitmem, and a home that only this test has."""

    def __init__(self, root: Path, gitmem: Path, client: Client, program: Path) -> None:
        super().__init__(root / "home", root / "shop", gitmem)
        self.client = client
        self.program = program
        self.away = root / "shop-peer"
        self.git("worktree", "add", "--quiet", str(self.away))
        self.gitmem("setup")
        self.peer = str(self.gitmem("session", "start", "--name", PEER, cwd=self.away)["session_id"])

    def signal(self, message: str, to: str, *words: str) -> None:
        """The peer says something to one session."""
        self.gitmem("signal", message, "--to", to, *words, cwd=self.away, session=self.peer)

    def inbox(self) -> list[dict[str, Any]]:
        """What the peer has not read yet."""
        found: list[dict[str, Any]] = self.gitmem("inbox", cwd=self.away, session=self.peer)["signals"]
        return found

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions that are at work, but for the peer's."""
        found: list[dict[str, Any]] = self.gitmem("roster")["sessions"]
        return [each for each in found if each["session_id"] != self.peer]

    def turn(self, script: Sequence[Play], prompt: str = "Begin now.") -> list[Asked]:
        """One turn of the client, whose model follows the script: what the model was asked."""
        model = Model(self.client.dialect, script)
        with serving(model):
            env = {**self.env, **self.client.variables(model.url)}
            self.client.prepare(self.program, self.work, self.home, env, model.url)
            said = _run([str(self.program), *self.client.arguments(prompt)], self.work, env)
        for error in model.trouble:
            raise error
        assert model.asked, f"{self.client.name} asked its model nothing: {said[-2000:]}"
        return model.asked


def _run(command: Sequence[str], work: Path, env: dict[str, str]) -> str:
    # A file and no pipe: what stays behind in the background would hold a pipe open.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status: int | str = process.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = f"nothing in {RUN_SECONDS} s"
        said.seek(0)
        text = said.read().decode(errors="replace")
    assert status == 0, f"{command[0]} ended with {status}: {text[-2000:]}"
    return text
