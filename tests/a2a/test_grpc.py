"""The gateway over gRPC, with the extra `grpc`: the same requests, callers and limits as over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from cli import a2a
from gitmem.calls import BODY_MAX_BYTES, http_guard
from gitmem.errors import StoreError

from .conftest import Gateway, Local, run
from .talking import kinds, request, send, talk
from .test_bad_requests import written

grpc = pytest.importorskip("grpc")
from a2a.client import Client, ClientConfig, create_client  # noqa: E402
from a2a.compat.v0_3 import a2a_v0_3_pb2, a2a_v0_3_pb2_grpc  # noqa: E402
from a2a.types import GetTaskRequest, ListTasksRequest, a2a_pb2, a2a_pb2_grpc  # noqa: E402
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError  # noqa: E402

if TYPE_CHECKING:
    from gitmem.api.log import Log

SEND = "/lf.a2a.v1.A2AService/SendMessage"
V1 = (("a2a-version", "1.0"),)


@pytest.fixture
def served(repo: Path) -> Iterator[Local]:
    """A gateway that serves gRPC, too."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = Local(
            repo, grpc=("127.0.0.1", taken.getsockname()[1])
        )  # which is in use: it takes another one
        yield found
        found.close()


def places(gateway: Any, path: str = "") -> list[str]:
    """Return where its card says that gRPC is, for 1.0 and for 0.3."""
    card = httpx.get(f"{gateway.url}{path}/.well-known/agent-card.json").json()
    return [each["url"] for each in card["supportedInterfaces"] if each["protocolBinding"] == "GRPC"]


@contextlib.asynccontextmanager
async def channel_of(gateway: Any, path: str = "") -> AsyncIterator[Any]:
    """A channel to its gRPC."""
    async with grpc.aio.insecure_channel(places(gateway, path)[0]) as channel:
        yield channel


def bearer(gateway: Any, token: str | None = None) -> tuple[tuple[str, str], ...]:
    """Return the metadata of a request."""
    return (("authorization", f"Bearer {token or gateway.token}"), *V1)


@contextlib.asynccontextmanager
async def client_of(gateway: Any, *, streaming: bool = False) -> AsyncIterator[Client]:
    """The SDK's client, by the card."""

    async def add(_: object, continuation: Any, details: Any, asked: Any) -> Any:
        named = (*(details.metadata or ()), ("authorization", f"Bearer {gateway.token}"))
        return await continuation(details._replace(metadata=grpc.aio.Metadata(*named)), asked)

    class Unary(grpc.aio.UnaryUnaryClientInterceptor):
        intercept_unary_unary = add

    class Streaming(grpc.aio.UnaryStreamClientInterceptor):
        intercept_unary_stream = add

    def channel(url: str) -> Any:
        return grpc.aio.insecure_channel(url, interceptors=[Unary(), Streaming()])

    async with httpx.AsyncClient() as http:
        config = ClientConfig(
            httpx_client=http, streaming=streaming, supported_protocol_bindings=["GRPC"], grpc_channel_factory=channel
        )  # fmt: skip
        client = await create_client(gateway.url, config)
        try:
            yield client
        finally:
            await client.close()


async def refused(
    gateway: Any, method: str = SEND, content: bytes = b"", metadata: Any = None, **options: Any
) -> tuple[str, str]:
    """Return the status and the text that answer a request of bytes."""
    async with channel_of(gateway) as channel:
        call = channel.unary_unary(method)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(
                content, metadata=bearer(gateway) if metadata is None else metadata, timeout=20, **options
            )
    return error.value.code().name, error.value.details()


def test_each_operation_goes_over_grpc_as_over_http(served: Local, answering: Callable[..., Log]) -> None:
    answering()

    async def job() -> None:
        async with client_of(served) as client:
            (found,) = await send(client, request("is it right?"))
            assert found.task.artifacts[0].parts[0].text == "Hello from TCK"
            assert (await client.get_task(GetTaskRequest(id=found.task.id))).id == found.task.id
            listed = await client.list_tasks(ListTasksRequest())
            assert [each.id for each in listed.tasks] == [found.task.id]
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id="task-none"))
        async with client_of(served, streaming=True) as client:
            assert kinds(await send(client, request(id="tck-stream-artifact-chunked"))) == [
                "task", "working", "artifact", "artifact", "completed",
            ]  # fmt: skip
        async with httpx.AsyncClient(
            headers={"Authorization": f"Bearer {served.token}", "A2A-Version": "1.0"}
        ) as http:
            assert len((await http.get(f"{served.url}/rest/tasks")).json()["tasks"]) == 2

    talk(job)


def test_each_agent_has_a_port_of_its_own_on_loopback(served: Local, answering: Callable[..., Log]) -> None:
    """Its card names it, at the root and at its path, for both versions."""
    prices, taxes = places(served), places(served, "/agents/taxes")
    assert prices == places(served, "/agents/prices") and len({*prices}) == len({*taxes}) == 1
    assert len(prices) == len(taxes) == 2 and prices != taxes
    assert all(each.startswith("127.0.0.1:") for each in (*prices, *taxes))

    async def job() -> str:
        async with channel_of(served, "/agents/taxes") as channel:
            asked = request("which?")
            asked.configuration.return_immediately = True
            found = await a2a_pb2_grpc.A2AServiceStub(channel).SendMessage(asked, metadata=bearer(served))
        return str(found.task.id)

    shown = served.log.tasks.show(talk(job))
    assert ":taxes" in str(shown.task["agent"])


def test_a_client_of_0_3_is_answered(served: Local, answering: Callable[..., Log]) -> None:
    answering()

    async def job() -> None:
        async with channel_of(served) as channel:
            stub = a2a_v0_3_pb2_grpc.A2AServiceStub(channel)
            said = a2a_v0_3_pb2.Message(
                message_id="m-1", role=a2a_v0_3_pb2.ROLE_USER, content=[a2a_v0_3_pb2.Part(text="hello")]
            )
            asked = a2a_v0_3_pb2.SendMessageRequest(request=said)
            found = await stub.SendMessage(asked, metadata=bearer(served)[:1])
            assert found.task.artifacts[0].parts[0].text == "Hello from TCK"

    talk(job)


@pytest.mark.parametrize(
    "metadata",
    [V1, (*V1, ("authorization", "Bearer gm_wrong")), (*V1, ("authorization", "Bearer")),
     (*V1, ("authorization", "Basic cGxhbm5lcjp4")), (*V1, ("authorization", "Bearer a"), ("authorization", "Bearer b"))],
)  # fmt: skip
def test_a_request_without_a_valid_token_is_refused(served: Local, metadata: Any) -> None:
    """Before its message is read, whatever the method."""

    async def job() -> None:
        for method in (
            SEND,
            "/lf.a2a.v1.A2AService/SendStreamingMessage",
            "/a2a.v1.A2AService/SendMessage",
            "/x/y",
        ):
            code, said = await refused(served, method, b"\xff", metadata)
            assert (code, said) == ("UNAUTHENTICATED", http_guard.NEEDED)

    talk(job)
    assert written(served) == 0


@pytest.mark.parametrize(
    ("method", "content", "code"),
    [
        (SEND, b"\xff\xff\xff", "INVALID_ARGUMENT"),
        (
            SEND,
            b"\x12\x08\x0a\x02\xff\xfe\x22\x02\x0a\x00",
            "INVALID_ARGUMENT",
        ),  # a message id that is not UTF-8
        (SEND, b"", "INVALID_ARGUMENT"),
        (SEND, b"x" * (BODY_MAX_BYTES + 1), "RESOURCE_EXHAUSTED"),
        ("/lf.a2a.v1.A2AService/Nothing", b"", "UNIMPLEMENTED"),
        ("/x/y", b"", "UNIMPLEMENTED"),
        ("/a2a.v1.A2AService/SendMessage", b"\xff", "INVALID_ARGUMENT"),
        (
            "/a2a.v1.A2AService/SendMessage",
            b"\x0a\x07\x0a\x01m\x20\x01\x2a\x00",
            "INVALID_ARGUMENT",
        ),  # an empty part
    ],
)
def test_what_is_no_request_has_a_status_and_writes_nothing(
    served: Local, method: str, content: bytes, code: str
) -> None:
    """The gateway goes on."""
    metadata = bearer(served) if "/lf." in method else bearer(served)[:1]  # the version
    found = talk(lambda: refused(served, method, content, metadata))
    assert (found[0], bool(found[1]), "Traceback" in found[1]) == (code, True, False), found
    assert written(served) == 0
    assert httpx.get(f"{served.url}/.well-known/agent-card.json").status_code == 200


def test_what_http_refuses_is_refused(served: Local) -> None:
    """A number that JSON has not, bytes, a long text, a secret, another version, a tenant of others."""

    async def job() -> None:
        asked = [request("x" * 70_000), request("key ghp_0123456789abcdefghijABCDEFGHIJ012345")]
        infinite = request("x")
        infinite.message.metadata.update({"rate": float("inf")})
        tenant = request("x")
        tenant.tenant = "other"
        async with client_of(served) as client:
            for each in (*asked, infinite, tenant):
                with pytest.raises(InvalidParamsError):
                    await send(client, each)
        async with channel_of(served) as channel:
            stub = a2a_pb2_grpc.A2AServiceStub(channel)
            for version in ((), (("a2a-version", "0.3"),), (("a2a-version", "99.0"),)):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await stub.SendMessage(request("x"), metadata=(*bearer(served)[:1], *version))
                assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION, error.value
                assert "1.0 is" in error.value.details()

    talk(job)
    assert written(served) == 0


def test_no_http_1_request_is_answered_there(served: Local) -> None:
    """A browser sends one, whatever page it shows."""
    with contextlib.suppress(httpx.TransportError):
        url = f"http://{places(served)[0]}{SEND}"
        headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/grpc"}
        assert httpx.post(url, content=b"\0\0\0\0\0", headers=headers, timeout=20).status_code >= 400
    assert written(served) == 0


@pytest.mark.deep
def test_more_connections_than_the_limit_are_closed(served: Local) -> None:
    host, _, port = places(served)[0].partition(":")
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(http_guard.CONNECTIONS_MAX + 20):
            opened.append(stack.enter_context(socket.create_connection((host, int(port)))))
            opened[-1].settimeout(0.1)

        def is_closed(one: socket.socket) -> bool:
            try:
                while one.recv(1_000):
                    pass
            except TimeoutError:
                return False
            except OSError:
                pass
            return True

        assert sum(map(is_closed, opened)) >= 20


def test_where_grpc_can_not_be_served_http_goes_on_and_it_is_said(repo: Path) -> None:
    found = Local(repo, grpc=("192.0.2.1", 4811))  # an address of no machine
    try:
        assert places(found) == []
        assert [each.partition(":")[0] for each in found.said] == [
            "prices is not served over gRPC", "taxes is not served over gRPC",
        ]  # fmt: skip
    finally:
        found.close()


def test_a_message_that_becomes_large_is_refused(served: Local) -> None:
    """A megabyte of zeros has a kilobyte on the wire. So is a long head."""
    found = talk(lambda: refused(served, SEND, b"\0" * 1_000_000, compression=grpc.Compression.Gzip))
    assert found[0] == "RESOURCE_EXHAUSTED", found
    long = talk(lambda: refused(served, SEND, metadata=(*bearer(served), ("x", "x" * 32_000))))
    assert long[0] == "RESOURCE_EXHAUSTED", long
    assert written(served) == 0


def test_a_caller_has_one_limit_over_http_and_grpc(served: Local) -> None:
    """Also requests whose message does not come count."""
    callers, own = served.guard._callers, bearer(served)
    caller = callers.find([own[0][1]])
    assert caller is not None
    callers._running[caller] = http_guard.RUNNING_MAX - 2  # as many streams of it are open

    async def job() -> None:
        async with channel_of(served) as channel:
            silent = channel.stream_stream(SEND)
            begun = [silent(metadata=own) for _ in range(2)]
            while callers._running[caller] < http_guard.RUNNING_MAX:
                await asyncio.sleep(0.01)
            code, said = await refused(served, SEND, request("x").SerializeToString())
            assert (code, f"{http_guard.RUNNING_MAX} requests" in said) == ("RESOURCE_EXHAUSTED", True)
            async with httpx.AsyncClient(
                headers={"Authorization": f"Bearer {served.token}", "A2A-Version": "1.0"}
            ) as http:
                assert (await http.get(f"{served.url}/rest/tasks")).status_code == 429
            for each in begun:
                each.cancel()

    talk(job)


@pytest.mark.deep  # it looks once a second
def test_a_stream_of_a_revoked_token_ends(served: Local) -> None:
    async def job() -> None:
        async with channel_of(served) as channel:
            stub = a2a_pb2_grpc.A2AServiceStub(channel)
            stream = stub.SendStreamingMessage(request("x"), metadata=bearer(served))
            assert (await stream.read()).WhichOneof("payload") == "task"
            served.tokens.remove("planner")
            with contextlib.suppress(grpc.aio.AioRpcError):
                while await stream.read() is not grpc.aio.EOF:
                    pass
            assert await stream.code() == grpc.StatusCode.UNAUTHENTICATED

    talk(job)


@pytest.mark.deep  # it looks once a second
@pytest.mark.parametrize("readable", [0, 1])
def test_tokens_that_can_not_be_read_name_no_path(
    served: Local, monkeypatch: pytest.MonkeyPatch, readable: int
) -> None:
    """Neither before a request, nor while its answer goes on."""
    find, asked = served.guard._callers.find, []

    def fail(given: list[str]) -> Any:
        asked.append(given)
        if len(asked) > readable:
            raise StoreError("/home/somebody/tokens cannot be read.", code="unreadable-file")
        return find(given)

    async def job() -> None:
        async with channel_of(served) as channel:
            monkeypatch.setattr(served.guard._callers, "find", fail)
            stub = a2a_pb2_grpc.A2AServiceStub(channel)
            stream = stub.SendStreamingMessage(request("x"), metadata=bearer(served))
            with contextlib.suppress(grpc.aio.AioRpcError):
                while await stream.read() is not grpc.aio.EOF:
                    pass
            assert await stream.code() == grpc.StatusCode.INTERNAL
            assert await stream.details() == "The tokens can't be read now: unreadable-file."

    talk(job)


def test_grpc_is_served_on_this_machine_alone() -> None:
    """And not where clients reach the gateway by a proxy, whose port a card can't name."""
    assert a2a.grpc_of("127.0.0.1", 4810, None) == ("127.0.0.1", 4811)
    assert a2a.grpc_of("[::1]", 4810, None) == ("[::1]", 4811)
    assert a2a.grpc_of("0.0.0.0", 4810, None) is None
    assert a2a.grpc_of("127.0.0.1", 4810, "https://example.org") is None


def test_http_says_where_grpc_is(local: Local) -> None:
    """Without the extra nothing else changes: the card names no gRPC."""
    assert places(local) == []
    headers = {"Authorization": f"Bearer {local.token}", "Content-Type": "application/grpc"}
    answer = httpx.post(f"{local.url}/", content=b"x", headers=headers)
    assert "gRPC has a port of its own" in answer.json()["error"]["message"]


@pytest.mark.deep
def test_a2a_serve_serves_grpc_at_the_next_port(repo: Path) -> None:
    """A black box: it is said on standard error, the card names it, and the token is needed there, too."""
    token = run(repo, "a2a", "token", "planner").split()[0]
    gateway = Gateway(repo, token)
    try:
        (where, _) = places(gateway)

        async def job() -> tuple[Any, Any]:
            async with channel_of(gateway) as channel:
                stub = a2a_pb2_grpc.A2AServiceStub(channel)
                asked = request("which?")
                asked.configuration.return_immediately = True
                found = await stub.SendMessage(asked, metadata=bearer(gateway))
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await stub.GetTask(a2a_pb2.GetTaskRequest(id=found.task.id), metadata=V1)
            return found, error.value.code()

        found, code = talk(job)
        assert (found.task.status.state, code) == (1, grpc.StatusCode.UNAUTHENTICATED)
        assert where.startswith("127.0.0.1:")
    finally:
        gateway.end()


def test_without_the_extra_http_alone_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc.aio", None)
    assert a2a.grpc_of("127.0.0.1", 4810, None) is None
