"""Clients that mean harm: those without a token, and those with one that want what is others'."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from gitmem.calls import a2a_server, http_guard
from gitmem.calls.a2a_files import caller_identity
from gitmem.calls.a2a_server import LISTED_AT_ONCE
from gitmem.log.lines import CommitMessage
from tests.a2a.conftest import IDENTITY, PLANNER, Local
from tests.a2a.test_bad_requests import SEND, post, rpc, written

pytestmark = pytest.mark.deep  # each starts a gateway


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
        for number in range(a2a_server.CONNECTIONS_MAX + 50):
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
