"""What tests say to a gateway, with the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageRequest, StreamResponse, TaskState
from a2a.utils.constants import TransportProtocol

if TYPE_CHECKING:
    from a2a.types import SendMessageConfiguration

T = TypeVar("T")

JSONRPC, REST = TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value
BINDINGS = (JSONRPC, pytest.param(REST, marks=pytest.mark.deep))
SECONDS = 30.0


class Served(Protocol):
    """A gateway, in whatever process.

    Attributes:
        url: Where it answers.
        token: The token of a caller.
    """

    url: str
    token: str


def message(text: str = "hello", id: str = "m-1", **fields: Any) -> Message:
    """Return a message with one text."""
    return Message(message_id=id, role=Role.ROLE_USER, parts=[Part(text=text)], **fields)


def request(
    text: str = "hello",
    id: str = "m-1",
    *,
    configuration: SendMessageConfiguration | None = None,
    **fields: Any,
) -> SendMessageRequest:
    """Return a request with one text."""
    return SendMessageRequest(message=message(text, id, **fields), configuration=configuration)


@contextlib.asynccontextmanager
async def client_of(
    gateway: Served,
    binding: str = JSONRPC,
    *,
    streaming: bool = False,
    token: str = "",
    path: str = "",
) -> AsyncIterator[Client]:
    """A client of the SDK."""
    headers = {"Authorization": f"Bearer {token or gateway.token}"}
    async with httpx.AsyncClient(headers=headers, timeout=SECONDS) as http:
        config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
        yield await create_client(f"{gateway.url}{path}", config)


async def send(client: Client, asked: SendMessageRequest) -> list[StreamResponse]:
    """Return what answers a request."""
    return [each async for each in client.send_message(asked)]


def talk(job: Callable[[], Awaitable[T]]) -> T:
    """Run a conversation."""

    async def limited() -> T:
        async with asyncio.timeout(SECONDS):
            return await job()

    return asyncio.run(limited())


def kinds(found: list[StreamResponse]) -> list[str]:
    """Return what a stream has, in words: `task`, `working`, `artifact`, `completed` …"""
    words = []
    for each in found:
        kind = each.WhichOneof("payload")
        if kind == "status_update":
            words.append(TaskState.Name(each.status_update.status.state).removeprefix("TASK_STATE_").lower())
        else:
            words.append(str(kind).removesuffix("_update"))
    return words
