"""Three hosts: a hub and two clones, and links are cut and healed, in the middle of a sync too.

Packets are dropped and nobody is told, so connections hang, as when a laptop leaves the room.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import gitmem
from gitmem.log import ref
from tests.clones import Hub, git

from .git_over_http import PASSWORD, USER, Request, Server
from .hosts import Host, Running, three

pytestmark = pytest.mark.network


class Lan:
    """The hub behind HTTP on one host, and an agent with a clone on each of two others."""

    def __init__(self, root: Path, hub: Hub, hosts: list[Host]) -> None:
        self.root = root
        self.hub = hub
        where, self.left, self.right = hosts
        self.server = Server(hub.path.parent, where.listen())
        self.sessions: dict[str, str] = {}
        for host in (self.left, self.right):
            self._clone(host)

    def _clone(self, host: Host) -> None:
        path, kept = self.path(host), self.root / "kept"
        git("clone", "--quiet", str(self.hub.path), str(path), cwd=self.root)
        git("remote", "set-url", "origin", f"{self.server.url}/{self.hub.path.name}", cwd=path)
        kept.write_text(self.server.url.replace("//", f"//{USER}:{PASSWORD.replace(' ', '%20')}@") + "\n")
        git("config", "credential.helper", f"store --file={kept}", cwd=path)
        identity = ("--agent-identity", f"test:worker:{host.name}")
        found = host.gitmem(path, "session", "start", "--name", host.name.title(), *identity).end()
        self.sessions[host.name] = str(found["session_id"])
        self.sync(host)

    def path(self, host: Host) -> Path:
        return self.root / host.name

    def send(self, host: Host, text: str) -> None:
        found = host.gitmem(self.path(host), "signal", text, session=self.sessions[host.name]).end()
        assert found["commit"]

    def begin_sync(self, host: Host, timeout: str = "20s") -> Running:
        return host.gitmem(self.path(host), "sync", "--publish", "--timeout", timeout)

    def sync(self, host: Host) -> Any:
        (remote,) = self.begin_sync(host).end()["remotes"]
        return remote

    def texts(self, host: Host) -> list[str]:
        said = git("grep", "-hoE", '"message":"[^"]*"', ref.LOG_REF, "--", "signals", cwd=self.path(host))
        return sorted(line[11:-1] for line in said.splitlines())

    def check_agreement(self, *texts: str) -> None:
        """After a sync of each all three hosts have one log, which says each of these once."""
        for host in (self.left, self.right, self.left):
            assert self.sync(host)["state"] in ("synced", "up-to-date")
        tips = {
            git("rev-parse", ref.LOG_REF, cwd=self.path(host)).strip() for host in (self.left, self.right)
        }
        assert tips == {self.hub.tip()}
        assert self.texts(self.left) == self.texts(self.right) == sorted(texts)
        assert git("rev-list", "--merges", ref.BRANCH, cwd=self.hub.path) == ""
        refs = git("for-each-ref", "--format=%(refname)", cwd=self.hub.path).split()
        assert refs == [ref.BRANCH, "refs/heads/main"]


class Gate:
    """A place that a request comes to once, and stays until it may go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def wait(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            self.go_on.wait(30)

    def until_reached(self) -> None:
        assert self.reached.wait(30)


@pytest.fixture
def lan(tmp_path: Path, hub: Hub) -> Iterator[Lan]:
    with three() as hosts:
        found = Lan(tmp_path, hub, hosts)
        yield found
        found.server.end()


def offline(running: Running) -> None:
    (remote,) = running.end(5)["remotes"]
    assert remote["state"] == "offline" and "ocal records are kept" in remote["message"], remote


def test_without_a_link_recording_goes_on(lan: Lan) -> None:
    """Both clones are cut off and write; healed, and syncing at once, all three hosts agree."""
    for host in (lan.left, lan.right):
        host.cut()
        lan.send(host, f"{host.name} by itself")
    offline(lan.begin_sync(lan.left, "2s"))
    for host in (lan.left, lan.right):
        host.heal()
    for running in [lan.begin_sync(host) for host in (lan.left, lan.right)]:
        running.end()
    lan.check_agreement("left by itself", "right by itself")


@pytest.mark.parametrize("heals", [False, True])
def test_a_link_that_is_cut_while_the_remote_answers_a_push(lan: Lan, heals: bool) -> None:
    """The remote has the lines and the clone can't know it; where the link heals in time, it does."""
    gate = Gate()

    def answer(request: Request, body: bytes) -> bytes:
        if request.is_push:
            gate.wait()
        return body

    lan.server.answer = answer
    lan.send(lan.left, "Did this arrive?")
    running = lan.begin_sync(lan.left, "15s" if heals else "3s")
    gate.until_reached()
    lan.left.cut()
    gate.go_on.set()
    lan.send(lan.right, "Meanwhile.")
    assert lan.sync(lan.right)["received"] == 1
    if heals:
        lan.left.heal()
        (remote,) = running.end()["remotes"]
        assert remote["state"] == "synced"
    else:
        offline(running)
        lan.left.heal()
    lan.check_agreement("Did this arrive?", "Meanwhile.")


def test_a_link_that_is_cut_while_a_push_arrives(lan: Lan) -> None:
    """The remote has a part of the pack and waits for the rest; nothing of it shows."""
    gate = Gate()
    lan.server.arriving = lambda request: gate.wait()
    large = [Random(number).randbytes(30_000).hex() for number in range(40)]
    with (
        gitmem.open(str(lan.path(lan.left)), session=lan.sessions[lan.left.name], allow_secret=True) as log,
        log.batch(),
    ):
        for text in large:
            log.signals.send(text)
    running = lan.begin_sync(lan.left, "3s")
    gate.until_reached()
    lan.left.cut()
    gate.go_on.set()
    offline(running)
    assert lan.sync(lan.right)["received"] == 0
    lan.left.heal()
    lan.check_agreement(*large)


def test_a_link_that_is_cut_while_a_fetch_arrives(lan: Lan) -> None:
    """Half of a pack leaves no ref and no line, and the next sync has all of it."""
    gate = Gate()

    def leaving(request: Request) -> None:
        if request.command == "POST" and request.service == "git-upload-pack":
            gate.wait()

    lan.send(lan.right, "Can you read this?")
    lan.sync(lan.right)
    lan.send(lan.left, "I am here.")
    lan.server.leaving = leaving
    running = lan.begin_sync(lan.left, "3s")
    gate.until_reached()
    lan.left.cut()
    gate.go_on.set()
    offline(running)
    assert lan.texts(lan.left) == ["I am here."]
    lan.left.heal()
    lan.check_agreement("Can you read this?", "I am here.")
