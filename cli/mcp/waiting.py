"""The tools that wait: for others to agree, and for remotes. They tell the client that they still do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ..render import mail, upkeep
from . import answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.mcpserver import Context
    from mcp_types import CallToolResult

    from gitmem.operations.threads import Converged

    from .desk import Desk, Here
    from .worker import Worker

LOOK_SECONDS = 0.5
TELL_SECONDS = 1.0


async def converged(
    desk: Desk, ctx: Context[Any, Any], id: str, *, strict: bool, seconds: float
) -> CallToolResult:
    """Whether a thread has converged, looked at again until it has, nobody is left to wait for, or time is up."""

    def job(at: Here) -> Converged:
        from gitmem.operations import threads

        return threads.converged(at.store(), id, strict=strict, caller=desk.reader(at))

    began = time.monotonic()
    while True:
        found = await desk.run(job)
        waited = time.monotonic() - began
        if found.converged or not found.pending or waited >= seconds:
            return answers.of(found, mail.converged(found), peers=False)
        await ctx.report_progress(waited, seconds, f"{len(found.agreed)} of {len(found.recipients)} agreed")
        await asyncio.sleep(min(LOOK_SECONDS, seconds - waited))


async def sync(desk: Desk, network: Worker, ctx: Context[Any, Any], remotes: Sequence[str]) -> CallToolResult:
    """Exchange with configured remotes, without agreeing to publish. Who cancels stops waiting; the exchange comes to its end all the same."""

    def job() -> CallToolResult:
        from gitmem.operations import agreement
        from gitmem.operations import sync as operation

        with desk.here() as at:
            synced = operation.sync(at.store(), remotes, configured_only=True)
            agreement.ask_user(synced)
            return answers.of(synced, upkeep.sync(synced), peers=any(each.records for each in synced.remotes))

    what = f"exchanging with {'the named remotes' if remotes else 'the usual remote'}"  # a url may hold a password
    began = time.monotonic()
    await ctx.report_progress(0, None, what)
    running = asyncio.wrap_future(network.submit(job))
    while not (await asyncio.wait({running}, timeout=TELL_SECONDS))[0]:
        await ctx.report_progress(time.monotonic() - began, None, what)
    await ctx.report_progress(time.monotonic() - began, None, "done")
    return running.result()
