"""Call an A2A server: a function that runs a task of the log by sending it there, so that the task, its progress and its end are on the log.

What the server answers is a stranger's text. Its card must not name another host: that would get the token.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import CancelTaskRequest
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError

from ..invocation.served_task import DirectAnswer
from .incoming import text_of
from .remote_links import Link
from .remote_task import RemoteError, RemoteTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from a2a.types import AgentCard, StreamResponse

    from ..invocation.served_task import ServedTask
    from .remote_links import RemoteLinks

CONNECT_SECONDS, READ_SECONDS, CANCEL_SECONDS, LOOK_SECONDS = 10.0, 600.0, 3.0, 0.2
ANSWER_MAX_BYTES = 8 * 1024 * 1024
PAUSES = (1.0, 2.0, 4.0)  # before each new connection to a server that has the task, after one was cut


class RemoteAgent:
    """An A2A server, as a function that runs tasks.

    The server's task outlives a run: after a question, or when the worker ends, the next run goes on with it.

    Args:
        url: Where its card is.
        token: What is sent as a bearer token.
        links: Which of its tasks belongs to which of ours.
        session: The session that takes the tasks.
    """

    def __init__(self, url: str, token: str | None, links: RemoteLinks, session: str) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._links = links
        self._session = session
        self._idle = threading.Event()
        self._idle.set()

    def __call__(self, task: ServedTask) -> str | Mapping[str, Any]:
        """Send a task or an answer, pass the server's progress and artifacts on, and return its result.

        Raises:
            InputNeededError: It asks something, or for authentication.
            RemoteError: It failed, or the server can't be used.
            TaskRejectedError: The server refuses it.
        """
        self._idle.clear()
        try:
            return asyncio.run(self._run(task))
        except (A2AError, httpx.HTTPError, OSError, ValueError, TimeoutError) as error:
            raise RemoteError(f"{type(error).__name__}: {error}") from error
        finally:
            self._idle.set()

    def wait(self, seconds: float) -> None:
        """Wait until nothing is sent any more, such as a cancellation."""
        self._idle.wait(seconds)

    async def _run(self, task: ServedTask) -> str | Mapping[str, Any]:
        link = self._links.read(task.task_id) or Link()
        link.session = self._session
        self._links.write(task.task_id, link)
        async with _connected(self._url, self._token) as (client, modes):
            return await self._follow(client, RemoteTask(task, self._links, link, modes))

    async def _follow(self, client: Client, remote: RemoteTask) -> str | Mapping[str, Any]:
        """Return the result of a task that the server has, or gets now."""
        asked = remote.request()
        if asked is not None and remote.link.id and not await remote.asks(client):
            asked = None
        answers = client.send_message(asked) if asked is not None else remote.watch(client)
        pauses = list(PAUSES)
        while True:
            try:
                found = await _next(answers, client, remote)
            except (A2AError, httpx.HTTPError) as error:
                if not (remote.link.id and pauses and _is_cut(error)):
                    raise
                await asyncio.sleep(pauses.pop(0))
                answers = remote.watch(client)
                continue
            if found is None and (remote.is_settled or not remote.link.id):
                return remote.result()
            if found is None:
                answers = remote.watch(client)
            elif found.HasField("message"):
                return DirectAnswer(text_of(found.message.parts))
            else:
                remote.add(found)
                pauses = list(PAUSES)


async def _next(
    answers: AsyncIterator[StreamResponse], client: Client, remote: RemoteTask
) -> StreamResponse | None:
    """Return what the server says next; None at the end.

    Raises:
        RemoteError: Nobody waits for it any more.
    """
    step = asyncio.ensure_future(anext(answers, None))
    while not (await asyncio.wait([step], timeout=LOOK_SECONDS))[0]:
        if remote.task.is_canceled:
            step.cancel()
            if not remote.task.is_given_back:
                await _cancel(client, remote.link.id)
            raise RemoteError("Nobody waits for it any more.")
    return step.result()


def _is_cut(error: Exception) -> bool:
    """Return whether a connection was cut, so that another may tell more."""
    return isinstance(error, httpx.TransportError) or isinstance(error.__cause__, httpx.TransportError)


def cancel(url: str, token: str | None, id: str) -> bool:
    """Ask a server to cancel one of its tasks; return whether it has answered, also that the task is over.

    Args:
        url, token: As for `RemoteAgent`.
        id: The server's id of the task.
    """

    async def ask() -> bool:
        async with asyncio.timeout(CONNECT_SECONDS), _connected(url.rstrip("/"), token) as (client, _):
            return await _cancel(client, id)

    try:
        return asyncio.run(ask())
    except (A2AError, httpx.HTTPError, OSError, ValueError, TimeoutError):
        return False


@asynccontextmanager
async def _connected(url: str, token: str | None) -> AsyncIterator[tuple[Client, list[str]]]:
    """Yield a client of a server, and the media types that it takes, by its card.

    Raises:
        A2AError, httpx.HTTPError, ValueError: The server can't be used.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx.Timeout(CONNECT_SECONDS, read=READ_SECONDS)
    transport = _Limited(httpx.AsyncHTTPTransport())
    async with httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        bindings = [TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value]
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings)
        yield ClientFactory(config).create(_of_same_host(card, url)), list(card.default_input_modes)


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


async def _cancel(client: Client, id: str) -> bool:
    """Ask the server to cancel its task, if it has one; return whether it has answered."""
    try:
        async with asyncio.timeout(CANCEL_SECONDS):
            if id:
                await client.cancel_task(CancelTaskRequest(id=id))
    except A2AError as error:
        return not _is_cut(error)  # such as that the task has ended
    except (httpx.HTTPError, OSError, TimeoutError):
        return False
    return True
