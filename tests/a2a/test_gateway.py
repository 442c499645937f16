"""The A2A SDK's own client talks to a gateway, while a worker in another process and worktree answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageRequest, TaskState
from a2a.utils.constants import TransportProtocol

if TYPE_CHECKING:
    from tests.a2a.conftest import Gateway

BINDINGS = (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON)


def request(text: str, **fields: str) -> SendMessageRequest:
    """Return a request with one text."""
    message = Message(message_id="m-1", role=Role.ROLE_USER, parts=[Part(text=text)], **fields)
    return SendMessageRequest(message=message)


@pytest.mark.parametrize("binding", BINDINGS)
def test_i30_a_text_goes_to_a_worker_in_another_process_and_back(
    gateway: Gateway, worker: Callable[[str], None], binding: TransportProtocol
) -> None:
    """The task is on the log, and sealed once its client has the result."""
    worker("upper")

    async def talk() -> None:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {gateway.token}"}) as http:
            config = ClientConfig(
                httpx_client=http, streaming=False, supported_protocol_bindings=[binding.value]
            )
            client = await create_client(gateway.url, config)
            (found,) = [each async for each in client.send_message(request("is the rounding right?"))]
        assert found.task.status.state == TaskState.TASK_STATE_COMPLETED
        assert found.task.status.message.parts[0].text == "IS THE ROUNDING RIGHT?"
        assert [each.message_id for each in found.task.history] == ["m-1"]

    asyncio.run(talk())
