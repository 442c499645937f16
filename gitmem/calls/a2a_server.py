"""The gateway: the card of an agent, which path is answered by what, the requests to an agent, and the log that they are answered from.

What a card says of an agent is content of a repository, and whoever reaches the gateway reads it without a token, perhaps as text for a model.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from functools import partial

from a2a.server.request_handlers.request_handler import RequestHandler, validate, validate_request_params
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import create_event_source_response
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
from a2a.utils.error_handlers import rest_stream_error_handler
from a2a.utils.errors import (
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from starlette.applications import Starlette
from starlette.routing import Mount, Route, Router

# isort: split
from a2a.compat.v0_3.rest_adapter import REST03Adapter  # which the routes must have imported before

from ..agents import addressing, descriptions, lifecycle, presence, vocabulary
from ..agents import caller as callers
from ..agents.caller import CallerClaims
from ..commit_message import cut
from ..errors import GitmemError, StoreError, UsageError
from ..order.task import WAITING
from ..outcome import Struct
from ..signals.watch import ChangeWatcher
from ..text import secrets
from ..text.addresses import of_writer
from ..text.name_matching import fold
from ..text.sanitize import sanitize_for_model
from ..work import new_task, stored_tasks, task_decisions, task_rules, task_state
from ..work.task_work import sender_of
from . import A2A_CLIENT, A2A_OLD, A2A_PROTOCOL, DEADLINE_SECONDS, a2a_tasks
from .a2a_files import caller_identity
from .a2a_tasks import DATA_TYPE, INPUT_MODES, TEXT_TYPE, thread_of
from .http_guard import CARDS, Callers, Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Collection,
        Iterator,
        Mapping,
        Sequence,
    )
    from typing import Any, Protocol, TypeVar

    from a2a import types
    from a2a.server.context import ServerCallContext
    from a2a.server.events import Event
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store
    from .a2a_tasks import Incoming
    from .http_guard import CallerOf
    from .push import Push

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
    last = next(iter(presence.of_identity(store, address)), None)
    role, skills = "", list[str]()
    if named is not None:
        role, skills = named.role_id, list(named.capabilities)
    elif last is not None:
        role, skills = last.role or "", descriptions.role_row(last.record, address)["capabilities"]
    kinds = pack.lifecycle_roles.get(role.partition("/")[0], ()) if role else ()
    files, _ = vocabulary.read_client_agents(store.repo.worktree)
    texts = (
        _safe(each.description or "", DESCRIPTION_MAX) for each in files if fold(each.name) == fold(name)
    )
    said = next(filter(None, texts), "")
    if said and said[-1] not in ".!?…":
        said += "."
    if role:
        said += f" Role: {role} ({', '.join(kinds)})." if kinds else f" Role: {role}."
    tags = filter(None, (_safe(each, TAG_MAX) for each in (role, *kinds, *skills)))
    return _safe(said, DESCRIPTION_MAX) or None, list(dict.fromkeys(tags))[:TAGS_MAX]


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

    It names both versions of the protocol for the default tenant: 0.3 has no tenants.

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
            AgentInterface(url=where, protocol_binding=binding.value, protocol_version=spoken, tenant=tenant)
            for tenant, spoken in _spoken(tenants)
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


def _spoken(tenants: Collection[str]) -> list[tuple[str, str]]:
    """Return the tenants with the versions of the protocol that they are served in."""
    now = [(tenant, A2A_PROTOCOL) for tenant in tenants]
    return [*now, ("", A2A_OLD)] if "" in tenants else now


_CACHE = "public, max-age=300"

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
        grpc: Where gRPC is served: the address, and the port to try first; None for nowhere.
    """

    agents: Sequence[ServedAgent]
    logs: Mapping[str, ServedLog]
    callers: Mapping[str, CallerOf]
    url: str
    hosts: Sequence[str]
    version: str
    anonymous: str | None = None
    grpc: tuple[str, int] | None = None


def application(served: Served) -> ASGIApp:
    """Return the application that answers for these agents."""
    routes: list[BaseRoute] = []
    handlers = []
    for each in served.agents:
        path = f"/agents/{each.name}"
        handler = _handler(served, each, f"{served.url}{path}/")
        handlers.append(handler)
        routes.append(Mount(path, routes=_routes(handler)))
    root = _handler(served, served.agents[0], f"{served.url}/")
    routes += _routes(root)
    callers = Callers(served.callers, served.anonymous)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        for log in served.logs.values():
            log.start()
            if log.push is not None:
                log.push.begin({each.agent: partial(each.changes, log) for each in handlers})
        try:
            async with _over_grpc(served, [*handlers, root], callers):
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
    return Guard(app, served.hosts, callers, cards=cards)


@contextlib.asynccontextmanager
async def _over_grpc(served: Served, handlers: Sequence[Handler], callers: Callers) -> AsyncIterator[None]:
    """Serve each agent over gRPC, too, at a port of its own, which its cards name."""
    if served.grpc is None:
        yield
        return
    (host, port), report = served.grpc, next(iter(served.logs.values())).report
    async with contextlib.AsyncExitStack() as stack:
        for number, agent in enumerate(served.agents):
            own = [each for each in handlers if each.agent == agent.address]
            try:
                from . import a2a_grpc

                server = a2a_grpc.serving(own[0], callers, host, port + number)
                where = await stack.enter_async_context(server)
            except Exception as error:  # whatever is wrong with it, HTTP goes on
                report(f"{agent.name} is not served over gRPC: {error}.")
                continue
            for each in own:
                each.card.supported_interfaces.extend(
                    AgentInterface(url=where, protocol_binding=TransportProtocol.GRPC.value, protocol_version=spoken, tenant=tenant)
                    for tenant, spoken in _spoken(served.logs)
                )  # fmt: skip
            report(f"gRPC of {agent.name} at {where}")
        yield


def _handler(served: Served, agent: ServedAgent, url: str) -> Handler:
    needs_token = served.anonymous is None
    push = all(log.push is not None for log in served.logs.values())
    card = card_of(agent, url, served.version, tenants=list(served.logs), token=needs_token, push=push)
    return Handler(agent.address, card, served.logs)


def _routes(handler: Handler) -> list[BaseRoute]:
    """Return the routes of an agent, relative to its URL."""
    return [
        *create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True),
        *(
            _dated(route)
            for path in CARDS
            for route in create_agent_card_routes(handler.card, card_url=path, cache_control=_CACHE)
        ),
        # a tenant is below the binding's path, as in the requests of clients
        Mount(REST, Router([*_OldRest(handler).all(), *create_rest_routes(handler)], redirect_slashes=False)),
    ]


class _OldRest(REST03Adapter):
    """REST of 0.3: that of the SDK begins its streams before it reads the request, and cuts those of a bad one without a word."""

    def all(self) -> list[BaseRoute]:
        """Return its routes."""
        return [Route(path, answer, methods=[method]) for (path, method), answer in self.routes().items()]

    async def _handle_request(self, method: Callable[..., Any], request: Request) -> Response:
        async def answer(request: Request, context: ServerCallContext) -> Any:
            with _understood():
                return await method(request, context)

        answered: Response = await super()._handle_request(answer, request)
        return answered

    @rest_stream_error_handler
    async def _handle_streaming_request(self, method: Callable[..., Any], request: Request) -> Response:
        events = method(request, self._context_builder.build(request))
        with _understood():
            first = await anext(events, None)

        async def texts() -> AsyncIterator[str]:
            if first is not None:
                yield json.dumps(first)
            async for each in events:
                yield json.dumps(each)

        return create_event_source_response(texts())


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Raise InvalidParamsError for what the SDK can't take over from a request of 0.3."""
    try:
        yield
    except ValueError as error:
        raise InvalidParamsError(message=f"It is no request of A2A 0.3: {str(error)[:200]}") from error


def _dated(card: Route) -> Route:
    """Return the route of a card that says since when the card is as it is."""
    since = formatdate(usegmt=True)

    async def endpoint(request: Request) -> Response:
        answer: Response = await card.endpoint(request)
        answer.headers["Last-Modified"] = since
        return answer

    return Route(card.path, endpoint)


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
        log = self._logs.get(tenant) if tenant in context.state["auth"].scopes else None
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


POLL_SECONDS = 0.02  # between two looks at the files of the log, of which each takes about 50 µs
TICK_SECONDS = 1.0  # leases end and syncs become due without a record
_QUOTA = ("too-many-open", "quota")


class ServedLog:
    """The log of one repository: the sessions of its callers, their tasks, and waiting for changes.

    All of it runs in one thread, because reading a log takes milliseconds that the event loop has no time for.

    Args:
        store: The store, which only this object uses.
        tick: Called about once a second, such as to sync.
        push: What notifies clients; None if nothing does.
        report: Called with a sentence about each error of the store, and about where else it is served.
    """

    def __init__(
        self,
        store: Store,
        tick: Callable[[], object] = lambda: None,
        push: Push | None = None,
        report: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self.store = store
        self.push = push
        self._tick = tick
        self.report = report
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gitmem a2a")
        self._stop = threading.Event()
        self._changed = asyncio.Event()
        self._watch: threading.Thread | None = None

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job with the store, in its thread.

        Raises:
            InternalError: The store can't be used.
            InvalidParamsError, UnsupportedOperationError: What was asked for is refused.
        """

        def locked() -> T:
            with self.store.lock:
                return job()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, locked)
        except StoreError as error:
            self.report(error.message)  # it may name paths of this machine, which clients are not told
            raise InternalError(message=f"The log can't be used now: {error.code}.") from error
        except UsageError as error:
            refused = UnsupportedOperationError if error.code in _QUOTA else InvalidParamsError
            raise refused(message=error.message) from error

    def start(self) -> None:
        """Begin to watch the log, in the running event loop."""
        loop = asyncio.get_running_loop()
        self._watch = threading.Thread(target=self._watching, args=(loop,), daemon=True)
        self._watch.start()

    def close(self) -> None:
        """End the threads; the caller closes the store."""
        self._stop.set()
        self._notify()
        if self._watch is not None:
            self._watch.join(2 * TICK_SECONDS)
        self._thread.shutdown()

    def change(self) -> asyncio.Event:
        """Return an event that is set at the next change; get it before reading."""
        return self._changed

    def caller(self, name: str) -> Caller:
        """Return the caller with a name: its open session in this clone, or a new one."""
        identity = of_writer(caller_identity(name), self.store.writers.writer())
        known = [
            each for each in presence.of_identity(self.store, identity) if each.ended is None and each.here
        ]
        if known:
            session = min(each.session_id for each in known)
        else:
            started = lifecycle.start(self.store, CallerClaims(), agent_identity=identity, client=A2A_CLIENT)
            session = started.session_id
        found = callers.find(self.store, CallerClaims(as_=session, session=session))
        assert found is not None  # the session is open
        return found

    def create(self, caller: Caller, agent: str, message: Incoming) -> FoldedTask:
        """Record a task for an agent.

        Raises:
            InvalidParamsError: It refers to a task that is not the caller's, or not here. Nothing was written.
            UsageError: See `new_task.create` (also RecordError, SecretError). Nothing was written.
            StoreError: It can't be recorded.
        """
        for each in message.references:
            task = task_state.load_task(self.store.db(), each)
            if task is None or task.caller[0] != caller.reader:
                raise InvalidParamsError(message=f"No such task: {each!r}.")
        (resolved,) = addressing.from_addresses(self.store, [agent])
        made = new_task.create(
            self.store,
            caller,
            message.text,
            to=resolved.address,
            allow_unseen=True,
            purpose="call",
            deadline=self.store.now() + int(DEADLINE_SECONDS * 1_000_000),
            payload=message.payload,
            references=message.references,
            thread=self._thread_of(caller, message.context_id),
            idempotency_key=message.key,
        )
        return task_rules.require(self.store, made.task["task_id"], writing=True)

    def write(self, caller: Caller, task: FoldedTask, message: Incoming) -> FoldedTask:
        """Record a message in a task of the caller.

        Raises:
            UsageError, StoreError: See `task_decisions.message`.
        """
        id = task.record["task_id"]
        task_decisions.message(self.store, caller, id, message.text, payload=message.payload)
        return task_state.load_task(self.store.db(), id) or task

    def find(self, caller: Caller, agent: str, task_id: str) -> FoldedTask | None:
        """Return a task of a caller for an agent; None for another one, whether it is here or not."""
        task = task_state.load_task(self.store.db(), task_id)
        if task is None or task.caller[0] != caller.reader or task.record.get("agent") != agent:
            return None
        return task

    def look(self, caller: Caller, agent: str, task_id: str) -> tuple[FoldedTask, bool] | None:
        """Return a task and whether its state is the last word; seal it then, if the caller's session wrote it."""
        task = self.find(caller, agent, task_id)
        if task is None:
            return None
        is_over = task_rules.is_over(task, self.store.now())
        if task_rules.seal(task, sender_of(caller)) is None:
            with contextlib.suppress(GitmemError):  # the next look seals it
                if is_over:
                    task_decisions.seal_task(self.store, caller, task_id)
                    task = task_state.load_task(self.store.db(), task_id) or task
                elif (why := task_decisions.reason_to_give_up(self.store, task)) is not None:
                    task, is_over = task_decisions.give_up(self.store, caller, task, why), True
        return task, is_over

    def ids(self, caller: Caller, agent: str, limit: int) -> Sequence[str]:
        """Return the ids of the caller's tasks for an agent, at most the last ones; tasks that nobody may begin any more are given up before."""
        task_decisions.give_up_lost(self.store, caller)
        return stored_tasks.asked_of(self.store.db(), caller.reader, agent, limit)

    def list(self, ids: Sequence[str]) -> Sequence[FoldedTask]:
        """Return tasks by their ids."""
        found = (task_state.load_task(self.store.db(), id) for id in ids)
        return [each for each in found if each is not None]

    def _thread_of(self, caller: Caller, context_id: str) -> str | None:
        """Return the thread of a conversation: one of the caller's, or the one that it names."""
        if not context_id:
            return None
        known = stored_tasks.has_thread(self.store.db(), caller.reader, context_id)
        return context_id if known else thread_of(self.store, caller.reader, context_id)

    def _watching(self, loop: asyncio.AbstractEventLoop) -> None:
        watcher = ChangeWatcher(self.store, self._stop, events=False, poll_seconds=POLL_SECONDS)
        stamp = watcher.stamp()
        while not self._stop.is_set():
            watcher.wait(stamp, TICK_SECONDS)
            stamp = watcher.stamp()
            try:
                self._tick()
                loop.call_soon_threadsafe(self._notify)
            except RuntimeError:  # the loop is closed
                return

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
