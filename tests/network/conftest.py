"""A remote that is reached over a network, and clones of it with an agent in each."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem.api.log import Log
from gitmem.sync.sync_remotes import RemoteResult
from tests.clones import Hub

from .sites import Http, Ssh, clone

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A bare remote with one commit of a user's."""
    return Hub(tmp_path)


@pytest.fixture(params=["http", pytest.param("ssh", marks=pytest.mark.network)])
def site(tmp_path: Path, hub: Hub, request: pytest.FixtureRequest) -> Iterator[Http | Ssh]:
    """The same hub behind HTTP with a password, and behind ssh with a key."""
    found = Http(tmp_path, hub.path) if request.param == "http" else Ssh(tmp_path, hub.path)
    yield found
    found.end()


class Agent:
    """An agent in a clone of its own."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.log: Log = gitmem.open(str(path), identity=f"test:worker:{name.lower()}", machine=name)
        self.log.sessions.start(name=name)

    def sync(self, timeout: float = 20.0) -> RemoteResult:
        (remote,) = self.log.sync(publish=True, timeout=timeout).remotes
        return remote

    def signals(self) -> list[str]:
        """What every signal says that this clone has, in the order of the alphabet."""
        rows = self.log.store.db().execute("SELECT body FROM line WHERE kind = 'signal'")
        return sorted(json.loads(body)["message"] for (body,) in rows)

    def unread(self) -> list[str]:
        return [str(each["message"]) for each in self.log.inbox().signals]


@pytest.fixture
def agent(tmp_path: Path, site: Http | Ssh) -> Iterator[Callable[..., Agent]]:
    """`agent("Planck")`: a clone through the site, with a live session of that name."""
    found: list[Agent] = []

    def one(name: str, *, right: bool = True) -> Agent:
        path = tmp_path / name.lower()
        clone(site, path, right=right)
        found.append(Agent(path, name))
        return found[-1]

    yield one
    for each in found:
        each.log.close()


class Shown:
    """What a command answered on a terminal, and how long it took."""

    def __init__(self, status: int, text: str, seconds: float) -> None:
        self.status = status
        self.text = text
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"exit {self.status} after {self.seconds:.1f} s\n{self.text}"


def at_terminal(path: Path, *command: str, limit: float = 30.0, **env: str) -> Shown:
    """A command, perhaps `gitmem`, in a terminal at which nobody types: what asks there waits until the limit."""
    ours, theirs = os.openpty()
    gitmem = [sys.executable, "-m", "cli"]
    began = time.monotonic()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *(gitmem if command[0] == "gitmem" else command[:1]), *command[1:]],
        cwd=path, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", "TERM": "xterm", **env},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while time.monotonic() < began + limit:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            part = os.read(ours, 65536) if ready else b""
        except OSError:  # nobody has the terminal any more
            break
        shown += part
        if not part and process.poll() is not None:
            break
    took = time.monotonic() - began
    os.close(ours)  # who still waits for an answer is told that the window was closed
    return Shown(process.wait(10), shown.decode().replace("\r\n", "\n"), took)
