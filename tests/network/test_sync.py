"""Sync over a network is sync: what holds between two folders holds over HTTP with a password and over ssh."""

from __future__ import annotations

import json
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gitmem
from gitmem.log import ref
from tests.clones import Hub, git

from .conftest import Agent, at_terminal
from .sites import Http, Ssh

ASKED = ("sername", "assword", "assphrase", "yes/no")


def test_two_clones_come_to_agree(hub: Hub, agent: Callable[..., Agent]) -> None:
    """Signal, inbox, receipts, answer and agreement travel, and both clones end with the same log."""
    planck, curie = agent("Planck"), agent("Curie")
    for found in (planck.sync(), curie.sync(), planck.sync()):
        assert found.state == "synced", found.message
    asked = planck.log.signals.send(
        "Approve this boundary?", to=["Curie"], intent="PROPOSE", requires_ack=True
    )
    root = str(asked.signal["signal_id"])
    assert (planck.sync().sent, curie.sync().received) == (1, 1)
    assert curie.unread() == ["Approve this boundary?"] and curie.unread() == []
    assert not planck.log.converged(root).converged
    curie.log.signals.reply(root, "Agreed.", intent="AGREE")
    curie.sync()
    planck.sync()
    assert planck.log.converged(root).converged
    assert [each.delivery_state for each in planck.log.thread(root).recipients] == ["acked"]
    assert planck.unread() == ["Agreed."]
    planck.sync()
    curie.sync()
    tips = {git("rev-parse", ref.LOG_REF, cwd=each.path).strip() for each in (planck, curie)}
    assert tips == {hub.tip()}
    assert planck.sync().state == "up-to-date"


@pytest.mark.deep
def test_clones_that_sync_at_once_lose_nothing(hub: Hub, agent: Callable[..., Agent]) -> None:
    """Three clones send and sync at the same moment: all lines arrive, and history is one line."""
    agents = [agent(name) for name in ("Planck", "Curie", "Noether")]
    agents[0].sync()
    start = threading.Barrier(len(agents))
    threads = [threading.Thread(target=_speak, args=(each, start)) for each in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in (*agents, *agents):
        assert each.sync().state in ("synced", "up-to-date")
    assert [each.signals() for each in agents] == [["curie speaks", "noether speaks", "planck speaks"]] * 3
    refs = git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/gitmem", cwd=hub.path).split()
    assert sorted(refs) == [ref.BRANCH, "refs/heads/main"]
    assert git("rev-list", "--merges", ref.BRANCH, cwd=hub.path) == ""


def _speak(agent: Agent, start: threading.Barrier) -> None:
    with gitmem.open(str(agent.path), session=agent.log.who.as_, machine=agent.log.store.machine) as log:
        start.wait(30)
        log.signals.send(f"{agent.path.name} speaks")
        log.sync()


def test_a_push_that_is_refused_is_told_and_kept(hub: Hub, agent: Callable[..., Agent]) -> None:
    """A hook of the remote says no in its own words; when it is gone, the lines go."""
    planck = agent("Planck")
    planck.sync()
    hook = hub.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'Frozen until Monday.' >&2\nexit 1\n")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    planck.log.signals.send("Is anybody there?")
    found = planck.sync()
    assert found.state == "refused"
    assert "Frozen until Monday" in found.message and "ocal records are kept" in found.message
    hook.unlink()
    assert (planck.sync().state, len(planck.signals())) == ("synced", 1)
    assert "Is anybody there?" in git("log", "-1", "--format=%B", ref.BRANCH, cwd=hub.path)


def test_wrong_credentials_are_a_sentence_and_no_question(
    hub: Hub, site: Http | Ssh, agent: Callable[..., Agent]
) -> None:
    """At a terminal where nobody types: nothing is asked, the remote is named, and the signal stays."""
    planck = agent("Planck", right=False)
    shown = at_terminal(planck.path, "gitmem", "sync", "--json")
    assert (shown.status, shown.seconds < 20) == (5, True), shown
    assert not any(word in shown.text for word in ASKED), shown
    (remote,) = json.loads(shown.text.splitlines()[-1])["remotes"]
    assert remote["state"] == "refused"
    assert "ocal records are kept" in remote["message"]
    assert ("Authentication failed" if isinstance(site, Http) else "Permission denied") in remote["message"]
    assert hub.tip() is None
    for name, value in site.config().items():
        git("config", name, value, cwd=planck.path)
    assert planck.sync().state == "synced"


@pytest.mark.deep
def test_a_server_that_says_nothing_is_cut_off(site: Http | Ssh, agent: Callable[..., Agent]) -> None:
    """It takes the connection and is silent: the time limit ends it, with all that was started for it."""
    planck = agent("Planck")
    planck.sync()
    planck.log.signals.send("Can you hear me?")
    with silent() as port:
        git("remote", "set-url", "origin", site.url_at(port), cwd=planck.path)
        began = time.monotonic()
        found = planck.sync(timeout=1.0)
        assert time.monotonic() - began < 8
        assert found.state == "offline" and "no answer within 1 seconds" in found.message
        assert not [line for line in _commands() if f":{port}/" in line or str(port) in line.split()]
    git("remote", "set-url", "origin", site.url, cwd=planck.path)
    assert planck.sync().sent == 1


@contextmanager
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never says a word."""
    held: list[socket.socket] = []

    def accept(server: socket.socket) -> None:
        while True:
            try:
                held.append(server.accept()[0])
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
    for connection in held:
        connection.close()


def _commands() -> list[str]:
    """The command lines of all processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:  # it has just ended
            continue
    return found
