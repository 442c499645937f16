"""What HTTP alone can do to a sync: lose an answer, cut it short, refuse by a status, show a password."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from gitmem.log import ref
from tests.clones import Hub, git

from .conftest import Agent, at_terminal
from .git_over_http import PASSWORD, USER, Request
from .sites import Http
from .test_sync import ASKED


@pytest.fixture
def site(tmp_path: Path, hub: Hub) -> Iterator[Http]:
    found = Http(tmp_path, hub.path)
    yield found
    found.end()


@pytest.fixture
def planck(agent: Callable[..., Agent]) -> Agent:
    """Planck, whose log the remote has, with a signal that it lacks."""
    found = agent("Planck")
    found.sync()
    found.log.signals.send("Is anybody there?")
    return found


def test_an_answer_that_is_lost_loses_and_repeats_nothing(hub: Hub, site: Http, planck: Agent) -> None:
    """The remote took the push, and the connection broke before it could say so."""
    site.server.answer = lambda request, body: None if request.is_push else body
    assert planck.sync().state == "offline"
    assert "Is anybody there?" in git("log", "-1", "--format=%B", ref.BRANCH, cwd=hub.path)
    site.server.answer = lambda request, body: body
    found = planck.sync()
    assert found.state in ("up-to-date", "synced")
    said = git("grep", "-h", "Is anybody there", ref.BRANCH, "--", "signals", cwd=hub.path)
    assert said.count("\n") == 1
    assert git("rev-parse", ref.LOG_REF, cwd=planck.path).strip() == hub.tip()


def test_an_answer_that_stops_half_way_changes_nothing(
    site: Http, planck: Agent, agent: Callable[..., Agent]
) -> None:
    """A fetch whose pack breaks off leaves no ref and no line; the next one has all of them."""
    curie = agent("Curie")
    planck.sync()
    curie.log.signals.send("Here I am.")
    site.server.answer = lambda request, body: body[: len(body) * 2 // 3] if b"PACK" in body else body
    assert curie.sync().state == "offline"
    assert git("for-each-ref", "refs/gitmem/remotes", cwd=curie.path) == ""
    assert curie.signals() == ["Here I am."]
    site.server.answer = lambda request, body: body
    assert curie.sync().state == "synced"
    assert curie.signals() == ["Here I am.", "Is anybody there?"]


@pytest.mark.parametrize(("status", "state"), [(403, "refused"), (500, "offline")])
def test_a_status_that_forbids_pushes_is_told(
    hub: Hub, site: Http, planck: Agent, status: int, state: str
) -> None:
    """A gateway answers pushes itself; lines are still brought, and what is here stays for another day."""

    def refuse(request: Request) -> bool:
        if request.service == "git-receive-pack":
            request.say(status, b"The gateway says no.\n")
            return True
        return False

    site.server.meddle = refuse
    found = planck.sync()
    assert (found.state, str(status) in found.message) == (state, True), found.message
    assert "ocal records are kept" in found.message
    site.server.meddle = lambda request: False
    assert planck.sync().sent == 1


def test_a_large_push_is_sent_in_chunks(hub: Hub, site: Http, planck: Agent) -> None:
    """More than git holds in memory (1 MiB) goes as a chunked request, and arrives whole."""
    dice = Random(5)
    planck.log.store.allow_secret = True
    with planck.log.batch():
        for _ in range(40):
            planck.log.signals.send(dice.randbytes(30_000).hex())
    planck.sync()
    (pack,) = [size for path, size in site.server.chunked if path.endswith("/git-receive-pack")]
    assert pack > 2**20
    assert git("rev-parse", ref.LOG_REF, cwd=planck.path).strip() == hub.tip()


def test_a_server_that_stops_in_the_middle_is_cut_off(site: Http, planck: Agent) -> None:
    """It says how much is to come, and nothing comes."""

    def stall(request: Request) -> bool:
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        time.sleep(4)
        return True

    site.server.meddle = stall
    began = time.monotonic()
    found = planck.sync(timeout=1.0)
    assert (found.state, time.monotonic() - began < 8) == ("offline", True)
    assert "no answer within 1 seconds" in found.message


@pytest.mark.deep
def test_missing_credentials_are_no_question(planck: Agent) -> None:
    """At a terminal at which git itself asks for a name, sync says what is missing."""
    git("config", "--unset", "credential.helper", cwd=planck.path)
    plain = at_terminal(planck.path, "git", "fetch", limit=2.0)
    assert plain.seconds > 1.9 and ASKED[0] in plain.text, plain
    shown = at_terminal(planck.path, "gitmem", "sync")
    assert (shown.status, shown.seconds < 20) == (5, True), shown
    assert "could not read Username" in shown.text and "ocal records are kept" in shown.text
    assert "Username for" not in shown.text.split("could not read Username")[0], shown


def test_a_password_in_the_url_is_never_shown(site: Http, planck: Agent) -> None:
    """Neither where it works nor where the remote is away, nor in the names of refs and files."""
    secret = PASSWORD.replace(" ", "%20")
    git("config", "--unset", "credential.helper", cwd=planck.path)
    with_password = site.url.replace("http://", f"http://{USER}:{secret}@")
    git("remote", "set-url", "origin", with_password, cwd=planck.path)
    works = at_terminal(planck.path, "gitmem", "sync", with_password)
    assert works.status == 0, works
    site.end()
    away = [
        at_terminal(planck.path, "gitmem", *words) for words in (("sync",), ("sync", with_password, "--json"))
    ]
    assert [each.status for each in away] == [5, 5], away
    refs = git("for-each-ref", cwd=planck.path)
    for text in (works.text, *(each.text for each in away), refs):
        assert secret not in text and PASSWORD not in text and "horse" not in text
