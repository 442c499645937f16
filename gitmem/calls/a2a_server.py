"""The gateway's HTTP server: the card of an agent, which path is answered by what, and the limits on connections.

What a card says of an agent is content of a repository, and whoever reaches the gateway reads it without a token, perhaps as text for a model.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from email.utils import formatdate
from functools import partial

import uvicorn
from a2a.auth.user import User
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate, validate_request_params
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    ListTaskPushNotificationConfigsResponse,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from starlette.applications import Starlette
from starlette.routing import Mount, Router
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..agents import descriptions, presence, role_list, vocabulary
from ..commit_message import cut
from ..order.task import WAITING
from ..outcome import Struct
from ..text import secrets
from ..text.name_matching import fold
from ..text.sanitize import sanitize_for_model
from ..work import task_decisions
from . import A2A_PROTOCOL, a2a_tasks
from .a2a_tasks import DATA_TYPE, INPUT_MODES, TEXT_TYPE
from .http_guard import CALLER, CARDS, Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
    from typing import Protocol, TypeVar

    from a2a import types
    from a2a.server.events import Event
    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..order.task import FoldedTask
    from ..store import Store
    from .a2a_tasks import Incoming
    from .http_guard import CallerOf
    from .push import Push
    from .served_log import ServedLog

    T = TypeVar("T")

    class _Named(Protocol):
        """A request that may name a tenant."""

        tenant: str


DESCRIPTION_MAX, TAG_MAX, TAGS_MAX = 500, 64, 20  # characters, characters, and how many


def describe(store: Store, name: str, address: str) -> tuple[str | None, list[str]]:
    """Return the description and the tags of an agent, from the work tree and the log as they are now.

    The description is that of a client's file with this name. The role is that which the name is an alias of, else that of the agent's last
    session. What looks like a secret is left out.

    Args:
        name: As the gateway serves it.
        address: Its identity.

    Returns:
        The description, None if nothing is known of the agent, and its role, responsibilities and capabilities.
    """
    pack = vocabulary.read(store.repo.worktree).pack
    named = vocabulary.find(pack, name)
    role, skills = (
        (named.role_id, list(named.capabilities)) if named is not None else _of_session(store, address)
    )
    kinds = pack.lifecycle_roles.get(role.partition("/")[0], ()) if role else ()
    said = [_of_file(store, name)]
    if role:
        said.append(f"Role: {role} ({', '.join(kinds)})." if kinds else f"Role: {role}.")
    tags = filter(None, (_safe(each, TAG_MAX) for each in (role, *kinds, *skills)))
    return _safe(" ".join(filter(None, said)), DESCRIPTION_MAX) or None, list(dict.fromkeys(tags))[:TAGS_MAX]


def _of_session(store: Store, address: str) -> tuple[str, list[str]]:
    """Return role and capabilities of the session of an agent that was last at work."""
    for each in presence.of_identity(store, address)[:1]:
        return each.role or "", descriptions.role_row(each.record, address)["capabilities"]
    return "", []


def _of_file(store: Store, name: str) -> str:
    """Return the description of the first file that a client has of an agent; it ends with a full stop."""
    found, _ = role_list.read_client_agents(store.repo.worktree)
    for each in found:
        if fold(each.name) == fold(name) and each.description:
            text = _safe(each.description, DESCRIPTION_MAX)
            return text if not text or text[-1] in ".!?…" else f"{text}."
    return ""


def _safe(text: str, longest: int) -> str:
    """Return a text without what acts on a reader, of limited length; "" if it looks like a secret."""
    return "" if secrets.find_secret(text) else cut(sanitize_for_model(" ".join(text.split())), longest)


REST = "/rest"
_SCHEME = "token"


class ServedAgent:
    """An agent that a gateway serves.

    Attributes:
        name: The name on its card and in its path.
        address: Whom its tasks are for.
        description: What it does.
        tags: Its role, responsibilities and capabilities, in this order.
    """

    def __init__(
        self, name: str, address: str, description: str | None = None, tags: Collection[str] = ()
    ) -> None:
        self.name = name
        self.address = address
        self.description = description or f"The agent {name} of this repository."
        self.tags = list(tags) or ["agent"]


def card_of(
    agent: ServedAgent, url: str, version: str, *, tenants: Collection[str], token: bool, push: bool
) -> AgentCard:
    """Return the card of an agent.

    Args:
        url: Where its JSON-RPC is; its REST is below that.
        version: That of gitmem.
        tenants: The tenants; that of "" is named by no field.
        token: Whether requests need a token.
        push: Whether it notifies.
    """
    bindings = ((url, TransportProtocol.JSONRPC), (url.rstrip("/") + REST, TransportProtocol.HTTP_JSON))
    card = AgentCard(
        name=agent.name,
        description=agent.description,
        version=version,
        supported_interfaces=[
            AgentInterface(url=where, protocol_binding=binding.value, protocol_version=A2A_PROTOCOL, tenant=tenant)
            for tenant in tenants
            for where, binding in bindings
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=push, extended_agent_card=True),
        default_input_modes=list(INPUT_MODES),
        default_output_modes=[TEXT_TYPE, DATA_TYPE],
        skills=[AgentSkill(id=agent.name, name=agent.name, description=agent.description, tags=agent.tags)],
    )  # fmt: skip
    if token:
        scheme = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
        card.security_schemes[_SCHEME].CopyFrom(scheme)
        card.security_requirements.append(SecurityRequirement(schemes={_SCHEME: StringList()}))
    return card


HEADS_MAX_BYTES, END_SECONDS = 16 * 1024, 3
_CACHE = "public, max-age=300"

CONNECTIONS_MAX = 200  # of all clients together
HEAD_SECONDS = 15.0  # for the head of a request, after the connection was made or the last answer was sent

TENANTS = "gitmem.tenants"  # in the state of a request: those that its caller has a token for
WAIT_SECONDS = 600.0  # for a result; then the task is answered as it is
STREAM_SECONDS = 3600.0  # after which a client has to subscribe again
CANCEL_SECONDS = 5.0  # for whoever has the task to stop
FIRST_SECONDS = 1.0  # in which a worker may answer with a message; then the stream begins with the task
LISTED_MAX, LISTED_AT_ONCE = 1_000, 50


class Served(Struct):
    """What a gateway serves.

    Attributes:
        agents: The first one is also at the root.
        logs: The repositories by tenant; that of "" is the default.
        callers: Of each tenant: returns the caller of a token.
        url: Where clients reach it.
        hosts: The values of the Host header that are ours.
        version: That of gitmem.
        anonymous: The caller of requests without a token; None to refuse these.
    """

    agents: Sequence[ServedAgent]
    logs: Mapping[str, ServedLog]
    callers: Mapping[str, CallerOf]
    url: str
    hosts: Sequence[str]
    version: str
    anonymous: str | None = None


def application(served: Served) -> ASGIApp:
    """Return the application that answers for these agents."""
    routes: list[BaseRoute] = []
    handlers = []
    for each in served.agents:
        path = f"/agents/{each.name}"
        handler = _handler(served, each, f"{served.url}{path}/")
        handlers.append(handler)
        routes.append(Mount(path, routes=_routes(handler)))
    routes += _routes(_handler(served, served.agents[0], f"{served.url}/"))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        for log in served.logs.values():
            log.start()
            if log.push is not None:
                log.push.begin({each.agent: partial(each.changes, log) for each in handlers})
        try:
            yield
        finally:
            for log in served.logs.values():
                if log.push is not None:
                    await log.push.end()
                log.close()

    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    places = ["", *(f"/agents/{each.name}" for each in served.agents)]
    cards = frozenset(place + card for place in places for card in CARDS)
    return Guard(
        _with_date(app, cards), served.hosts, served.callers, cards=cards, anonymous=served.anonymous
    )


def server_of(app: ASGIApp, on_start: Callable[[], object], end_seconds: int = END_SECONDS) -> uvicorn.Server:
    """Return a server; its `run(sockets=[…])` answers requests until a signal ends it.

    Args:
        on_start: Called once it listens.
        end_seconds: For answers that are not complete when it ends.
    """
    for name in ("a2a", "uvicorn"):  # a client's mistakes are answered, and nothing for whoever runs this
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=int(HEAD_SECONDS),
        timeout_graceful_shutdown=end_seconds,
        h11_max_incomplete_event_size=HEADS_MAX_BYTES,
        http=Connection,
    )
    return _Server(config, on_start)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_start: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()


class _Contexts(ServerCallContextBuilder):
    """Makes the context of a request: its caller, as the guard has found it."""

    def build(self, request: Request) -> ServerCallContext:
        name, tenants = request.scope[CALLER]
        extensions = get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER))
        return ServerCallContext(
            user=_Caller(name),
            state={"headers": dict(request.headers), TENANTS: tenants},
            requested_extensions=extensions,
        )


class _Caller(User):
    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._name


def _handler(served: Served, agent: ServedAgent, url: str) -> Handler:
    needs_token = served.anonymous is None
    push = all(log.push is not None for log in served.logs.values())
    card = card_of(agent, url, served.version, tenants=list(served.logs), token=needs_token, push=push)
    return Handler(agent.address, card, served.logs)


def _routes(handler: Handler) -> list[BaseRoute]:
    """Return the routes of an agent, relative to its URL."""
    contexts = _Contexts()
    return [
        *create_jsonrpc_routes(handler, rpc_url="/", context_builder=contexts),
        *(
            route
            for path in CARDS
            for route in create_agent_card_routes(handler.card, card_url=path, cache_control=_CACHE)
        ),
        # a tenant is below the binding's path, as in the requests of clients
        Mount(REST, Router(create_rest_routes(handler, context_builder=contexts), redirect_slashes=False)),
    ]


def _with_date(app: ASGIApp, cards: Collection[str]) -> ASGIApp:
    """Return an application that says since when its cards are as they are."""
    since = formatdate(usegmt=True).encode()

    async def dated(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_dated(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["path"] in cards:
                message["headers"] = [*message["headers"], (b"last-modified", since)]
            await send(message)

        await app(scope, receive, send_dated if scope["type"] == "http" else send)

    return dated


class Connection(H11Protocol):
    """A connection of a client.

    Attributes:
        idle_since: When it began to wait for the head of a request, by the clock of the event loop.
    """

    head_seconds = HEAD_SECONDS
    idle_since = math.inf
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request. If too many connections are open, close the one that has waited longest."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) >= CONNECTIONS_MAX:
            waiting = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
            min(waiting, key=lambda each: each.idle_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._wait()

    @property
    def is_idle(self) -> bool:
        """Whether it waits for the head of a request."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        return not is_answering and not self.transport.is_closing()

    def _wait(self) -> None:
        self._stop()
        self.idle_since = self.loop.time()
        self._timer = self.loop.call_later(self.head_seconds, self._end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        if self.is_idle:
            self.transport.abort()


def _notifies(handler: Handler) -> bool:
    return handler.card.capabilities.push_notifications


class Handler(RequestHandler):
    """The requests to one agent.

    Args:
        agent: Its address.
        card: Its card.
        logs: The repositories by tenant; that of "" is the default.
    """

    def __init__(self, agent: str, card: AgentCard, logs: Mapping[str, ServedLog]) -> None:
        self.agent = agent
        self.card = card
        self._logs = logs

    @validate_request_params
    async def on_get_task(self, params: types.GetTaskRequest, context: ServerCallContext) -> types.Task:
        """Return a task as it is."""
        validate_history_length(params)
        log, name = self._of(context, params)
        task, _ = await self._look(log, name, params.id)
        return apply_history_length(a2a_tasks.task_of(task), params)

    @validate_request_params
    async def on_list_tasks(
        self, params: types.ListTasksRequest, context: ServerCallContext
    ) -> types.ListTasksResponse:
        """Return a page of the caller's tasks."""
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        log, name = self._of(context, params)
        ids = await log.run(lambda: log.ids(log.caller(name), self.agent, LISTED_MAX))
        store = InMemoryTaskStore(owner_resolver=lambda _: "", use_copying=False)
        for first in range(0, len(ids), LISTED_AT_ONCE):  # other requests come between
            some = ids[first : first + LISTED_AT_ONCE]
            for each in await log.run(lambda some=some: log.list(some)):  # type: ignore[misc]
                await store.save(a2a_tasks.task_of(each), context)
        page = await store.list(params, context)
        for task in page.tasks:
            if not params.include_artifacts:
                task.ClearField("artifacts")
            task.CopyFrom(apply_history_length(task, params))
        return page

    @validate_request_params
    async def on_cancel_task(self, params: types.CancelTaskRequest, context: ServerCallContext) -> types.Task:
        """Ask for the cancellation of a task, and wait a little for whoever has it."""
        log, name = self._of(context, params)
        task, is_over = await self._look(log, name, params.id)
        if is_over:
            raise TaskNotCancelableError
        await log.run(lambda: task_decisions.cancel(log.store, log.caller(name), params.id))
        now = task
        async for now, is_over in self.changes(log, name, params.id, CANCEL_SECONDS):  # noqa: B007  (the last one is the answer)
            if is_over:
                break
        return a2a_tasks.task_of(now)

    @validate_request_params
    async def on_message_send(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> types.Task | types.Message:
        """Record a message, and return the task once it ends or asks something."""
        validate_history_length(params.configuration)
        log, name = self._of(context, params)
        task = await self._record(log, name, params)
        id = task.record["task_id"]
        if not params.configuration.return_immediately:
            async for task, is_over in self.changes(log, name, id, WAIT_SECONDS):
                if is_over or task.state in WAITING:
                    break
            answer = a2a_tasks.answer_of(task)
            if answer is not None:
                return answer
        return apply_history_length(a2a_tasks.task_of(task), params.configuration)

    @validate_request_params
    async def on_message_send_stream(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Record a message, and yield the task and what happens to it."""
        validate_history_length(params.configuration)
        log, name = self._of(context, params)
        task = await self._record(log, name, params)
        id = task.record["task_id"]
        begun, first = time.monotonic(), True
        shown = set(dict(a2a_tasks.steps(task, is_over=False))) if params.message.task_id else set()
        async for task, is_over in self.changes(log, name, id, STREAM_SECONDS):
            new = [each for each in a2a_tasks.steps(task, is_over=is_over) if each[0] not in shown]
            if first and len(new) < 2 and not is_over and time.monotonic() - begun < FIRST_SECONDS:
                continue
            if first and is_over and (answer := a2a_tasks.answer_of(task)) is not None:
                yield answer
                return
            if first:
                found = a2a_tasks.task_of(task) if params.message.task_id else a2a_tasks.created(task)
                yield apply_history_length(found, params.configuration)
                first = False
            for step, event in new:
                shown.add(step)
                yield event
            if is_over or task.state in WAITING:
                return

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: types.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Yield a task as it is, and what happens to it from now on."""
        log, name = self._of(context, params)
        task, is_over = await self._look(log, name, params.id)
        if is_over:
            raise UnsupportedOperationError(message=f"The task has ended: {task.state}.")
        shown = set(dict(a2a_tasks.steps(task, is_over=False)))
        yield a2a_tasks.task_of(task)
        async for task, is_over in self.changes(log, name, params.id, STREAM_SECONDS):
            for id, event in a2a_tasks.steps(task, is_over=is_over):
                if id not in shown:
                    shown.add(id)
                    yield event
            if is_over:
                return

    @validate_request_params
    async def on_get_extended_agent_card(
        self, params: types.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Return the card for callers with a token."""
        self._of(context, params)
        return self.card

    @validate_request_params
    @validate(_notifies, error_type=PushNotificationNotSupportedError)
    async def on_create_task_push_notification_config(
        self, params: types.TaskPushNotificationConfig, context: ServerCallContext
    ) -> types.TaskPushNotificationConfig:
        """Keep where to send what happens to a task from now on."""
        log, name = self._of(context, params)
        task, is_over = await self._look(log, name, params.task_id)
        sent = [id for id, _ in a2a_tasks.steps(task, is_over=is_over)]
        return await self._push(log).add(name, self.agent, params.task_id, params, sent)

    @validate_request_params
    @validate(_notifies, error_type=PushNotificationNotSupportedError)
    async def on_get_task_push_notification_config(
        self, params: types.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> types.TaskPushNotificationConfig:
        """Return a configuration."""
        log, name = self._of(context, params)
        await self._look(log, name, params.task_id)
        return self._push(log).get(name, self.agent, params.task_id, params.id)

    @validate_request_params
    @validate(_notifies, error_type=PushNotificationNotSupportedError)
    async def on_list_task_push_notification_configs(
        self, params: types.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> types.ListTaskPushNotificationConfigsResponse:
        """Return the configurations of a task."""
        log, name = self._of(context, params)
        await self._look(log, name, params.task_id)
        found = self._push(log).of_task(name, self.agent, params.task_id)
        return ListTaskPushNotificationConfigsResponse(configs=found)

    @validate_request_params
    @validate(_notifies, error_type=PushNotificationNotSupportedError)
    async def on_delete_task_push_notification_config(
        self, params: types.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Forget a configuration."""
        log, name = self._of(context, params)
        await self._look(log, name, params.task_id)
        await self._push(log).delete(name, self.agent, params.task_id, params.id)

    def _push(self, log: ServedLog) -> Push:
        if log.push is None:
            raise PushNotificationNotSupportedError
        return log.push

    def _of(self, context: ServerCallContext, params: _Named) -> tuple[ServedLog, str]:
        """Return the repository of a request, and the name of its caller.

        Raises:
            InvalidParamsError: There is no such tenant for this caller.
        """
        tenant = context.tenant
        log = self._logs.get(tenant) if tenant in context.state.get(TENANTS, ()) else None
        if log is None or params.tenant not in ("", tenant):  # a path and a body may name two
            raise InvalidParamsError(message=f"No such tenant: {(params.tenant or tenant)[:80]!r}.")
        return log, context.user.user_name

    async def _look(self, log: ServedLog, name: str, task_id: str) -> tuple[FoldedTask, bool]:
        found = await log.run(lambda: log.look(log.caller(name), self.agent, task_id))
        if found is None:
            raise TaskNotFoundError
        return found

    async def _record(self, log: ServedLog, name: str, params: types.SendMessageRequest) -> FoldedTask:
        """Record a message, as a new task or in the one that it names, and keep where to notify its client."""
        message = a2a_tasks.read_message(params.message, params.configuration)
        config = params.configuration.task_push_notification_config
        notifies = params.configuration.HasField("task_push_notification_config")
        if notifies:
            await self._push(log).check(config)
        task = await self._write(log, name, message)
        if notifies:
            sent = [id for id, _ in a2a_tasks.steps(task, is_over=False)]
            await self._push(log).add(name, self.agent, task.record["task_id"], config, sent)
        return task

    async def _write(self, log: ServedLog, name: str, message: Incoming) -> FoldedTask:
        if not message.task_id:
            return await log.run(lambda: log.create(log.caller(name), self.agent, message))
        task, is_over = await self._look(log, name, message.task_id)
        if is_over:
            raise UnsupportedOperationError(message=f"The task has ended: {task.state}.")
        if message.context_id and message.context_id != a2a_tasks.context_of(task):
            raise InvalidParamsError(message="The contextId is not that of the task.")
        return await log.run(lambda: log.write(log.caller(name), task, message))

    async def changes(
        self, log: ServedLog, name: str, task_id: str, seconds: float = STREAM_SECONDS
    ) -> AsyncIterator[tuple[FoldedTask, bool]]:
        """Yield a task now and after each change of the log, and whether its state is the last word."""
        deadline = time.monotonic() + seconds
        while True:
            changed = log.change()
            yield await self._look(log, name, task_id)
            left = deadline - time.monotonic()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                return
