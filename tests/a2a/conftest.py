"""A gateway and a worker, each in a process of its own, and the SDK's client."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.background import program

READY_SECONDS = 30.0


class Gateway:
    """A `gitmem a2a serve` that runs.

    Attributes:
        url: Where it answers.
        token: The token of the caller `planner`.
    """

    def __init__(self, repo: Path, token: str, *args: str) -> None:
        self.repo = repo
        self.token = token
        self.args = args
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, at the port that it had before."""
        self.process = subprocess.Popen(
            [*program(), "a2a", "serve", "--agent", "prices", "--port", str(self.port), *self.args],
            cwd=self.repo, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        timer = threading.Timer(READY_SECONDS, self.process.kill)
        timer.start()
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"serving .* at (http://\S+:(\d+))/", line):
                self.url, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError("".join(said))
        timer.cancel()
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """Stop it as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
                raise


def run(repo: Path, *args: str) -> str:
    """Run a command of gitmem and return what it prints."""
    done = subprocess.run([*program(), *args], cwd=repo, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def gateway(repo: Path) -> Iterator[Gateway]:
    """A gateway for the agent `prices`."""
    found = Gateway(repo, run(repo, "a2a", "token", "planner").split()[0])
    yield found
    found.end()


@pytest.fixture
def worker(repo: Path) -> Iterator[Callable[[str], None]]:
    """`worker("module:function")` starts a process in a worktree of its own that runs the tasks of `prices`."""
    started: list[subprocess.Popen[bytes]] = []
    place = repo.parent / "worktree"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place)], cwd=repo, check=True)

    def start(function: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        started.append(
            subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("worker.py")), function],
                cwd=place, env=environment, stdout=subprocess.DEVNULL,
            )
        )  # fmt: skip

    yield start
    for each in started:
        each.kill()
        each.wait()
