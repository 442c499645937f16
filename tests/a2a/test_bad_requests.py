"""Requests that no client of ours sends: each gets a clear error, nothing is written, and the gateway goes on."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gitmem.calls import BODY_MAX_BYTES, http_guard
from gitmem.calls.a2a_files import caller_identity
from gitmem.calls.a2a_server import LISTED_AT_ONCE
from gitmem.log.lines import CommitMessage

from .conftest import IDENTITY, PLANNER, Local, run
from .talking import client_of, request, send, talk

if TYPE_CHECKING:
    from gitmem.api.log import Log

pytestmark = pytest.mark.deep  # each starts a gateway
VERSION = {"A2A-Version": "1.0"}
JSON = {"Content-Type": "application/json"}
SEND: dict[str, Any] = {
    "message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]},
    "configuration": {"returnImmediately": True},
}


def rpc(params: object, method: str = "SendMessage") -> dict[str, object]:
    """Return the body of a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(local: Local, path: str = "/", body: object = None, **headers: str) -> httpx.Response:
    """Send a request with a valid token, unless the headers say otherwise."""
    content = body if isinstance(body, bytes) else json.dumps(rpc(SEND) if body is None else body).encode()
    own = {
        "Authorization": f"Bearer {local.token}",
        **VERSION,
        **JSON,
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return httpx.post(
        f"{local.url}{path}", content=content, headers={k: v for k, v in own.items() if v}, timeout=20
    )


def written(local: Local) -> int:
    """Return the number of tasks on the log."""
    return len(local.log.tasks.list(limit=50).tasks)


@pytest.mark.parametrize("headers", [{"Authorization": ""}, {"Authorization": "Bearer gm_wrong"}, {"Authorization": "Bearer"},
                                     {"Authorization": "Basic cGxhbm5lcjp4"}])  # fmt: skip
def test_i30_a_request_without_a_valid_token_is_refused(local: Local, headers: dict[str, str]) -> None:
    """Over both bindings, with the scheme that is asked for."""
    for path, body in (("/", rpc(SEND)), ("/rest/message:send", SEND), ("/rest/tasks", SEND)):
        answer = post(local, path, body, **headers)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["status"] == "UNAUTHENTICATED"
    assert written(local) == 0


def test_i30_a_token_that_was_removed_is_invalid_at_once(local: Local) -> None:
    """Also one that was made again. The file is readable by its owner alone, and has no token."""
    assert post(local).status_code == 200
    again = local.tokens.add("planner", 0).token or ""
    assert post(local).status_code == 401
    assert post(local, Authorization=f"Bearer {again}").status_code == 200
    local.tokens.remove("planner")
    assert post(local, Authorization=f"Bearer {again}").status_code == 401
    path = Path(local.tokens.path)
    local.tokens.add("planner", 0)
    assert path.stat().st_mode & 0o777 == 0o600
    assert again not in path.read_text()


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Host": "127.0.0.1"}, {"Host": "127.0.0.1:1"}, {"Origin": "http://evil.example"},
                                     {"Origin": "null"}])  # fmt: skip
def test_i30_a_web_page_reaches_nothing(local: Local, headers: dict[str, str]) -> None:
    """Neither by a name that it makes ours, nor with an origin: also not the card."""
    assert post(local, **headers).status_code == 403
    assert httpx.get(f"{local.url}/.well-known/agent-card.json", headers=headers).status_code == 403
    assert written(local) == 0


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
    ],
)
def test_i30_another_content_type_is_refused_before_the_body_is_read(local: Local, kind: str) -> None:
    """A form is what a page may send without a preflight."""
    answer = post(local, Content_Type=kind)
    assert answer.json()["error"]["code"] == -32005
    answer = post(local, "/rest/message:send", SEND, Content_Type=kind)
    assert answer.status_code == 415
    assert "CONTENT_TYPE_NOT_SUPPORTED" in answer.text
    assert written(local) == 0


@pytest.mark.parametrize("version", ["", "0.3", "2.0", "99", "x"])
def test_i30_another_version_of_the_protocol_is_refused(local: Local, version: str) -> None:
    """Without one it is 0.3."""
    assert post(local, A2A_Version=version).json()["error"]["code"] == -32009
    answer = post(local, "/rest/message:send", SEND, A2A_Version=version)
    assert answer.status_code == 400
    assert "VERSION_NOT_SUPPORTED" in answer.text
    assert written(local) == 0


@pytest.mark.parametrize(
    "params",
    [
        {}, {"message": {}}, {"message": {"messageId": "m", "role": "ROLE_USER"}}, {"message": "x"}, [], "x", None,
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{}]}},
        {"message": {"messageId": "m" * 300, "role": "ROLE_USER", "parts": [{"text": "x"}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "!"}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x" * 70_000}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "key AKIAIOSFODNN7EXAMPLZ ghp_0123456789abcdefghijABCDEFGHIJ012345"}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], "referenceTaskIds": ["task-none"]}},
        {"tenant": "other", **SEND},
        {**SEND, "configuration": {"historyLength": -1}},
    ],
)  # fmt: skip
def test_i30_invalid_parameters_are_named_and_nothing_is_written(local: Local, params: object) -> None:
    """Over both bindings: never an internal error."""
    error = post(local, body=rpc(params)).json()["error"]
    assert error["code"] in (-32600, -32602, -32005), error
    answer = post(local, "/rest/message:send", params)
    assert answer.status_code in (400, 404, 415), answer.text
    assert "Traceback" not in answer.text
    assert written(local) == 0


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"[]", b"1", b'"x"', b"null",
                                  b'{"jsonrpc":"2.0","id":1,"method":"Nothing"}', b"[{}]"])  # fmt: skip
def test_i30_a_body_that_is_no_request_is_answered_with_an_error(local: Local, body: bytes) -> None:
    """Also one that is nested so deeply that a parser gives up."""
    for path in ("/", "/rest/message:send"):
        answer = post(local, path, body)
        assert "error" in answer.json()
        assert "Traceback" not in answer.text
    assert post(local).status_code == 200
    assert written(local) == 1


def test_i30_a_large_body_is_refused_before_all_of_it_is_read(local: Local) -> None:
    """By its length, and where it names none."""
    assert post(local, body=b" " * (BODY_MAX_BYTES + 1)).status_code == 413

    def endless() -> Any:
        for _ in range(1_000):
            yield b" " * 1_024

    headers = {"Authorization": f"Bearer {local.token}", **VERSION, **JSON}
    with contextlib.suppress(httpx.TransportError):  # it is closed while we send
        assert httpx.post(f"{local.url}/", content=endless(), headers=headers).status_code == 413
    assert post(local).status_code == 200


@pytest.mark.parametrize("path", ["/nothing", "/rest/nothing", "/agents/nobody/", "/agents/../", "/rest/tasks/task-x", "/rest/other/tasks/task-x",
                                  "/rest/tasks/%2e%2e%2f", "/rest/tasks/task-x'%20OR%201=1"])  # fmt: skip
def test_i30_a_path_that_is_not_there_is_not_found(local: Local, path: str) -> None:
    """A task of nobody, and a tenant that this caller has no token for."""
    answer = httpx.get(f"{local.url}{path}", headers={"Authorization": f"Bearer {local.token}", **VERSION})
    assert answer.status_code in (400, 404, 405), answer.text
    assert "Traceback" not in answer.text


def test_i30_a_client_that_leaves_a_stream_costs_nothing(local: Local, answering: Callable[..., Log]) -> None:
    """The task goes on, its stream ends in the gateway, and the next client gets an answer."""
    for _ in range(5):
        body = json.dumps(rpc(SEND, "SendStreamingMessage")).encode()
        with socket.create_connection(("127.0.0.1", int(local.host.rpartition(":")[2]))) as raw:
            head = f"POST / HTTP/1.1\r\nHost: {local.host}\r\nAuthorization: Bearer {local.token}\r\nA2A-Version: 1.0\r\n"
            raw.sendall(
                f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            )
            assert raw.recv(10).startswith(b"HTTP/1.1")
    deadline = time.monotonic() + 10
    while local.server.server_state.connections and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not local.server.server_state.connections
    answering()

    async def job() -> None:
        async with client_of(local) as client:
            (found,) = await send(client, request("hello"))
            assert found.task.artifacts[0].parts[0].text == "Hello from TCK"

    talk(job)


def test_i30_a_push_url_into_a_private_network_is_refused(repo: Path) -> None:
    """With a new task and for one that is there; nothing is written."""
    local = Local(repo, allow_private=False)
    try:
        for url in (
            "http://127.0.0.1:1/",
            "http://localhost/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/",
            "file:///x",
        ):
            config = {"taskPushNotificationConfig": {"url": url}, "returnImmediately": True}
            error = post(local, body=rpc({**SEND, "configuration": config})).json()["error"]
            assert error["code"] == -32602
            assert "push URL is refused" in error["message"]
        assert written(local) == 0
    finally:
        local.close()


def test_i26_a_tenant_is_another_repository_with_tokens_of_its_own(repo: Path, tmp_path: Path) -> None:
    """A caller of one has no access to the other, and what it sends is on its own log alone."""
    from tests.a2a.conftest import Gateway

    other = tmp_path / "other"
    run(repo, "--version")
    import subprocess

    subprocess.run(["git", "clone", "-q", str(repo), str(other)], check=True)
    tokens = {
        name: run(place, "a2a", "token", name).split()[0] for name, place in (("one", repo), ("two", other))
    }
    gateway = Gateway(repo, tokens["one"], "--tenant", f"two={other}")
    try:

        def ask(token: str, tenant: str) -> Any:
            headers = {"Authorization": f"Bearer {tokens[token]}", **VERSION}
            return httpx.post(
                f"{gateway.url}/", json=rpc({"tenant": tenant, **SEND}), headers=headers, timeout=20
            ).json()

        assert "result" in ask("one", "")
        assert "result" in ask("two", "two")
        for token, tenant in (("one", "two"), ("two", ""), ("one", "none")):
            assert ask(token, tenant)["error"]["message"] == f"No such tenant: {tenant!r}."
    finally:
        gateway.end()
    for place, caller in ((repo, "one"), (other, "two")):
        listed = json.loads(run(place, "--json", "task", "list"))["tasks"]
        assert [each["caller"] for each in listed] == [f"a2a:caller:{caller}"]


# Clients that mean harm: those without a token, and those with one that want what is others'.


def stream(local: Local, token: str, task_id: str) -> socket.socket:
    """Subscribe to a task, and return the connection once its stream has begun."""
    body = json.dumps(rpc({"id": task_id}, "SubscribeToTask")).encode()
    head = f"POST / HTTP/1.1\r\nHost: {local.host}\r\nAuthorization: Bearer {token}\r\nA2A-Version: 1.0\r\n"
    found = socket.create_connection(("127.0.0.1", int(local.host.rpartition(":")[2])), timeout=20)
    found.sendall(
        f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    assert found.recv(12) == b"HTTP/1.1 200"
    return found


def test_i30_connections_that_send_no_request_keep_nobody_out(
    local: Local,
) -> None:
    """Neither many, silent or slow, which need no token, nor one for long."""
    place = ("127.0.0.1", int(local.host.rpartition(":")[2]))
    with contextlib.ExitStack() as stack:
        opened = []
        for number in range(http_guard.CONNECTIONS_MAX + 50):
            opened.append(stack.enter_context(socket.create_connection(place, timeout=30)))
            if number % 2:
                opened[-1].sendall(b"POST / HTTP/1.1\r\n")
        assert post(local).status_code == 200
        for each in opened:
            with contextlib.suppress(ConnectionError):
                assert each.recv(1) == b""


def test_i30_a_caller_with_many_streams_keeps_no_other_out(local: Local) -> None:
    """Streams that are never read count as any request does, until they are closed."""
    other = local.tokens.add("other", 0).token or ""
    task_id = post(local).json()["result"]["task"]["id"]
    with contextlib.ExitStack() as stack:
        for _ in range(http_guard.RUNNING_MAX):
            stack.enter_context(stream(local, local.token, task_id))
        answer = post(local)
        assert (answer.status_code, answer.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert post(local, Authorization=f"Bearer {other}").status_code == 200
    deadline = time.monotonic() + 10
    while post(local).status_code == 429 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert post(local).status_code == 200


def test_i30_a_stream_ends_when_its_token_is_removed(local: Local) -> None:
    """The others go on."""
    other = local.tokens.add("other", 0).token or ""
    mine, theirs = (
        post(local, Authorization=f"Bearer {token}").json()["result"]["task"]["id"]
        for token in (local.token, other)
    )
    with stream(local, local.token, mine) as kept, stream(local, other, theirs) as removed:
        local.tokens.remove("other")
        with contextlib.suppress(ConnectionError):
            while removed.recv(4096):
                pass
        assert post(local, body=rpc({"id": mine}, "CancelTask")).status_code == 200
        said = b""
        while b"TASK_STATE_CANCELED" not in said:
            part = kept.recv(4096)
            assert part
            said += part


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "9" * 5_000, '{"b": 1, "b": 2}', '"\xff"'])
def test_i30_json_that_readers_understand_differently_is_refused(local: Local, value: str) -> None:
    """Over both bindings, wherever it is."""
    message = json.dumps(SEND)[:-1] + ', "metadata": {"a": '
    content = (message + value + "}}").encode("latin-1")
    for path, body in (("/", json.dumps(rpc("X")).encode().replace(b'"X"', content)), ("/rest/message:send", content)):  # fmt: skip
        answer = post(local, path, body)
        assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert written(local) == 0


def test_i30_a_body_with_two_lengths_is_refused(local: Local) -> None:
    """A proxy in front of it may take the other one for the end."""
    answer = post(local, Transfer_Encoding="chunked", Content_Length="5", body=b"0\r\n\r\n")
    assert answer.status_code == 400
    assert answer.headers["Connection"] == "close"


def test_i26_a_caller_refers_to_its_own_tasks_only(local: Local) -> None:
    """Nobody learns which tasks of others are there, also not by the beginnings of their ids."""
    other = local.tokens.add("other", 0).token or ""
    task_id = post(local).json()["result"]["task"]["id"]

    def refers(token: str, to: str) -> Any:
        said = {
            "message": {**SEND["message"], "referenceTaskIds": [to]},
            "configuration": SEND["configuration"],
        }
        return post(local, body=rpc(said), Authorization=f"Bearer {token}").json()

    assert "result" in refers(local.token, task_id)
    for to in (task_id, task_id[:12], "task-none"):
        assert refers(other, to)["error"]["message"] == f"No such task: {to!r}."


def test_i30_an_error_of_the_store_tells_a_client_no_path(local: Local) -> None:
    """It names the kind of the error alone."""
    assert post(local).status_code == 200
    folder = Path(local.log.store.repo.state) / "wal"
    folder.rename(folder.with_name("away"))
    folder.write_text("in the way")
    error = post(local).json()["error"]
    folder.unlink()
    folder.with_name("away").rename(folder)
    assert error["message"].startswith("The log can't be used now: ")
    assert str(local.repo) not in error["message"]
    assert post(local).status_code == 200


def test_i30_a_list_of_many_tasks_has_each_once(local: Local) -> None:
    """It is read in parts, and others' requests come between: one caller's lists keep nobody waiting for long."""
    count = 2 * LISTED_AT_ONCE + 1
    lines = [
        local.log.store.line("task", {
            "task_id": f"task-many{number}", "thread_id": "thread-0001", "message": "x", "agent": IDENTITY,
            "sender_identity": caller_identity(PLANNER),
        })
        for number in range(count)
    ]  # fmt: skip
    local.log.store.record(lines, CommitMessage("A <a@example.org>", "tasks"))
    found: list[str] = []
    token = ""
    while True:
        page = post(local, body=rpc({"pageSize": 40, "pageToken": token}, "ListTasks")).json()["result"]
        found += [each["id"] for each in page["tasks"]]
        token = page["nextPageToken"]
        if not token:
            break
    assert sorted(found) == sorted(f"task-many{number}" for number in range(count))
