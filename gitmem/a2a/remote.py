"""Call an A2A server: a function that runs a task of the log by sending it there, so that the task, its progress and its end are on the log.

What the server answers is a stranger's text. Its card must not name another host: that would get the token.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import CancelTaskRequest, Message, Part, Role, SendMessageRequest, TaskState
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict

from ..errors import UsageError
from ..invocation.served_task import DirectAnswer, TaskRejectedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from a2a.types import AgentCard, Artifact, StreamResponse, TaskStatus

    from ..invocation.served_task import ServedTask

CONNECT_SECONDS, READ_SECONDS, CANCEL_SECONDS, LOOK_SECONDS = 10.0, 600.0, 3.0, 0.2
ANSWER_MAX_BYTES = 8 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ENDS = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
)


class RemoteError(Exception):
    """What an A2A server answers instead of a result, or why there is no answer."""


def identity_of(url: str) -> str:
    """Return the agent identity of a server.

    Raises:
        UsageError: `bad-url`: not https, or http to this machine.
    """
    try:
        found = urlsplit(url)
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    is_allowed = host and (found.scheme == "https" or (found.scheme == "http" and host in LOOPBACK))
    if (
        not is_allowed
        or found.username is not None
        or not url.isascii()
        or any(map(str.isspace, url))
        or "," in url
    ):
        raise UsageError(
            "The URL of an agent is https://HOST/…, or http:// on this machine, without a user. Nothing was written.",
            code="bad-url",
        )
    place = f"{host}{f'-{port}' if port else ''}{found.path.rstrip('/')}"
    return f"a2a:server:{place.replace(':', '-').replace('/', '-')}"


class RemoteAgent:
    """An A2A server, as a function that runs tasks.

    Args:
        url: Where its card is.
        token: What is sent as a bearer token.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._token = token

    def __call__(self, task: ServedTask) -> str:
        """Send a task, pass its progress and artifacts on, and return its result.

        Raises:
            RemoteError: It failed, or the server can't be used.
            TaskRejectedError: The server refuses it.
        """
        try:
            return asyncio.run(self._run(task))
        except (A2AError, httpx.HTTPError, OSError, ValueError, TimeoutError) as error:
            raise RemoteError(f"{type(error).__name__}: {error}") from error

    async def _run(self, task: ServedTask) -> str:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        timeout = httpx.Timeout(CONNECT_SECONDS, read=READ_SECONDS)
        transport = _Limited(httpx.AsyncHTTPTransport())
        async with httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport) as http:
            card = await A2ACardResolver(http, self._url).get_agent_card()
            bindings = [TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value]
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings)
            client = ClientFactory(config).create(_of_same_host(card, self._url))
            return await self._follow(client, task)

    async def _follow(self, client: Client, task: ServedTask) -> str:
        message = Message(message_id=task.task_id, role=Role.ROLE_USER, parts=[Part(text=task.message)])
        answers = aiter(client.send_message(SendMessageRequest(message=message)))
        remote = _Remote(task)
        while True:
            step = asyncio.ensure_future(anext(answers, None))
            while not (await asyncio.wait([step], timeout=LOOK_SECONDS))[0]:
                if task.is_canceled:
                    step.cancel()
                    await _cancel(client, remote.id)
                    raise RemoteError("Nobody waits for it any more.")
            found = step.result()
            if found is None:
                return remote.result()
            if found.HasField("message"):
                return DirectAnswer(_text(found.message.parts))
            remote.add(found)


class _Remote:
    """A task of a server, by what it has sent."""

    def __init__(self, task: ServedTask) -> None:
        self._task = task
        self._texts: list[str] = []
        self._known: set[str] = set()
        self.id = ""
        self.state = TaskState.TASK_STATE_UNSPECIFIED
        self.said = ""

    def add(self, found: StreamResponse) -> None:
        if found.HasField("task"):
            self.id = found.task.id
            for artifact in found.task.artifacts:
                self._add(artifact, append=False, last=True)
            self._note(found.task.status)
        elif found.HasField("status_update"):
            self._note(found.status_update.status)
        elif found.HasField("artifact_update"):
            update = found.artifact_update
            self._add(update.artifact, append=update.append, last=update.last_chunk)

    def result(self) -> str:
        if self.state == TaskState.TASK_STATE_COMPLETED:
            return self.said or "\n\n".join(self._texts)
        if self.state == TaskState.TASK_STATE_REJECTED:
            raise TaskRejectedError(self.said)
        name = TaskState.Name(self.state).removeprefix("TASK_STATE_").lower().replace("_", "-")
        raise RemoteError(f"{name}: {self.said}" if self.said else f"It ended as {name}.")

    def _note(self, status: TaskStatus) -> None:
        self.state = status.state
        self.said = _text(status.message.parts)
        if self.said and status.state not in _ENDS:
            self._task.progress(self.said)

    def _add(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        if not artifact.parts:
            return
        self._texts += filter(None, [_text(artifact.parts)])
        parts = [MessageToDict(part) for part in artifact.parts]
        self._task.artifact(
            parts,
            name=artifact.name or None,
            artifact_id=artifact.artifact_id,
            append=append,
            last_chunk=last,
        )


class _Limited(httpx.AsyncBaseTransport):
    """Reads no endless answer."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        found = await self._transport.handle_async_request(request)
        assert isinstance(found.stream, httpx.AsyncByteStream)
        found.stream = _LimitedStream(found.stream)
        return found

    async def aclose(self) -> None:
        await self._transport.aclose()


class _LimitedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > ANSWER_MAX_BYTES:
                raise httpx.DecodingError(f"the answer has more than {ANSWER_MAX_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _of_same_host(card: AgentCard, url: str) -> AgentCard:
    """Return a card with the interfaces at the URL's own host.

    Raises:
        ValueError: There are none.
    """
    wanted = urlsplit(url)
    kept = [
        each
        for each in card.supported_interfaces
        if (urlsplit(each.url).scheme, urlsplit(each.url).netloc) == (wanted.scheme, wanted.netloc)
    ]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    if not kept:
        raise ValueError(f"its card names no address at {wanted.netloc}")
    return card


async def _cancel(client: Client, id: str) -> None:
    if id:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await client.cancel_task(CancelTaskRequest(id=id))
        except (A2AError, httpx.HTTPError, OSError, TimeoutError):
            return  # nobody waits for it


def _text(parts: Iterable[Part]) -> str:
    return "\n\n".join(part.text for part in parts if part.text)
