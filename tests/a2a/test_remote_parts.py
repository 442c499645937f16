"""`gitmem call URL --with-context --with-memory --var`: what the answer says was handed over is what the server got."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from a2a.types import Part
from a2a.utils.errors import ContentTypeNotSupportedError
from google.protobuf.json_format import MessageToDict, ParseDict

from cli import a2a
from cli.background import program
from gitmem.calls.a2a_files import Link, RemoteLinks
from gitmem.work import new_task, task_decisions

from .. import in_process
from ..sandbox import Agent, Clock, annas, open_store, worktree
from .conftest import Gateway, Local, _wait_for
from .sniffing_server import Sniffer
from .talking import client_of, request, send, talk

if TYPE_CHECKING:
    from gitmem.api.log import Log

JSON = "application/json"
HANDING = ("--with-context", "--with-memory", "--var", "rate=7", "--var", "année=1 €")


@pytest.fixture
def sniffers() -> Iterator[Callable[..., Sniffer]]:
    """Start servers by the media types that they take."""
    started: list[Sniffer] = []

    def start(*modes: str) -> Sniffer:
        started.append(Sniffer(*modes))
        return started[-1]

    yield start
    for each in started:
        each.close()


class Desk:
    """A session with some memory in a repository."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.session = ""
        found = self.say(
            "session", "start", "--name", "Planck", "--agent-identity", "codex:planner:shop", "--wu", "WU-7"
        )
        self.session = found["session_id"]
        self.decision = self.say("mem", "create", "Round once per line", "--tag", "decision")["node"]["id"]
        self.node = self.say("mem", "create", "Prices of orders are rounded", "--priority", "P1")["node"][
            "id"
        ]

    def say(self, *words: str, status: int = 0) -> Any:
        """Return the answer of a command."""
        done = in_process.gitmem("--json", *words, cwd=self.repo, env={"GITMEM_SESSION": self.session})
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout or done.stderr.strip().splitlines()[-1])


@pytest.fixture
def desk(repo: Path) -> Desk:
    """A session with two nodes of its work unit."""
    return Desk(repo)


def received(sniffer: Sniffer) -> Any:
    """Return what a server got beside the text."""
    text, *more = sniffer.parts
    assert text == {"text": "Is it right?"}
    assert len(more) == 1, more
    if "data" in more[0]:
        assert more[0]["mediaType"] == JSON
        return more[0]["data"]
    head, _, content = more[0]["text"].partition("\n")
    assert head == "What the caller hands over:"
    return json.loads(content)


@pytest.mark.parametrize("modes", [("text/plain",), ("text/plain", JSON), ("*/*",), ()])
def test_each_part_that_is_named_as_handed_over_arrives(
    sniffers: Callable[..., Sniffer], desk: Desk, modes: tuple[str, ...]
) -> None:
    sniffer = sniffers(*modes)
    found = desk.say("call", sniffer.url, "Is it right?", *HANDING, "--timeout", "20s")
    assert found["message"] == "heard", found
    got = received(sniffer)
    assert ("data" in sniffer.parts[1]) == (modes in {("text/plain", JSON), ("*/*",)})
    counts = found["transfer"]["counts"]
    assert counts.pop("omitted", 0) == 0
    assert counts == {name: len(value) for name, value in got.items() if name in counts}
    assert {"decisions", "memory", "variables"} <= set(counts)
    assert got["variables"] == {"rate": 7, "année": "1 €"}
    assert {each["id"]: each["node"]["content"] for each in got["memory"]} == {
        desk.decision: "Round once per line", desk.node: "Prices of orders are rounded",
    }  # fmt: skip


def test_what_does_not_fit_is_named_and_not_sent(sniffers: Callable[..., Sniffer], desk: Desk) -> None:
    large = desk.say("mem", "create", "x" * 20_000)["node"]["id"]
    sniffer = sniffers(JSON)
    found = desk.say("call", sniffer.url, "Is it right?", "--with-memory", "--timeout", "20s")
    assert [each["id"] for each in found["transfer"]["omitted"]] == [large]
    assert large not in [each["id"] for each in received(sniffer)["memory"]]


def test_a_dry_run_shows_what_would_be_sent_and_sends_and_writes_nothing(
    sniffers: Callable[..., Sniffer], desk: Desk
) -> None:
    sniffer = sniffers(JSON)
    before = desk.say("log"), desk.say("roster", "--all")["sessions"]
    shown = desk.say("call", sniffer.url, "Is it right?", *HANDING, "--dry-run")
    assert (shown["recorded"], sniffer.paths) == (False, [])
    assert (shown["agents"][0]["name"], shown["transfer"]["counts"]["memory"]) == (sniffer.url, 2)
    after = desk.say("log"), desk.say("roster", "--all")["sessions"]
    assert len(before[1]) == len(after[1]) and before[0] == after[0]
    desk.say("call", sniffer.url, "Is it right?", *HANDING, "--timeout", "20s")
    assert received(sniffer) == json.loads(shown["text"]) == shown["context"]


def test_a_server_has_one_name_in_all_calls(sniffers: Callable[..., Sniffer], desk: Desk) -> None:
    sniffer = sniffers("text/plain")
    for _ in range(3):
        desk.say("call", sniffer.url, "Is it right?", "--timeout", "20s")
    sessions = [each for each in desk.say("roster", "--all")["sessions"] if each["display_name"] != "Planck"]
    assert {each["display_name"] for each in sessions} == {
        sniffer.url.removeprefix("http://").replace(":", "-")
    }


# What a clone says of a server that does not have what was recorded of its task; sending is tested with real servers.

SERVER = annas("a2a:server:agents.example.org")


def test_i10_who_answers_or_cancels_learns_what_the_server_does_not_have(repo: Path) -> None:
    """Another clone has neither URL nor token; with another token it is not told."""
    store = open_store(repo, Clock())
    planner = Agent(store, "codex:planner:one").caller
    own, other = (
        str(new_task.create(store, planner, "Pay", to=to, allow_unseen=True).task["task_id"])
        for to in (SERVER, "claude:worker:bohr")
    )
    links = RemoteLinks(store.repo.state)
    for each in (own, other):
        links.write(each, Link("theirs", "context"))
        task_decisions.cancel(store, planner, each)
    said = "The server is not told that it is canceled: another clone has called it."
    assert a2a.cancel_there(store, [own, other]) == [said]
    links.add_server(SERVER, "http://127.0.0.1:9", "token")
    (said,) = a2a.cancel_there(store, [own])
    assert "GITMEM_A2A_TOKEN is not the token that it got" in said and f"gitmem task wait {own}" in said
    assert links.read(own) is not None


# What a message has reaches whoever runs the task, and what a worker returns reaches its caller: texts, objects and links.

RATES = {"rate": 7, "of": ["books", "été"], "exact": 2**60 + 1}
PARTS = [
    {"text": "is it right?"}, {"data": {"rate": 7}, "mediaType": "application/json"}, {"data": [1, "two"]},
    {"url": "https://example.org/table.csv", "filename": "table.csv", "mediaType": "text/csv"},
]  # fmt: skip


@pytest.fixture
def echo(repo: Path) -> Iterator[None]:
    """A worker for `prices` whose program answers with its standard input."""
    place = worktree(repo, repo.parent / "worktree")
    process = subprocess.Popen([*program(), "serve-agent", "prices", "--exec", "cat"], cwd=place, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    _wait_for(process, "serving prices")
    yield
    process.kill()
    process.wait()


def asked(*parts: dict[str, Any], text: str = "x") -> Any:
    """Return a request with these parts."""
    found = request(text)
    del found.message.parts[:]
    found.message.parts.extend(ParseDict(each, Part()) for each in parts)
    return found


def test_each_part_of_a_request_reaches_a_program(gateway: Gateway, echo: None) -> None:
    async def job() -> str:
        async with client_of(gateway) as client:
            (found,) = await send(client, asked(*PARTS))
        (artifact,) = found.task.artifacts
        return str(artifact.parts[0].text)

    answer = talk(job)
    for said in ("is it right?", '"rate": 7', '"two"', "table.csv: https://example.org/table.csv"):
        assert said in answer, answer


def test_a_part_that_is_not_handed_on_is_refused(local: Local) -> None:
    async def job() -> None:
        async with client_of(local) as client:
            with pytest.raises(ContentTypeNotSupportedError, match=r"image/png.*text, data or the url"):
                await send(client, asked({"text": "x"}, {"raw": "AAAA", "mediaType": "image/png"}))

    talk(job)
    assert local.log.tasks.list().tasks == []


@pytest.mark.parametrize("streaming", [False, True])
def test_a_result_is_an_artifact_and_no_message(
    local: Local, answering: Callable[..., Log], streaming: bool
) -> None:
    """A text as text, an object as data; what JSON of the protocol does not keep exactly as text."""
    answering(lambda task: {"7": {"rate": 7}, "exact": RATES}.get(task.message, "seven"))

    async def job() -> list[Any]:
        found = []
        async with client_of(local, streaming=streaming) as client:
            for text in ("text", "7", "exact"):
                *_, last = await send(client, request(text))
                updates = [each.artifact_update.artifact for each in _ if each.HasField("artifact_update")]
                artifacts = updates if streaming else list(last.task.artifacts)
                status = last.status_update.status if streaming else last.task.status
                assert not status.HasField("message")
                (artifact,) = artifacts
                found.append(MessageToDict(artifact.parts[0]))
        return found

    text, data, exact = talk(job)
    assert text == {"text": "seven"}
    assert data == {"data": {"rate": 7}, "mediaType": "application/json"}
    assert json.loads(exact["text"]) == RATES


def test_an_object_is_shown_as_json_to_whoever_called(
    local: Local, answering: Callable[..., Log], tmp_path: Path
) -> None:
    """By `gitmem call` here and over A2A, by `task show`, and in the inbox of who did not wait."""
    answering(lambda task: {"rate": 7})
    caller = tmp_path / "caller"
    subprocess.run(["git", "init", "--quiet", str(caller)], check=True)

    def say(place: Path, *words: str) -> str:
        done = subprocess.run([*program(), "--as", "human:person@example.org", *words], cwd=place, capture_output=True, text=True,
                              timeout=60, env={**os.environ, "GITMEM_A2A_TOKEN": local.token})  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    subprocess.run(["git", "-C", str(caller), "config", "user.email", "person@example.org"], check=True)
    subprocess.run(["git", "-C", str(local.repo), "config", "user.email", "person@example.org"], check=True)
    for place, agent in ((local.repo, "prices"), (caller, f"{local.url}/")):
        assert '| "rate": 7' in say(place, "call", agent, "which?", "--timeout", "20s").replace("|  ", "| ")
        found = json.loads(say(place, "--json", "call", agent, "which?", "--timeout", "20s"))
        assert found["results"][0]["payload"]["result"] == {"rate": 7}
        assert '"rate": 7' in say(place, "task", "show", found["results"][0]["task_id"])
    id = json.loads(say(local.repo, "--json", "call", "prices", "which?", "--no-wait"))["results"][0][
        "task_id"
    ]
    say(local.repo, "task", "wait", id)
    assert '"rate": 7' in say(local.repo, "inbox")


def test_an_artifact_is_shown_by_its_task(local: Local, answering: Callable[..., Log]) -> None:
    def answer(task: Any) -> str:
        task.artifact([{"text": "half"}, {"data": {"rate": 7}}], name="table")
        return "done"

    answering(answer)
    subprocess.run(["git", "-C", str(local.repo), "config", "user.email", "person@example.org"], check=True)

    def say(*words: str) -> str:
        return subprocess.run([*program(), "--as", "human:person@example.org", *words], cwd=local.repo, capture_output=True,
                              text=True, timeout=60, check=True).stdout  # fmt: skip

    id = json.loads(say("--json", "call", "prices", "which?", "--timeout", "20s"))["results"][0]["task_id"]
    assert '| half\n| {"rate": 7}\n' in say("task", "show", id)
