"""A server as a client starts it: a process on pipes, in a repository of its own.

Importing the SDK takes a second: most servers are forks of the process that runs the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, Implementation

from cli.mcp import server as tools_server
from cli.mcp import tools
from cli.mcp.calls import ToolCalls
from tests import in_process

ROOT = Path(__file__).resolve().parents[3]
WAIT_MAX_SECONDS = 180


def _keep_declarations() -> None:
    """Let the SDK read the annotations of each tool once, before the processes of `Raw` begin, instead of in each server."""
    make, kept = Tool.from_function, {}

    def made(fn: Callable[..., Any], **declared: Any) -> Tool:
        if fn.__name__ not in kept:
            kept[fn.__name__] = make(fn, **declared)
        return kept[fn.__name__].model_copy(update={"fn": fn})

    Tool.from_function = made  # type: ignore[assignment, method-assign]
    nobody: Any = None  # nothing is called
    tools_server.Server(ToolCalls(nobody, nobody, nobody, tools.NAMES), fields=False)


_keep_declarations()


def program(cwd: Path, *args: str) -> list[str]:
    """The command line that runs this checkout, whatever is installed."""
    return [sys.executable, "-m", "cli", *args]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


Serve = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def shop(repo: Path) -> Path:
    """A repository whose person has an address."""
    with (repo / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Test Person\n\temail = person@example.org\n")
    return repo


@asynccontextmanager
async def _forked(server: StdioServerParameters, args: list[str]) -> AsyncIterator[Any]:
    """`stdio_client` whose server is a fork of this process."""
    popen = partial(in_process.POPEN, preexec_fn=partial(in_process.become, args, server.env or {}))
    async with AsyncExitStack() as stack:
        with mock.patch.object(subprocess, "Popen", popen):
            pipes = await stack.enter_async_context(stdio_client(server))
        yield pipes


@pytest.fixture
def serve(shop: Path) -> Serve:
    """`async with serve(cwd) as client`: the SDK's own client, and a server that it started.

    `mode` is the protocol: `legacy` begins with a handshake, `auto` is the newest that both know. The server gives
    fields; with `json=False` the text, as clients without options get it. With `fork=False` Python starts anew.
    """

    def start(
        cwd: Path | None = None,
        *args: str,
        client: str = "test-client",
        mode: str = "legacy",
        json: bool = True,
        fork: bool = True,
        tools: str = "all",
        **env: str,
    ) -> Any:
        where = cwd or shop
        given = ["mcp", "--tools", tools, *args, *(["--json"] if json else [])]
        command, *rest = program(where, *given)
        server = StdioServerParameters(command=command, args=rest, cwd=where, env=environment(**env))
        pipes = _forked(server, given) if fork else stdio_client(server)
        return Client(pipes, client_info=Implementation(name=client, version="1"), mode=mode)

    return start


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def fields(result: CallToolResult) -> dict[str, Any]:
    assert result.structured_content is not None
    assert not result.is_error, text(result)
    return dict(result.structured_content)


def within(do: Callable[[], Awaitable[None]]) -> None:
    """Run a conversation; a server that hangs fails the test instead of the run."""
    try:
        asyncio.run(asyncio.wait_for(do(), WAIT_MAX_SECONDS))
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):  # the task groups of two clients around one failure
            error = error.exceptions[0]
        raise error from None


@pytest.fixture
def gitmem(shop: Path) -> Callable[..., Any]:
    """`gitmem("roster", cwd=…, GITMEM_SESSION=…)`: what the command line answers, as JSON."""

    def run(*args: str, cwd: Path | None = None, **env: str) -> Any:
        done = in_process.gitmem(*args, "--json", cwd=cwd or shop, env=env)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    return run


class Raw:
    """A client that speaks no more than JSON lines, so that it can do what a good client never does."""

    def __init__(self, cwd: Path, *args: str, json: bool = True, **env: str) -> None:
        args = ("--tools", "all", *args, *(("--json",) if json else ()))
        self.process = subprocess.Popen(
            program(cwd, "mcp", *args), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=partial(in_process.become, ["mcp", *args], environment(**env)),  # noqa: PLW1509
        )  # fmt: skip
        self.said: list[bytes] = []
        self.ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
            },
            id=0,
        )
        assert self.answer(0)["result"]["serverInfo"]["name"] == "gitmem"
        self.tell("notifications/initialized")

    def ask(self, method: str, params: dict[str, Any], id: int | str) -> None:
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def call(self, tool: str, id: int | str, /, **arguments: Any) -> None:
        self.ask("tools/call", {"name": tool, "arguments": arguments}, id)

    def tell(self, method: str, **params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        """The next message; None at the end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.said.append(line)
        return json.loads(line) if line else None

    def answer(self, id: int | str) -> Any:
        """The answer to a request; other messages before it are dropped."""
        while (message := self.read()) is not None:
            if message.get("id") == id:
                return message
        assert self.process.stderr is not None
        raise AssertionError(f"no answer to {id}: {self.process.stderr.read().decode()}")

    def end(self) -> int:
        """Close its input, as a client does that has had enough; its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(60)


@pytest.fixture
def raw(shop: Path) -> Iterator[Callable[..., Raw]]:
    """`raw(cwd)`: a server and a client of few words."""
    started: list[Raw] = []

    def start(cwd: Path | None = None, *args: str, json: bool = True, **env: str) -> Raw:
        started.append(Raw(cwd or shop, *args, json=json, **env))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait(60)
        for pipe in (each.process.stdin, each.process.stdout, each.process.stderr):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
