"""What a message has reaches whoever runs the task, and what a worker returns reaches its caller: texts, objects and links."""

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

from cli.background import program
from tests.a2a.conftest import Gateway, Local, _wait_for
from tests.a2a.talking import client_of, request, send, talk
from tests.sandbox import worktree

if TYPE_CHECKING:
    from gitmem.api.log import Log

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
