"""Our ends of the client's pipes: one JSON-RPC message a line.

The SDK's own stdio transport can't report when an answer has been written, and can't abandon a blocked read. This one
calls `written` for each answer: when all its bytes were written, when they can't be, or when the answer was cancelled
and none will be.
"""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from gitmem.errors import UsageError

from ..worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp_types import RequestId

    Incoming = SessionMessage | Exception

_CHUNK_BYTES = 1 << 16
_NO_JSON = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the line is not JSON."}}\n'
)


def claim() -> tuple[int, int]:
    """Return descriptors of the client's pipes that nothing else in this process uses.

    Descriptor 0 becomes the null device, and output to descriptor 1 goes to 2: no other code can read or write the
    pipes.

    Raises:
        UsageError: Standard input or output is closed.
    """
    try:
        ours = os.dup(0), os.dup(1)
    except OSError:
        raise UsageError(
            "Standard input or output is closed; gitmem mcp needs both for its client.",
            next=["gitmem mcp --help"],
        ) from None
    for descriptor in ours:
        os.set_blocking(descriptor, True)  # a client may share a non-blocking pipe with us
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null, 1)
    os.close(null)
    return ours


def _refusal(line: bytes) -> bytes:
    """Return the error that answers an invalid message, with the id of the request if it has one."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _NO_JSON
    id = message.get("id") if isinstance(message, dict) else None
    id = id if isinstance(id, (str, int)) and not isinstance(id, bool) else None
    error = {"code": -32600, "message": "Invalid request: the line is not a JSON-RPC 2.0 message."}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode() + b"\n"


class StdioTransport:
    """Reads messages from one descriptor and writes them to the other.

    `incoming` is the SDK's reading stream, and this object its writing stream.

    Args:
        input: The descriptor to read.
        output: The descriptor to write.
        written: Gets the id of each answer, and whether it was written completely. It is called in any thread.
    """

    def __init__(self, input: int, output: int, written: Callable[[RequestId, bool], None]) -> None:
        self._input = input
        self._output = output
        self._written = written
        self._reader = Worker("gitmem mcp input")
        self._writer = Worker("gitmem mcp output")
        self._loop = asyncio.get_running_loop()
        self._arrived: MemoryObjectSendStream[Incoming]
        self.incoming: MemoryObjectReceiveStream[Incoming]
        self._arrived, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    def listen(self) -> None:
        """Start the thread that reads."""
        self._reader.submit(self._read)

    def _read(self) -> None:
        rest = b""
        try:
            while chunk := os.read(self._input, _CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        self._take(line)
        except (OSError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the client is gone, or the server has stopped
        try:
            self._in_loop(self._arrived.aclose)
        except RuntimeError:
            return

    def _take(self, line: bytes) -> None:
        """Pass a message on. A line that is none gets an error."""
        message = self._message(line)
        if isinstance(message, ValueError):
            self._writer.submit(partial(self._write, _refusal(line)))
        else:
            self._in_loop(self._arrived.send, message)

    def _in_loop(self, do: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Run a coroutine in the event loop and wait until it is done.

        Raises:
            RuntimeError: The loop has ended.
        """
        coroutine = do(*args)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()  # otherwise Python warns that it was never awaited
            raise
        future.result()

    def _message(self, line: bytes) -> SessionMessage | ValueError:
        try:
            message = jsonrpc_message_adapter.validate_json(line.decode("utf-8", "replace"), by_name=False)
        except ValueError as error:
            return error
        if not isinstance(message, JSONRPCRequest):
            return SessionMessage(message)
        return SessionMessage(
            message, ServerMessageMetadata(on_request_unanswered=partial(self._unanswered, message.id))
        )

    async def _unanswered(self, id: RequestId) -> None:
        self._written(id, False)

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message completely, even if the sending task is cancelled meanwhile.

        Raises:
            anyio.BrokenResourceError: The client no longer reads.
        """
        message = item.message
        data = (message.model_dump_json(by_alias=True, exclude_unset=True) + "\n").encode()
        job = partial(self._write, data)
        if isinstance(message, JSONRPCResponse):
            job = partial(self._write, data, message.id)
        elif (id := getattr(message, "id", None)) is not None and not isinstance(message, JSONRPCRequest):
            job = partial(self._write, data, id, good=False)
        await asyncio.shield(asyncio.wrap_future(self._writer.submit(job)))

    def _write(self, data: bytes, id: RequestId | None = None, good: bool = True) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._output, rest) :]
        except OSError:
            if id is not None:
                self._written(id, False)
            raise anyio.BrokenResourceError from None
        if id is not None:
            self._written(id, good)

    async def aclose(self) -> None:
        """Do nothing: the descriptors end with the process."""

    def stop(self, seconds: float) -> None:
        """Wait at most this many seconds for messages that are not yet written."""
        self._writer.stop(seconds)

    async def __aenter__(self) -> StdioTransport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
