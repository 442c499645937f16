"""The HTTP server, and what each request passes before its body is parsed: limits on connections, the host, the origin, the token, type and size."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections import Counter

import uvicorn
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import ContentTypeNotSupportedError
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from . import BODY_MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    # Returns the name of the caller that a token belongs to.
    CallerOf = Callable[[str], str | None]
    Caller = tuple[str, tuple[str, ...]]  # a caller's name, and the tenants that it may use


CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")  # the second is that before A2A 1.0
BODY_SECONDS = 20.0
RUNNING_MAX = 100  # requests of one caller at a time, such as event streams
NEEDED = "A valid token is needed: Authorization: Bearer TOKEN."
CHECK_SECONDS = 1.0  # between two looks whether the token of a running request is still valid
_TYPES = ("application/json", "application/a2a+json")
_REST = "/rest/"
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 408: "DEADLINE_EXCEEDED", 413: "OUT_OF_RANGE", 429: "RESOURCE_EXHAUSTED"}  # fmt: skip


class TooManyRequestsError(Exception):
    """A caller has the most requests that it may have at a time."""


class Callers:
    """Who may ask, and how much at a time: by HTTP and gRPC together.

    Args:
        by_tenant: Returns the caller of a token for each tenant.
        anonymous: The caller of requests without a token; None to refuse these.
    """

    def __init__(self, by_tenant: Mapping[str, CallerOf], anonymous: str | None = None) -> None:
        self._by_tenant = by_tenant
        self._anonymous = anonymous
        self._running: Counter[Caller] = Counter()

    def find(self, given: Sequence[str]) -> Caller | None:
        """Return the name of a caller and its tenants, by the Authorization headers of its request; None without a valid token."""
        if not given:
            return (self._anonymous, tuple(self._by_tenant)) if self._anonymous is not None else None
        scheme, _, token = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
            return None
        found = {tenant: caller_of(token.strip()) for tenant, caller_of in self._by_tenant.items()}
        names = {name for name in found.values() if name is not None}
        if len(names) != 1:
            return None
        return names.pop(), tuple(tenant for tenant, name in found.items() if name is not None)

    @contextlib.contextmanager
    def running(self, caller: Caller) -> Iterator[None]:
        """Count a request of a caller.

        Raises:
            TooManyRequestsError: It has the most already.
        """
        if self._running[caller] >= RUNNING_MAX:
            raise TooManyRequestsError(
                f"You have {RUNNING_MAX} requests that are not answered yet, the most allowed."
            )
        self._running[caller] += 1
        try:
            yield
        finally:
            self._running[caller] -= 1

    async def answer(self, caller: Caller, given: Sequence[str], answering: Awaitable[None]) -> bool:
        """Wait for the answer to a caller's request; cancel it and return False once its token is no longer valid."""
        answer = asyncio.ensure_future(_awaited(answering))
        try:
            while not (await asyncio.wait([answer], timeout=CHECK_SECONDS))[0]:
                if self.find(given) != caller:
                    return False
        finally:
            answer.cancel()
            await asyncio.wait([answer])
        answer.result()
        return True


class Guard:
    """Middleware that refuses requests.

    Args:
        app: What answers the others.
        hosts: The values of the Host header that are ours. A web page can make a browser send another one, by DNS.
        callers: Who may ask.
        cards: The paths of cards, which need no token.
        needed: What to tell who has no valid token.
        serves_pages: Whether pages of the host that a request names may ask, too.
        body_most: Bytes of a body.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        callers: Callers,
        *,
        cards: Collection[str],
        needed: str = NEEDED,
        serves_pages: bool = False,
        body_most: int = BODY_MAX_BYTES,
    ) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._callers = callers
        self._cards = frozenset(cards)
        self._needed = needed
        self._serves_pages = serves_pages
        self._body_most = body_most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with an error."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self._refuse(scope)
        caller = (scope["user"].display_name, tuple(scope["auth"].scopes)) if "user" in scope else None
        if refused is not None or caller is None:
            await (refused or self._app)(scope, receive, send)
            return
        try:
            with self._callers.running(caller):
                await self._answer(caller, scope, receive, send)
        except TooManyRequestsError as error:
            await _error(429, str(error))(scope, receive, send)

    async def _answer(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a caller's request, until its token is no longer valid: an answer that is not complete closes the connection."""
        if scope["method"] in ("POST", "PUT", "PATCH"):
            body = await self._body(receive)
            if isinstance(body, bytes):
                receive = _replay(body, receive)
                body = _no_json(body)
            if body is not None:
                await body(scope, receive, send)
                return
        given = Headers(scope=scope).getlist("authorization")
        await self._callers.answer(caller, given, self._app(scope, receive, send))

    def _refuse(self, scope: Scope) -> JSONResponse | None:
        """Return the error that answers a request by its head alone, or note its caller."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts or len(headers.getlist("host")) != 1:
            return _error(403, "The Host header does not name this gateway.")
        ours = [f"http://{host}"] if self._serves_pages else []
        if any(each not in ours for each in headers.getlist("origin")):
            return _error(
                403, "Requests of other web pages are refused: the request has their Origin header."
            )
        path, method = scope["path"], scope["method"]
        if method == "GET" and path in self._cards:
            return None
        caller = self._callers.find(headers.getlist("authorization"))
        if caller is None:
            return _error(401, self._needed, {"WWW-Authenticate": "Bearer"})
        scope["user"], scope["auth"] = SimpleUser(caller[0]), AuthCredentials(caller[1])
        if "transfer-encoding" in headers and "content-length" in headers:
            return _error(400, "The request has both a Content-Length and a Transfer-Encoding.")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:12]) > self._body_most:
            return self._too_large()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and kind not in _TYPES and (kind or length != "0"):
            return _wrong_type(kind, is_rest=_REST in path)
        return None

    def _too_large(self) -> JSONResponse:
        return _error(413, f"The body is too large; at most {self._body_most} bytes are allowed.")

    async def _body(self, receive: Receive) -> bytes | JSONResponse | None:
        """Return the body of a request, or the error that answers it; None if the client has gone."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._body_most:
                        return self._too_large()
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            return _error(408, f"The body did not arrive within {BODY_SECONDS:g} seconds.")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that begins with the body that was read."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


async def _awaited(answer: Awaitable[None]) -> None:
    await answer


def _no_json(body: bytes) -> JSONResponse | None:
    """Return the error that answers a body which readers of JSON understand differently; None for others, also those that all refuse."""
    try:
        json.loads(body.decode(), parse_constant=_refuse_number, parse_float=_finite, object_pairs_hook=_once)
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError) as error:
        return _error(400, f"The body is not valid JSON: {str(error)[:200]}.")
    return None


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text[:20]} is not a number")


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _refuse_number(text)


def _once(pairs: Sequence[tuple[str, object]]) -> None:
    if len(pairs) != len(dict(pairs)):
        raise ValueError("an object has a name twice")


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    error = {"code": status, "status": _STATUS[status], "message": message}
    return JSONResponse({"error": error}, status, headers={"Connection": "close", **(headers or {})})


def _wrong_type(kind: str, *, is_rest: bool) -> JSONResponse:
    valid = f"{' and '.join(_TYPES)} are valid"
    if kind.startswith("application/grpc"):
        valid += "; gRPC has a port of its own, which the card names where the extra `grpc` is installed"
    error = ContentTypeNotSupportedError(message=f"The Content-Type is {json.dumps(kind[:80])}; {valid}.")
    if is_rest:
        payload = build_rest_error_payload(error)
        payload["error"]["code"] = 415  # what HTTP has for it; A2A 1.0.1 has 400 for parts of another type
        return JSONResponse(payload, 415)
    return JSONResponse(build_error_response(None, error))


HEADS_MAX_BYTES, END_SECONDS = 16 * 1024, 3
CONNECTIONS_MAX = 200  # of all clients together
HEAD_SECONDS = 15.0  # for the head of a request, after the connection was made or the last answer was sent


def server_of(app: ASGIApp, on_start: Callable[[], object], end_seconds: int = END_SECONDS) -> uvicorn.Server:
    """Return a server; its `run(sockets=[…])` answers requests until a signal ends it.

    Args:
        on_start: Called once it listens.
        end_seconds: For answers that are not complete when it ends.
    """
    # A client's mistakes are answered, and nothing for whoever runs this.
    for name in ("a2a", "grpc", "uvicorn"):
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
