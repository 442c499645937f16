"""The MCP tool `call`: call agents and wait for their results, while other tools go on."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from ..render import tasks as render
from ..values import own_task
from . import tool_results
from .calls import Ctx, Name, ToolCalls

if TYPE_CHECKING:
    from gitmem.invocation.call_result import CallResult
    from gitmem.invocation.call_tasks import CallOptions

    from .mcp_session import CallEnvironment

WAIT_SECONDS = 45  # below the limit of clients, of which some end a request after a minute
POLL_SECONDS = 0.1
PROGRESS_SECONDS = 1.0


class CallTools(ToolCalls):
    """The tool for calls."""

    async def call(
        self,
        ctx: Ctx,
        agent: Name,
        message: str,
        with_context: bool = False,
        with_memory: bool = False,
        memory_query: str = "",
        idempotency_key: str = "",
        join: Literal["all", "any"] = "all",
        once: bool = False,
        wait_seconds: Annotated[int, Field(ge=0, le=600)] = WAIT_SECONDS,
    ) -> CallToolResult:
        """Call agents (names, with commas) when you need their answer, or any one's (join), to go on. with_context hands over your decisions and notes,
        with_memory the nodes of your work unit. once: begins at most once. After wait_seconds the task goes on; with 0 a signal tells the result."""

        def begin(at: CallEnvironment) -> CallResult:
            from gitmem.invocation import call as calls

            options: CallOptions = {
                "wait": wait_seconds > 0, "within": own_task(), "context": with_context, "memory": memory_query or with_memory,
                "idempotency_key": idempotency_key or None, "timeout": wait_seconds, "join": join, "once": once,
            }  # fmt: skip
            return calls.begin(at.store(), self._session.caller(at), agent, message, options)

        self._note_client(ctx)
        try:
            await self._delivery.wait_until_marked()
            found = await self._session.run(begin)
            if wait_seconds:
                found = await self._wait(ctx, found, wait_seconds)
            peers = any(each.message or each.error for each in found.results)
            answer = tool_results.of(found, render.call_result(found), peers=peers, is_framed=True)
            return await self._session.run(partial(tool_results.with_notice, answer=answer))
        except Exception as error:
            return tool_results.of_error(error, "call")

    async def _wait(self, ctx: Ctx, begun: CallResult, seconds: int) -> CallResult:
        """Return the results of tasks, or after some time what there is of them; report progress meanwhile."""
        from gitmem.invocation import call as calls

        ids = [each.task_id for each in begun.results]

        def look(at: CallEnvironment) -> CallResult:
            return calls.wait(at.store(), self._session.caller(at), ids, join=begun.join, timeout=0)

        began = reported = time.monotonic()
        while True:
            found = await self._session.run(look)
            waited = time.monotonic() - began
            if not found.timed_out or waited >= seconds:
                found.transfer = begun.transfer
                return found
            if time.monotonic() - reported >= PROGRESS_SECONDS:
                reported = time.monotonic()
                await ctx.report_progress(waited, seconds, f"{found.completed} of {len(ids)} completed")
            await asyncio.sleep(min(POLL_SECONDS, seconds - waited))
