"""Tools that wait: for an agreement, and for remotes. They report progress."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from gitmem.text.shell_quote import command

from ..render import signals, upkeep
from . import tool_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_types import CallToolResult

    from gitmem.signals.threads import Converged

    from ..worker import Worker
    from .calls import Ctx
    from .mcp_session import CallEnvironment, McpSession

POLL_SECONDS = 0.5
PROGRESS_SECONDS = 1.0


async def wait_for(session: McpSession, ctx: Ctx, id: str, *, seconds: float) -> CallToolResult:
    """Return whether a thread has converged.

    Check again until it has, no decision is pending, or the time is up.

    Args:
        session: Runs the checks.
        ctx: Gets the progress.
        id: The proposal, or the thread.
        seconds: How long to wait at most.
    """

    def job(at: CallEnvironment) -> Converged:
        from gitmem.signals import threads

        return threads.converged(at.store(), id, caller=session.reader(at))

    began = time.monotonic()
    while True:
        found = await session.run(job)
        waited = time.monotonic() - began
        if found.is_settled or not found.pending or waited >= seconds:
            whole = command("gitmem", "converged", found.thread_id)
            answer = tool_results.of(
                found,
                signals.converged(found, tool_results.RECIPIENTS),
                whole=whole,
                is_part=len(found.recipients) > tool_results.RECIPIENTS,
            )
            return await session.run(partial(tool_results.with_notice, answer=answer))
        await ctx.report_progress(waited, seconds, f"{len(found.agreed)} of {len(found.recipients)} agreed")
        await asyncio.sleep(min(POLL_SECONDS, seconds - waited))


async def exchange(session: McpSession, network: Worker, ctx: Ctx, remotes: Sequence[str]) -> CallToolResult:
    """Sync with configured remotes, without consenting to publish.

    A cancelled call stops waiting; the sync itself continues to its end.
    """

    def job() -> CallToolResult:
        from gitmem.sync import consent_messages
        from gitmem.sync import sync_remotes as operation

        with session.environment() as at:
            synced = operation.sync(at.store(), remotes, configured_only=True)
            consent_messages.reword_for_agent(synced)
            answer = tool_results.of(
                synced,
                upkeep.sync(synced),
                peers=any(each.records for each in synced.remotes),
                whole="gitmem doctor",
            )
            return tool_results.with_notice(at, answer)

    what = f"syncing with {'the named remotes' if remotes else 'the default remote'}"  # a URL may contain a password
    began = time.monotonic()
    await ctx.report_progress(0, None, what)
    running = asyncio.wrap_future(network.submit(job))
    while not (await asyncio.wait({running}, timeout=PROGRESS_SECONDS))[0]:
        await ctx.report_progress(time.monotonic() - began, None, what)
    await ctx.report_progress(time.monotonic() - began, None, "done")
    return running.result()
