"""Gateways, in this process or their own, with agents that answer, and the SDK's client."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitmem
from cli.background import program
from gitmem.api.log import Log
from gitmem.calls import WORKER
from gitmem.calls.a2a_files import Tokens
from gitmem.calls.a2a_server import Served, ServedAgent, ServedLog, application
from gitmem.calls.http_guard import server_of
from gitmem.calls.push import Push
from tests.a2a import tck_agent
from tests.a2a.external_agent import External
from tests.sandbox import annas, worktree
from tests.signing import own_key

READY_SECONDS = 30.0
IDENTITY = annas("gitmem:worker:prices")
PLANNER = "planner"


class Gateway:
    """A `gitmem a2a serve` that runs in a process.

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
            [*program(), "a2a", "serve", "prices", "--port", str(self.port), *self.args],
            cwd=self.repo, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        found = _wait_for(self.process, r"serving .* at (http://\S+:(\d+))/")
        self.url, self.port = found[1], int(found[2])

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """Stop it as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
                raise


def _wait_for(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Return the match of a line that a process prints on standard error."""
    assert process.stderr is not None
    timer = threading.Timer(READY_SECONDS, process.kill)
    timer.start()
    said = []
    for line in process.stderr:
        said.append(line)
        if found := re.search(pattern, line):
            timer.cancel()
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found
    raise AssertionError("".join(said))


def run(repo: Path, *args: str) -> str:
    """Run a command of gitmem and return what it prints."""
    done = subprocess.run([*program(), *args], cwd=repo, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def gateway(repo: Path) -> Iterator[Gateway]:
    """A gateway for the agent `prices`, in a process of its own."""
    found = Gateway(repo, run(repo, "a2a", "token", PLANNER).split()[0])
    yield found
    found.end()


@pytest.fixture
def worker(repo: Path) -> Iterator[Path]:
    """The worktree of a process that answers as the scenarios of the compatibility kit say."""
    place = worktree(repo, repo.parent / "worktree")
    shutil.copy(tck_agent.__file__, place)
    process = subprocess.Popen(
        [*program(), "serve-agent", "prices", "--callable", "tck_agent:answer"], cwd=place, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    _wait_for(process, "serving prices")
    yield place
    process.kill()
    process.wait()


class Local:
    """A gateway in a thread of this process.

    Attributes:
        url: Where it answers.
        token: The token of the caller `planner`.
        tokens: Makes tokens for others.
        said: What it tells whoever runs it.
    """

    def __init__(self, repo: Path, **options: object) -> None:
        self.repo = repo
        own_key(repo)
        self.log: Log = gitmem.open(str(repo), commit_after=0)
        self.tokens = Tokens(self.log.store.repo.state)
        self.token = self.tokens.add(PLANNER, self.log.store.now()).token or ""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.url = f"http://{self.host}"
        private = bool(options.pop("allow_private", True))
        self.push = Push(self.log.store.repo.state, allow_private=private, seconds=2.0, pauses=(0.05, 0.05))
        self.said: list[str] = []
        self.served = ServedLog(self.log.store, push=self.push, report=self.said.append)
        agents = [ServedAgent("prices", IDENTITY), ServedAgent("taxes", annas("gitmem:worker:taxes"))]
        logs = {"": self.served}
        callers = {"": self.tokens.caller_of}
        found = Served(agents, logs, callers, url=self.url, hosts=[self.host], version="1", **options)  # type: ignore[arg-type]
        ready = threading.Event()
        self.guard = application(found)
        self.server = server_of(self.guard, ready.set)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)
        self.thread.start()
        assert ready.wait(READY_SECONDS)

    def close(self) -> None:
        """Stop it."""
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.log.close()


@pytest.fixture
def external() -> Iterator[External]:
    """A server of the SDK's own, whose agent is `external_agent.Script`."""
    found = External()
    yield found
    found.close()


@pytest.fixture
def local(repo: Path) -> Iterator[Local]:
    """A gateway for the agents `prices` and `taxes`."""
    found = Local(repo)
    yield found
    found.close()


@pytest.fixture
def answering(repo: Path) -> Iterator[Callable[..., Log]]:
    """`answering()` starts a worker for `prices` in a thread, with a log of its own."""
    stop = threading.Event()
    started: list[tuple[Log, threading.Thread]] = []

    def start(function: Callable[..., object] = tck_agent.answer, identity: str = IDENTITY) -> Log:
        own = gitmem.open(str(repo), identity=identity, commit_after=0)
        own.sessions.start(client=WORKER)
        thread = threading.Thread(target=own.serve, args=(function,), kwargs={"stop": stop}, daemon=True)
        thread.start()
        started.append((own, thread))
        return own

    yield start
    stop.set()
    for own, thread in started:
        thread.join(10)
        own.close()
