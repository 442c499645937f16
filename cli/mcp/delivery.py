"""Handing signals to the client, and marking them as delivered once they were handed over.

What was marked and never shown is lost, so the mark waits for the pipe: an answer counts as handed over when
all its bytes were taken from us. Until then the turn is ours, so that a hook that runs meanwhile shows nothing
twice, and every other call waits. An answer that was cancelled, or that could not be written, marks nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from gitmem.mailbox import delivery_lock
from gitmem.signals import inbox

from .. import failure
from ..render import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_types import CallToolResult, RequestId

    from gitmem.agents.caller import Caller
    from gitmem.signals.inbox import InboxResult

    from .mcp_session import CallEnvironment, McpSession

    Show = Callable[[CallEnvironment, Caller], tuple[InboxResult, CallToolResult]]

GATE_SECONDS = 10.0  # so long an answer may take to be written before other calls go on


class _PendingAnswer:
    """An answer on its way: what it shows, and what to leave when it has gone."""

    __slots__ = ("has_gate", "reading", "stack")

    def __init__(self, has_gate: bool) -> None:
        self.has_gate = has_gate
        self.reading: InboxResult | None = None
        self.stack = ExitStack()


class SignalDelivery:
    """The one way by which signals reach the client."""

    def __init__(self, desk: McpSession) -> None:
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._gate = asyncio.Lock()
        self._shown: dict[RequestId, _PendingAnswer] = {}

    async def settled(self) -> None:
        """Wait until what was shown is marked: who answers it has seen it."""
        if await self._enter():
            self._gate.release()

    async def show(self, request: RequestId, show: Show, *, marks: bool = True) -> CallToolResult:
        """Answer a request with signals.

        Args:
            request: Its id; `written` is told what became of the answer.
            show: Runs in the desk's thread: what was read, and the answer.
            marks: Whether it counts as delivered once it was handed over.
        """
        shown = _PendingAnswer(await self._enter())
        self._shown[request] = shown
        return await self._desk.worker.run(partial(self._show, shown, show, marks))

    def _show(self, shown: _PendingAnswer, show: Show, marks: bool) -> CallToolResult:
        try:
            at = shown.stack.enter_context(self._desk.here())
            caller = self._desk.caller(at)
            patience = delivery_lock.WAIT_SECONDS if marks else None
            shown.stack.enter_context(
                delivery_lock.delivery_lock(at.store(), caller.reader, wait_seconds=patience)
            )
            reading, answer = show(at, caller)
            shown.reading = reading if marks else None
            shown.stack.callback(self._mark, at, shown)
        except BaseException:
            shown.reading = None
            shown.stack.close()
            raise
        return answer

    def written(self, request: RequestId, good: bool) -> None:
        """What became of an answer: `good` where all of it was written. Any thread may say so."""
        if request in self._shown:
            self._desk.worker.submit(partial(self._finish, request, good))

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
        """Inside of the turn. What can't be recorded is shown again."""
        if shown.reading is None:
            return
        try:
            inbox.mark(at.store(), shown.reading)
        except Exception as error:
            known = failure.own_error_of(error)
            what = known.message if known is not None else failure.details(error, ["mcp", "inbox"])
            output.write_error(f"gitmem: cannot mark the displayed signals as delivered. {what}")

    async def _enter(self) -> bool:
        try:
            async with asyncio.timeout(GATE_SECONDS):
                return await self._gate.acquire()
        except TimeoutError:
            return False

    def close(self) -> None:
        """What was not written by now is not marked."""
        for request in list(self._shown):
            self.written(request, False)
