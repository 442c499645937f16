"""What a client with a2a-sdk 0.3.26 says to an agent, and a server with it; run by a Python that has that version.

old_client.py send URL TOKEN TRANSPORT   prints the state and the texts of the artifacts of the answer, as JSON
old_client.py strands URL TOKEN          the same with the agent of strands-agents: its texts
old_client.py serve                      prints its URL, and answers each message with an artifact in capitals
"""

# mypy: ignore-errors
# the names are those of 0.3

import asyncio
import json
import sys


def _factory(http, token, transport, *, streaming):
    import grpc
    from a2a.client import ClientConfig, ClientFactory

    async def add(_, continuation, details, asked):
        named = (*(details.metadata or ()), ("authorization", f"Bearer {token}"))
        return await continuation(details._replace(metadata=grpc.aio.Metadata(*named)), asked)

    class Unary(grpc.aio.UnaryUnaryClientInterceptor):
        intercept_unary_unary = add

    class Streaming(grpc.aio.UnaryStreamClientInterceptor):
        intercept_unary_stream = add

    return ClientFactory(
        ClientConfig(
            httpx_client=http, streaming=streaming, supported_transports=[transport],
            grpc_channel_factory=lambda url: grpc.aio.insecure_channel(url, interceptors=[Unary(), Streaming()]),
        )
    )  # fmt: skip


async def send(url, token, transport):
    """Send a message, once with a stream of events and once without."""
    import httpx
    from a2a.client import A2ACardResolver
    from a2a.client.helpers import create_text_message_object

    found = []
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        for streaming in (False, True):
            client = _factory(http, token, transport, streaming=streaming).create(card)
            async for task, _ in client.send_message(create_text_message_object(content="hello")):
                last = task
            texts = [part.root.text for each in last.artifacts or () for part in each.parts]
            found.append([last.status.state.value, *texts])
    print(json.dumps(found))


def strands(url, token):
    """Call the agent as strands-agents does."""
    import httpx
    from a2a.client import ClientConfig, ClientFactory
    from strands.agent.a2a_agent import A2AAgent

    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
    factory = ClientFactory(ClientConfig(httpx_client=http, streaming=True))
    result = A2AAgent(endpoint=url, a2a_client_factory=factory)("hello")
    print(json.dumps([each["text"] for each in result.message["content"]]))


def serve():
    """Serve an agent."""
    import socket

    import uvicorn
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.apps import A2AStarletteApplication
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart

    class Capitals(AgentExecutor):
        async def execute(self, context, event_queue):
            updater = TaskUpdater(event_queue, context.task_id, context.context_id)
            await updater.submit()
            await updater.add_artifact([Part(root=TextPart(text=context.get_user_input().upper()))])
            await updater.complete()

        async def cancel(self, context, event_queue):
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    card = AgentCard(
        name="old", description="x", version="1", url=url, capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        skills=[AgentSkill(id="x", name="x", description="x", tags=["x"])],
    )  # fmt: skip
    app = A2AStarletteApplication(card, DefaultRequestHandler(Capitals(), InMemoryTaskStore())).build()
    print(url, file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "send":
        asyncio.run(send(*given))
    else:
        {"strands": strands, "serve": serve}[what](*given)
