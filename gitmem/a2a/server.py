"""The gateway's HTTP server: which path is answered by what, and the limits on connections."""

from __future__ import annotations

import contextlib
import logging
from email.utils import formatdate
from functools import partial

import uvicorn
from a2a.auth.user import User
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from starlette.applications import Starlette
from starlette.routing import Mount, Router

from .card import REST, card_of
from .connections import CONNECTIONS_MAX, HEAD_SECONDS, Connection
from .guard import CALLER, CARDS, Guard
from .handler import TENANTS, Handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .card import ServedAgent
    from .guard import CallerOf
    from .served_log import ServedLog

HEADS_MAX_BYTES, END_SECONDS = 16 * 1024, 3
_CACHE = "public, max-age=300"


class Served:
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

    def __init__(
        self,
        agents: Sequence[ServedAgent],
        logs: Mapping[str, ServedLog],
        callers: Mapping[str, CallerOf],
        *,
        url: str,
        hosts: Sequence[str],
        version: str,
        anonymous: str | None = None,
    ) -> None:
        self.agents = agents
        self.logs = logs
        self.callers = callers
        self.url = url
        self.hosts = hosts
        self.version = version
        self.anonymous = anonymous


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
