"""What a gateway reads of a tenant that a request names and may not use: the tokens, to know who calls, and nothing else (I26, I28)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import gitmem
from gitmem.calls.a2a_files import Tokens
from gitmem.calls.a2a_server import Served, ServedAgent, ServedLog, application
from gitmem.work import new_task
from tests.sandbox import new_repo

HOST = "127.0.0.1:4810"
HEADERS = {"A2A-Version": "1.0", "Host": HOST, "Content-Type": "application/json"}
SEND: dict[str, Any] = {
    "message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]},
    "configuration": {"returnImmediately": True},
}
EVENTS = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "subprocess.Popen", "sqlite3.connect")


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


# Path and body of requests of a caller of another tenant; `TASK` is a task of the tenant "two".
FOREIGN: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/", rpc("SendMessage", {"tenant": "two", **SEND})),
    ("POST", "/", rpc("SendStreamingMessage", {"tenant": "two", **SEND})),
    ("POST", "/", rpc("GetTask", {"tenant": "two", "id": "TASK"})),
    ("POST", "/", rpc("GetTask", {"id": "TASK"})),
    ("POST", "/", rpc("ListTasks", {"tenant": "two"})),
    ("POST", "/", rpc("CancelTask", {"tenant": "two", "id": "TASK"})),
    ("POST", "/", rpc("GetExtendedAgentCard", {"tenant": "two"})),
    ("POST", "/", rpc("SendMessage", {"tenant": "../other tenant", **SEND})),
    ("POST", "/", rpc("SendMessage", {"tenant": "none", **SEND})),
    ("POST", "/rest/two/message:send", SEND),
    ("POST", "/rest/message:send", {"tenant": "two", **SEND}),
    ("POST", "/rest/two/message:send", {"tenant": "one", **SEND}),
    ("GET", "/rest/two/tasks", None),
    ("GET", "/rest/two/tasks/TASK", None),
    ("GET", "/rest/tasks/TASK?tenant=two", None),
]


class Audit:
    """What the interpreter opens, lists and starts that names a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.touched: list[str] = []
        self.is_on = True
        sys.addaudithook(self._note)  # a hook stays until the process ends

    def _note(self, event: str, values: tuple[object, ...]) -> None:
        if self.is_on and event in EVENTS:
            self.touched += [str(value) for value in values if self.folder in str(value)]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The repository of the tenant "two"."""
    return new_repo(tmp_path / "other tenant")


@contextlib.contextmanager
def gateway(repo: Path, other: Path) -> Iterator[tuple[Any, dict[str, str], Tokens]]:
    """The application, a token of each tenant, and the tokens of the other one."""
    logs, tokens, callers = {}, {}, {}
    with contextlib.ExitStack() as stack:
        for tenant, place in (("one", repo), ("two", other)):
            log = stack.enter_context(gitmem.open(str(place), commit_after=0))
            callers[tenant] = Tokens(log.store.repo.state)
            tokens[tenant] = callers[tenant].add(f"caller-{tenant}", 0).token or ""
            name = "" if tenant == "one" else tenant
            logs[name] = ServedLog(log.store)
            stack.callback(logs[name].close)
        by_token = {"": callers["one"].caller_of, "two": callers["two"].caller_of}
        served = Served([ServedAgent("prices", "gitmem:worker:prices")], logs, by_token, url=f"http://{HOST}", hosts=[HOST], version="1")  # fmt: skip
        yield application(served), tokens, callers["two"]


def test_i26_i28_a_refused_request_reads_nothing_of_another_tenant_but_its_tokens(
    repo: Path, other: Path
) -> None:
    """By path and body, of a caller of another tenant, of nobody and with a wrong token."""
    with gitmem.open(str(other), identity="codex:planner:far") as far:
        far.sessions.start(name="Planck")
        made = new_task.create(
            far.store, far.caller, "secret of two", to="gitmem:worker:prices", allow_unseen=True
        )
        task = made.task["task_id"]
    audit = Audit(other)

    async def talk(app: Any, tokens: dict[str, str], known: Tokens) -> None:
        async def ask(method: str, path: str, body: Any, token: str | None) -> httpx.Response:
            headers = HEADERS | ({"Authorization": f"Bearer {token}"} if token is not None else {})
            body = (
                {**body, "params": {**body["params"], "id": task}}
                if "id" in (body or {}).get("params", ())
                else body
            )
            return await client.request(method, path.replace("TASK", task), json=body, headers=headers)

        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=f"http://{HOST}", timeout=20
        ) as client:
            audit.touched.clear()
            for method, path, body in FOREIGN:
                for token, allowed in ((None, []), ("gm_wrong", [known.path]), (tokens["one"], [known.path])):
                    answer = await ask(method, path, body, token)
                    assert "error" in answer.json(), (path, body, answer.text)
                    assert "secret of two" not in answer.text
                    if token != tokens["one"]:
                        assert answer.status_code == 401
                    assert set(audit.touched) <= set(allowed), (path, body, token)
                    audit.touched.clear()
            assert (await ask("GET", "/rest/two/tasks", None, tokens["two"])).status_code == 200
            assert any(each != known.path for each in audit.touched), "the hook notes nothing"

    try:
        with gateway(repo, other) as made:
            asyncio.run(talk(*made))
    finally:
        audit.is_on = False
