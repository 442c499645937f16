"""Clients of A2A 0.3, such as a2a-sdk 0.3.26 and strands-agents: their requests as these send them, without a version header."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gitmem.calls import BODY_MAX_BYTES

from .conftest import IDENTITY, Local
from .test_bad_requests import written

if TYPE_CHECKING:
    from gitmem.api.log import Log

CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/agents/taxes/.well-known/agent.json")


def message(text: str = "hello", id: str = "m-1", **fields: Any) -> dict[str, Any]:
    """Return the parameters of `message/send`."""
    parts = [{"kind": "text", "text": text}]
    said = {"kind": "message", "messageId": id, "parts": parts, "role": "user", **fields}
    return {"configuration": {"acceptedOutputModes": ["text/plain"], "blocking": True}, "message": said}


def ask(local: Local, method: str, params: object, token: str | None = None) -> httpx.Response:
    """Send a request by JSON-RPC."""
    body = {"id": "7d3c", "jsonrpc": "2.0", "method": method, "params": params}
    given = {"Authorization": f"Bearer {token or local.token}"}
    return httpx.post(f"{local.url}/", json=body, headers=given, timeout=20)


@pytest.mark.parametrize("path", CARDS)
def test_the_card_has_the_fields_of_0_3_beside_those_of_1_0(local: Local, path: str) -> None:
    card = httpx.get(f"{local.url}{path}").json()
    place = f"{local.url}/agents/taxes/" if "taxes" in path else f"{local.url}/"
    assert (card["url"], card["preferredTransport"], card["protocolVersion"]) == (place, "JSONRPC", "0.3")
    assert card["additionalInterfaces"] == [{"transport": "HTTP+JSON", "url": f"{place}rest"}]
    assert card["security"] == [{"token": []}]
    scheme = card["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert card["supportsAuthenticatedExtendedCard"] is True
    spoken = [(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"]]
    assert spoken[:2] == [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
    ]  # a client takes the first one that it speaks


def test_a_message_is_answered_by_the_finished_task(local: Local, answering: Callable[..., Log]) -> None:
    answering()
    found = ask(local, "message/send", message()).json()
    assert found["id"] == "7d3c"
    task = found["result"]
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "Hello from TCK"}]
    assert task["history"][0]["parts"] == [{"kind": "text", "text": "hello"}]
    again = ask(local, "tasks/get", {"id": task["id"]}).json()["result"]
    assert again["artifacts"] == task["artifacts"]
    shown = local.log.tasks.show(task["id"])
    assert (shown.task["agent"], shown.task["message"]) == (IDENTITY, "hello")


def test_a_stream_has_the_steps_and_the_artifact(local: Local, answering: Callable[..., Log]) -> None:
    answering()
    answer = ask(local, "message/stream", message())
    found = [json.loads(line[6:])["result"] for line in answer.text.splitlines() if line.startswith("data: ")]
    kinds = [each["kind"] for each in found]
    assert kinds == ["task", "status-update", "artifact-update", "status-update"]
    assert found[2]["artifact"]["parts"] == [{"kind": "text", "text": "Hello from TCK"}]
    assert (found[3]["status"]["state"], found[3]["final"]) == ("completed", True)


def test_rest_answers_below_v1(local: Local, answering: Callable[..., Log]) -> None:
    answering()
    given = {"Authorization": f"Bearer {local.token}"}
    said = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}]}
    url = f"{local.url}/rest/v1/message:send"
    answer = httpx.post(url, json={"message": said}, headers=given, timeout=20)
    assert answer.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED", answer.text
    refused = httpx.post(url, json={"message": said}, timeout=20)
    assert refused.status_code == 401


def test_rest_streams_below_v1(local: Local, answering: Callable[..., Log]) -> None:
    answering()
    given = {"Authorization": f"Bearer {local.token}"}
    said = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}]}
    answer = httpx.post(
        f"{local.url}/rest/v1/message:stream", json={"message": said}, headers=given, timeout=20
    )
    found = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert [next(iter(each)) for each in found] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]


@pytest.mark.parametrize("way", ["send", "stream"])
@pytest.mark.parametrize(
    "said",
    [
        None, 5, {}, {"messageId": "m", "role": "ROLE_USER", "content": [{}]},
        {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x" * 70_000}]},
        {"messageId": "m", "role": "ROLE_USER", "taskId": "task-none", "content": [{"text": "x"}]},
    ],
)  # fmt: skip
def test_rest_refuses_what_it_does_not_understand_in_a_stream_too(
    local: Local, way: str, said: object
) -> None:
    """With a status and a sentence, instead of a stream that ends without a word."""
    given = {"Authorization": f"Bearer {local.token}"}
    url = f"{local.url}/rest/v1/message:{way}"
    answer = httpx.post(url, json={"message": said}, headers=given, timeout=20)
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["error"]["message"]
    asked = httpx.get(f"{local.url}/rest/v1/tasks/task-x?historyLength=x", headers=given)
    assert asked.status_code == 400, asked.text
    assert written(local) == 0


def test_a_question_is_answered_in_the_same_task(local: Local, answering: Callable[..., Log]) -> None:
    answering()
    asked = ask(local, "message/send", message("ask me", "tck-input-required")).json()["result"]
    assert asked["status"]["state"] == "input-required"
    assert asked["status"]["message"]["parts"] == [{"kind": "text", "text": "What next?"}]
    found = ask(local, "message/send", message("sums", "m-2", taskId=asked["id"])).json()["result"]
    assert (found["id"], found["status"]["state"]) == (asked["id"], "completed")


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("message/send", {}, -32600),
        ("message/send", {"message": {"kind": "message", "messageId": "m", "role": "user", "parts": []}}, -32602),
        ("message/send", message("x" * 70_000), -32602),
        ("message/send", message(id="m" * 300), -32602),
        ("message/send", message(taskId="task-none"), -32001),
        ("message/stream", message(taskId="task-none"), -32001),
        ("tasks/get", {"id": "task-none"}, -32001),
        ("tasks/list", {}, -32601),
        ("message/sent", message(), -32601),
        ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}, -32009),
    ],
)  # fmt: skip
def test_what_can_not_be_answered_has_an_error_of_0_3_and_writes_nothing(
    local: Local, method: str, params: object, code: int
) -> None:
    """Also a method of 1.0 without its header: the version is not supported."""
    answer = ask(local, method, params)
    text = answer.text.removeprefix("data: ") if answer.text.startswith("data: ") else answer.text
    assert json.loads(text.strip())["error"]["code"] == code, answer.text
    assert "Traceback" not in answer.text
    assert written(local) == 0


def test_bytes_of_a_file_are_refused_as_in_1_0(local: Local) -> None:
    """Also those that are no base64."""
    for content in ("aGVsbG8=", "!"):
        file = {"kind": "file", "file": {"bytes": content, "mimeType": "text/plain"}}
        error = ask(local, "message/send", message(parts=[file])).json()["error"]
        assert error["code"] in (-32005, -32602), error
    assert written(local) == 0


def test_the_guard_holds_for_old_requests(local: Local) -> None:
    """The token, the size, and the tenant."""
    assert ask(local, "message/send", message(), token="gm_wrong").status_code == 401
    assert ask(local, "message/send", message("x" * BODY_MAX_BYTES)).status_code == 413
    assert written(local) == 0
