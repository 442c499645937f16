"""A server that has nothing of gitmem: the SDK's own handler and task store, in a thread, with an agent that follows a script."""

from __future__ import annotations

import asyncio
import socket
import threading

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.constants import TransportProtocol
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from gitmem.calls.http_guard import server_of

READY_SECONDS = 30.0


class Script(AgentExecutor):
    """Does what the text of a message says.

    Attributes:
        told: The texts of all messages, in order.
        released: Set by the test: what is slow goes on then.
        canceled: The ids of tasks that were canceled.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.released = threading.Event()
        self.canceled: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ask, work long, or answer."""
        text = context.get_user_input()
        self.told.append(text)
        assert context.task_id is not None and context.context_id is not None and context.message is not None
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=status,
                    history=[context.message],
                )
            )

        def said(words: str) -> Message:
            return updater.new_agent_message([Part(text=words)])

        if text == "ask":
            await updater.requires_input(said("net or gross?"))
        elif text == "log in":
            await updater.requires_auth(said("open the page"))
        elif text == "slow":
            await updater.start_work(said("begun"))
            await updater.add_artifact([Part(text="half")], artifact_id="a", name="table")
            while not self.released.is_set():
                await asyncio.sleep(0.02)
            await updater.complete(said("LATE"))
        else:
            await updater.complete(said(text.upper()))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Note which task it was."""
        assert context.task_id is not None and context.context_id is not None
        self.canceled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class External:
    """A server of the SDK in a thread of this process.

    Attributes:
        url: Where it answers.
        script: Its agent.
        tokens: The Authorization headers of all requests.
    """

    def __init__(self) -> None:
        self.script = Script()
        self.tokens: set[str | None] = set()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        skill = AgentSkill(id="x", name="x", description="x", tags=["x"])
        card = AgentCard(
            name="external", description="x", version="1", capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"], default_output_modes=["text/plain"], skills=[skill],
            supported_interfaces=[AgentInterface(url=f"{self.url}/", protocol_binding=TransportProtocol.JSONRPC.value, protocol_version="1.0")],
        )  # fmt: skip
        handler = DefaultRequestHandler(self.script, InMemoryTaskStore(), card)
        app = Starlette(
            routes=[*create_jsonrpc_routes(handler, rpc_url="/"), *create_agent_card_routes(card)]
        )

        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.tokens.add(Headers(scope=scope).get("authorization"))
            await app(scope, receive, send)

        ready = threading.Event()
        self.server = server_of(noted, ready.set)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)
        self.thread.start()
        assert ready.wait(READY_SECONDS)

    def close(self) -> None:
        """Stop it."""
        self.script.released.set()
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()
