"""A gateway and a worker in processes and worktrees of their own; the A2A SDK's client talks to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.types import GetTaskRequest, SendMessageConfiguration, SubscribeToTaskRequest, TaskState

from tests.a2a.talking import BINDINGS, client_of, kinds, request, send, talk

if TYPE_CHECKING:
    from tests.a2a.conftest import Gateway


@pytest.mark.usefixtures("worker")
def test_i30_a_restarted_gateway_goes_on_with_a_task(gateway: Gateway) -> None:
    """A client sends, the gateway is killed and started again, and the client subscribes to the task that still runs."""

    async def begin() -> str:
        now = SendMessageConfiguration(return_immediately=True)
        async with client_of(gateway) as client:
            (found,) = await send(client, request(id="test-resubscribe-message-id", configuration=now))
            return found.task.id

    async def go_on(id: str) -> None:
        async with client_of(gateway, streaming=True) as client:
            found = [each async for each in client.subscribe(SubscribeToTaskRequest(id=id))]
            assert kinds(found)[0] == "task"
            assert kinds(found)[-1] == "completed"
            assert (await client.get_task(GetTaskRequest(id=id))).metadata["https://gitmem.dev/a2a/v1"][
                "confirmed"
            ]

    task_id = talk(begin)
    gateway.kill()
    gateway.start()
    talk(lambda: go_on(task_id))


@pytest.mark.deep
@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("binding", BINDINGS)
def test_i30_a_text_goes_to_a_worker_in_another_process_and_back(gateway: Gateway, binding: str) -> None:
    """Over both bindings."""

    async def job() -> None:
        async with client_of(gateway, binding) as client:
            (found,) = await send(client, request("is the rounding right?"))
        assert found.task.status.state == TaskState.TASK_STATE_COMPLETED
        assert found.task.artifacts[0].parts[0].text == "Hello from TCK"

    talk(job)
