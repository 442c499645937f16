"""Deliver signals to the client, and mark them as delivered afterwards.

A signal that is marked but never shown is lost. Therefore the mark waits until the pipe has accepted all bytes of the
answer. Until then this server holds the reader's delivery lock, so a hook that runs meanwhile does not show the signals
again, and all other calls wait. An answer that was cancelled, or could not be written, marks nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from gitmem.agents import delivery
from gitmem.signals import inbox

from .. import failure
from ..render import output
from . import tool_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_types import CallToolResult, RequestId

    from gitmem.agents.caller import Caller
    from gitmem.signals.inbox_answer import InboxResult

    from .mcp_session import CallEnvironment, McpSession

    Show = Callable[[CallEnvironment, Caller], tuple[InboxResult, CallToolResult]]

GATE_SECONDS = 10.0  # other calls wait at most this long for an answer to be written


class _PendingAnswer:
    """An answer that is not yet written.

    Attributes:
        has_gate: Whether the answer holds the gate at which other calls wait.
        reading: The signals to mark; None if nothing is to be marked.
        stack: Marks the signals, releases the delivery lock and closes the store.
    """

    def __init__(self, has_gate: bool) -> None:
        self.has_gate = has_gate
        self.reading: InboxResult | None = None
        self.stack = ExitStack()


class SignalDelivery:
    """The only way in which signals reach the client."""

    def __init__(self, session: McpSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._gate = asyncio.Lock()
        self._shown: dict[RequestId, _PendingAnswer] = {}

    async def wait_until_marked(self) -> None:
        """Wait until shown signals are marked: a client that calls again has received them."""
        if await self._enter():
            self._gate.release()

    async def show(self, request: RequestId, show: Show, *, marks: bool = True) -> CallToolResult:
        """Answer a request with signals.

        Args:
            request: The id of the request; `written` gets the result for it.
            show: Returns the signals and the answer. It runs in the session's thread.
            marks: Whether the signals are marked as delivered once the answer is written.
        """
        shown = _PendingAnswer(await self._enter())
        self._shown[request] = shown
        return await self._session.worker.run(partial(self._show, shown, show, marks))

    def _show(self, shown: _PendingAnswer, show: Show, marks: bool) -> CallToolResult:
        try:
            at = shown.stack.enter_context(self._session.environment())
            caller = self._session.caller(at)
            wait_seconds = delivery.WAIT_SECONDS if marks else None
            shown.stack.enter_context(
                delivery.delivery_lock(at.store(), caller.reader, wait_seconds=wait_seconds)
            )
            reading, answer = show(at, caller)
            answer = tool_results.with_offer(answer, self._session.offer(at))
            shown.reading = reading if marks else None
            shown.stack.callback(self._mark, at, shown)
        except BaseException:
            shown.reading = None
            shown.stack.close()
            raise
        return answer

    def written(self, request: RequestId, good: bool) -> None:
        """Finish an answer; may be called in any thread.

        Args:
            request: The id of the request.
            good: Whether the answer was written completely.
        """
        if request in self._shown:
            self._session.worker.submit(partial(self._finish, request, good))

    def _finish(self, request: RequestId, good: bool) -> None:
        shown = self._shown.pop(request, None)
        if shown is None:
            return
        if not good:
            shown.reading = None
        try:
            shown.stack.close()
        finally:
            if shown.has_gate:
                self._loop.call_soon_threadsafe(self._gate.release)

    @staticmethod
    def _mark(at: CallEnvironment, shown: _PendingAnswer) -> None:
        """Mark the signals while the delivery lock is held. After an error they are shown again."""
        if shown.reading is None:
            return
        try:
            inbox.mark(at.store(), shown.reading)
        except Exception as error:
            known = failure.own_error_of(error)
            what = known.message if known is not None else failure.details(error, ["mcp", "inbox"])
            output.write_error(f"gitmem: cannot mark the displayed signals as delivered. {what}")

    async def _enter(self) -> bool:
        """Take the gate; return False if it is not free after `GATE_SECONDS`."""
        try:
            async with asyncio.timeout(GATE_SECONDS):
                return await self._gate.acquire()
        except TimeoutError:
            return False

    def close(self) -> None:
        """Finish all pending answers without marking their signals."""
        for request in list(self._shown):
            self.written(request, False)
