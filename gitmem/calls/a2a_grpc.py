"""The gateway over gRPC: an agent at a port of its own, with the handler, the callers and the limits that it has over HTTP.

No web page reaches it: browsers speak no HTTP/2 without TLS, so there is neither a Host nor an Origin to check.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from contextvars import ContextVar
from typing import Any

import grpc
import grpc.aio
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.request_handlers.grpc_handler import DefaultGrpcServerCallContextBuilder, GrpcHandler
from a2a.server.routes.common import StarletteUser
from a2a.types import a2a_pb2_grpc
from a2a.utils.constants import VERSION_HEADER
from a2a.utils.errors import VersionNotSupportedError
from google.protobuf.message import DecodeError
from starlette.authentication import AuthCredentials, SimpleUser

from ..errors import StoreError
from . import A2A_OLD, A2A_PROTOCOL, BODY_MAX_BYTES
from .http_guard import (
    BODY_SECONDS,
    CONNECTIONS_MAX,
    END_SECONDS,
    HEAD_SECONDS,
    NEEDED,
    RUNNING_MAX,
    TooManyRequestsError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from a2a.server.context import ServerCallContext
    from a2a.server.request_handlers.request_handler import RequestHandler

    from .http_guard import Caller, Callers


_OPTIONS = (
    ("grpc.so_reuseport", 0),  # else another process may share the port
    # Also of what was compressed; heads have at most 16 KiB.
    ("grpc.max_receive_message_length", BODY_MAX_BYTES),
    ("grpc.max_concurrent_streams", RUNNING_MAX),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.max_connection_idle_ms", int(HEAD_SECONDS * 1_000)),
    ("grpc.server_handshake_timeout_ms", int(HEAD_SECONDS * 1_000)),
)
_CALLER: ContextVar[Caller] = ContextVar("caller")  # of the request that is answered


@contextlib.asynccontextmanager
async def serving(handler: RequestHandler, callers: Callers, host: str, port: int) -> AsyncIterator[str]:
    """Serve an agent in the running event loop; yield where, as cards name it.

    Args:
        port: The one to take if it is free; else another one.

    Raises:
        OSError, RuntimeError: It can't listen.
    """
    server = grpc.aio.server(
        interceptors=[_Gate(callers)], options=_OPTIONS, maximum_concurrent_rpcs=CONNECTIONS_MAX
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler, _Contexts(A2A_PROTOCOL)), server)  # type: ignore[no-untyped-call]
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler, _Contexts(A2A_OLD)), server)  # type: ignore[no-untyped-call]
    taken = server.add_insecure_port(f"{host}:{port if _is_free(host, port) else 0}")
    await server.start()
    try:
        yield f"{host}:{taken}"
    finally:
        await server.stop(END_SECONDS)


def _is_free(host: str, port: int) -> bool:
    """Return whether nobody listens there; gRPC would print its own error."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host.strip("[]"), port), family=family).close()
    except (OSError, OverflowError):
        return False
    return True


class _Contexts(DefaultGrpcServerCallContextBuilder):
    """What the handler learns of a request beside its message.

    Args:
        version: The version of the protocol that is spoken here.
    """

    def __init__(self, version: str) -> None:
        self._version = version

    def build(self, context: grpc.aio.ServicerContext[Any, Any]) -> ServerCallContext:
        """Return it.

        Raises:
            VersionNotSupportedError: The request names another version; without one it is 0.3.
        """
        named = dict(context.invocation_metadata() or ()).get(VERSION_HEADER.lower()) or A2A_OLD
        if str(named).partition(".")[0] != self._version.partition(".")[0]:
            raise VersionNotSupportedError(
                message=f"Version {str(named)[:20]!r} of A2A is not served here; {self._version} is."
            )
        found = super().build(context)
        name, tenants = _CALLER.get()
        found.user = StarletteUser(SimpleUser(name))
        found.state["auth"] = AuthCredentials(tenants)
        return found


class _Gate(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # it has no types
    """Refuses requests by their head, before their message is read."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Return what answers a request. It reads the message itself, as that of a method with a stream of them."""
        head = handler_call_details.invocation_metadata or ()
        given = [str(value) for name, value in head if name == "authorization"]
        method = await continuation(handler_call_details)

        async def answer(_: object, context: Any) -> None:
            status = grpc.StatusCode
            try:
                caller = self._callers.find(given)
                if caller is None:
                    await context.abort(status.UNAUTHENTICATED, NEEDED)
                    return
                if method is None:
                    named = handler_call_details.method[:200]
                    await context.abort(status.UNIMPLEMENTED, f"No such method: {named}.")
                _CALLER.set(caller)
                with self._callers.running(caller):
                    if not await self._callers.answer(caller, given, _answer(method, context)):
                        await context.abort(status.UNAUTHENTICATED, NEEDED)
            except StoreError as error:  # it names paths of this machine; while an answer goes on, too
                await context.abort(status.INTERNAL, f"The tokens can't be read now: {error.code}.")
            except TooManyRequestsError as error:
                await context.abort(status.RESOURCE_EXHAUSTED, str(error))

        return grpc.stream_stream_rpc_method_handler(
            answer,
            request_deserializer=getattr(method, "request_deserializer", None),
            response_serializer=getattr(method, "response_serializer", None),
        )


async def _answer(method: Any, context: Any) -> None:
    """Read the message of a request, and write what a method answers."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            message = await context.read()
    except TimeoutError:
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"No message within {BODY_SECONDS:g} seconds.")
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The message is not what this method takes.")
    if message is grpc.aio.EOF:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The request has no message.")
    try:
        if not method.response_streaming:
            await context.write(await method.unary_unary(message, context))
            return
        async for each in method.unary_stream(message, context):
            await context.write(each)
    except ValueError as error:  # of the adapters of 0.3
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"It is no such request: {str(error)[:200]}")
