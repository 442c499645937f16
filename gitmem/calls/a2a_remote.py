"""Call an A2A server: a function that runs a task of the log by sending it there, so that the task, its progress and its end are on the log.

What the server answers is a stranger's text. Its card must not name another host: that would get the token.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict

from ..errors import UsageError
from ..order.task import TERMINAL
from ..work.task_work import ARTIFACT_MAX_BYTES
from .a2a_files import Link
from .a2a_tasks import DATA_TYPE, STATES, json_of, json_part, text_of
from .worker import RESULT_MAX_BYTES, AuthNeededError, DirectAnswer, InputNeededError, TaskRejectedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from typing import Any

    from a2a.types import AgentCard, Artifact, TaskStatus

    from .a2a_files import RemoteLinks
    from .worker import ServedTask


CONNECT_SECONDS, READ_SECONDS, CANCEL_SECONDS, LOOK_SECONDS = 10.0, 600.0, 3.0, 0.2
ANSWER_MAX_BYTES = 8 * 1024 * 1024
PAUSES = (1.0, 2.0, 4.0)  # before each new connection to a server that has the task, after one was cut

POLL_SECONDS = 2.0  # between two looks at a task that can't be subscribed to
_BINDINGS = (TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value)
_ENDS = [STATES[each] for each in TERMINAL]
_ASKS = {STATES[each.state]: each for each in (InputNeededError, AuthNeededError)}


class RemoteError(Exception):
    """An A2A server answers with an error, or does not answer."""


class RemoteTask:
    """A server's task for one of ours.

    Args:
        modes: The media types that the server takes, as its card says.

    Attributes:
        task: Ours.
        link: What is remembered of the server's.
        state, said: The last state, and what the server said with it.
    """

    def __init__(self, task: ServedTask, links: RemoteLinks, link: Link, modes: Collection[str]) -> None:
        self.task = task
        self._takes_json = not {DATA_TYPE, "*/*"}.isdisjoint(modes)
        self.link = link
        self.state = TaskState.TASK_STATE_UNSPECIFIED
        self.said = ""
        self._links = links
        self._answers = link.answers  # that the server has once it answers
        self._texts: dict[str, list[str]] = {}
        self._objects: dict[str, dict[str, Any]] = {}  # of artifacts that are one object
        self._recorded: dict[str, bytes] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the server has ended it, or waits for us."""
        return self.state in _ENDS or self.state in _ASKS

    def request(self) -> SendMessageRequest | None:
        """Return what the server does not have yet: the task, or the caller's answers; None if it has everything."""
        answers = [text for kind, text in self.task.messages if kind == "answer"]
        new = answers[self.link.answers :]
        message = Message(message_id=self.task.task_id, role=Role.ROLE_USER)
        if not self.link.id:
            message.parts.append(Part(text=self.task.message))
            if self.task.handed_over:
                message.parts.append(self._context())
            message.parts.extend(Part(text=text) for text in answers)
        elif new:
            message.parts.extend(Part(text=text) for text in new)
            message.task_id, message.context_id = self.link.id, self.link.context_id
            message.message_id += f"-{len(answers)}"
        else:
            return None
        self._answers = len(answers)
        return SendMessageRequest(message=message)

    def _context(self) -> Part:
        """Return all that the caller hands over: as JSON, or in a text where the server, or JSON of the protocol, does not take it."""
        context = self.task.handed_over
        part = json_part(context, takes_json=self._takes_json)
        return part if part.HasField("data") else Part(text=f"What the caller hands over:\n{part.text}")

    async def watch(self, client: Client) -> AsyncIterator[StreamResponse]:
        """Yield what happens to the task, until it is settled."""
        while True:
            yield StreamResponse(task=await client.get_task(GetTaskRequest(id=self.link.id)))
            if self.is_settled:
                return
            with suppress(
                A2AError, NotImplementedError
            ):  # it does not stream, or has ended the task meanwhile
                async for each in client.subscribe(SubscribeToTaskRequest(id=self.link.id)):
                    yield each
            if self.is_settled:
                return
            await asyncio.sleep(POLL_SECONDS)

    def add(self, found: StreamResponse) -> None:
        """Take over what the server says, and pass it on.

        Raises:
            ValueError: It is longer than it should be.
            StoreError: The server's id can't be remembered.
        """
        if found.HasField("task"):
            self._remember(found.task.id, found.task.context_id)
            for artifact in found.task.artifacts:
                self._add(artifact, append=False, last=True)
            self._note(found.task.status)
        elif found.HasField("status_update"):
            self._remember(found.status_update.task_id, found.status_update.context_id)
            self._note(found.status_update.status)
        elif found.HasField("artifact_update"):
            update = found.artifact_update
            self._remember(update.task_id, update.context_id)
            self._add(update.artifact, append=update.append, last=update.last_chunk)

    def result(self) -> str | Mapping[str, Any]:
        """Return the result of a task that has ended, an object if it is one; raise what ends it otherwise, or the question."""
        said = self._text()
        if self.state == TaskState.TASK_STATE_COMPLETED:
            if len(self._objects) == len(self._texts) == 1:
                (found,), (texts,) = self._objects.values(), self._texts.values()
                if found and said == "".join(texts):
                    return found
            return said
        if self.state == TaskState.TASK_STATE_REJECTED:
            raise TaskRejectedError(said)
        if self.state in _ASKS:
            asks = _ASKS[self.state]
            raise asks(
                said or ("It asks to authenticate." if asks is AuthNeededError else "It asks for more.")
            )
        name = TaskState.Name(self.state).removeprefix("TASK_STATE_").lower().replace("_", "-")
        raise RemoteError(f"{name}: {said}" if said else f"It ended as {name}.")

    def _text(self) -> str:
        """Return all that the server says: what it said last, unless an artifact says the same, and its artifacts."""
        artifacts = ["".join(texts) for texts in self._texts.values()]
        said = self.said if self.said.strip() not in [each.strip() for each in artifacts] else ""
        return _shortened("\n\n".join(filter(None, (said, *artifacts))), RESULT_MAX_BYTES)

    def _remember(self, id: str, context_id: str) -> None:
        """Remember the server's task: with it a later run goes on."""
        now = (id or self.link.id, context_id or self.link.context_id, self._answers)
        if now != (self.link.id, self.link.context_id, self.link.answers):
            self.link.id, self.link.context_id, self.link.answers = now
            self._links.write(self.task.task_id, self.link)

    def _note(self, status: TaskStatus) -> None:
        before = self.state, self.said
        self.state = status.state
        self.said = text_of(status.message.parts)
        if self.said and not self.is_settled and before != (self.state, self.said):
            self.task.progress(self.said)

    def _add(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        content = artifact.SerializeToString(deterministic=True)
        if not artifact.parts or (not append and self._recorded.get(artifact.artifact_id) == content):
            return
        self._recorded[artifact.artifact_id] = content
        texts = self._texts.setdefault(artifact.artifact_id, [])
        self._objects.pop(artifact.artifact_id, None)
        if not append:
            texts.clear()
            if len(artifact.parts) == 1 and artifact.parts[0].HasField("data"):
                found = json_of(artifact.parts[0])
                self._objects |= {artifact.artifact_id: found} if isinstance(found, dict) else {}
        text = text_of(artifact.parts) or "".join(part.text for part in artifact.parts)  # a space, in a piece
        texts.append(text)
        named = {"name": artifact.name or None, "artifact_id": artifact.artifact_id}
        try:
            self.task.artifact(
                [MessageToDict(part) for part in artifact.parts], **named, append=append, last_chunk=last
            )
        except UsageError:  # it is larger than a record: what it says is kept
            short = _shortened(text, ARTIFACT_MAX_BYTES // 8)  # however JSON escapes it
            self.task.artifact(short or "(nothing)", **named, append=append, last_chunk=last)


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
            said = str(error).partition("\nFor more information")[0]  # httpx adds a page about HTTP
            raise RemoteError(said or type(error).__name__) from error
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
        if asked is not None and remote.link.id:
            now = await client.get_task(GetTaskRequest(id=remote.link.id))
            if now.status.state not in _ASKS:
                asked = None  # whoever authenticates elsewhere need not answer it
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
                return DirectAnswer(_shortened(text_of(found.message.parts), RESULT_MAX_BYTES))
            else:
                remote.add(found)
                pauses = list(PAUSES)


def _shortened(text: str, most: int) -> str:
    """Return a text of at most that many bytes of UTF-8: of a longer one the beginning, and how long it was."""
    size = len(text.encode("utf-8", "replace"))
    if size <= most:
        return text
    note = f"\n(cut: the server said {size} bytes)"
    return text.encode("utf-8", "replace")[: most - len(note)].decode("utf-8", "ignore") + note


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
    transport, hooks = httpx.AsyncHTTPTransport(), {"response": [_limit]}  # no proxy gets the token
    async with httpx.AsyncClient(
        headers=headers, timeout=timeout, transport=transport, event_hooks=hooks
    ) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=list(_BINDINGS))
        yield ClientFactory(config).create(_of_same_host(card, url)), list(card.default_input_modes)


async def _limit(answer: httpx.Response) -> None:
    """Read no endless answer."""
    assert isinstance(answer.stream, httpx.AsyncByteStream)
    answer.stream = _LimitedStream(answer.stream)


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
    """Return a card with the interfaces that can be called, at the URL's own host.

    Raises:
        ValueError: There are none.
    """
    wanted = urlsplit(url)
    kept = [
        each
        for each in card.supported_interfaces
        if each.protocol_binding in _BINDINGS
        and (urlsplit(each.url).scheme, urlsplit(each.url).netloc) == (wanted.scheme, wanted.netloc)
    ]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    if not kept:
        raise ValueError(f"its card names neither JSON-RPC nor REST at {wanted.netloc}")
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
