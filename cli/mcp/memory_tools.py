"""The tools of the memory. Their docstrings are the descriptions that models read."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from .. import shared_options as shared
from ..render import memory
from . import tool_results
from .calls import Ctx, ToolCalls, Words
from .mcp_session import CallEnvironment

Files = Annotated[Words, Field(description=shared.PATHS.help)]
Wu = Annotated[str, Field(description=shared.NODE_WU.help)]  # `session` and `signal` say what it may be


class MemoryTools(ToolCalls):
    """Tools that write and find nodes."""

    async def mem_create(
        self,
        ctx: Ctx,
        content: str,
        tags: Words,
        paths: Files,
        type: Annotated[str, Field(description=shared.NODE_TYPE.help)] = shared.NODE_TYPE.default,
        wu: Wu = "",
        priority: Annotated[str, Field(description=shared.PRIORITY.help)] = "",
        lifecycle: Annotated[str, Field(description=shared.NEW_LIFECYCLE.help)] = "",
        supersedes: Annotated[str, Field(description=shared.SUPERSEDES.help)] = "",
    ) -> CallToolResult:
        """Record a finding, bug or decision for later agents.
        With `paths`, the node is shown as stale when these files change."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import edit as operation

            created = operation.create(
                at.store(), self._session.caller(at), content, type=type or None, wu=wu or None, tags=tags,
                paths=at.paths(paths), priority=priority or None, lifecycle=lifecycle or None,
                supersedes=supersedes,
            )  # fmt: skip
            return tool_results.of(created, memory.created(created))

        return await self._do(ctx, "mem_create", job)

    async def mem_search(
        self,
        ctx: Ctx,
        query: str,
        tags: Words,
        wu: Annotated[str, Field(description=shared.ONLY_WU.help)] = "",
        limit: Annotated[
            int, Field(ge=1, le=shared.SEARCH_LIMIT.tool_most)
        ] = shared.SEARCH_LIMIT.tool_default,
    ) -> CallToolResult:
        """Search the memory, best match first, before you decide or repeat work. Double quotes make a phrase."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import search

            found = search.search(
                at.store(), query, wu=wu or None, tags=tags, limit=limit,
                private_of=lambda: self._session.reader(at),
            )  # fmt: skip
            return tool_results.of(found, memory.matching(found), peers=bool(found.hits))

        return await self._do(ctx, "mem_search", job)

    async def mem_context(
        self,
        ctx: Ctx,
        wu: str = "",
        max_size: Annotated[int, Field(ge=512, le=shared.MAX_SIZE.tool_most)] = shared.MAX_SIZE.tool_default,
    ) -> CallToolResult:
        """Return the memory nodes for a work unit, within `max_size` bytes. Call it before you start on one."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import context as operation

            found = operation.context(at.store(), self._session.reader(at), wu=wu or None, max_size=max_size)
            return tool_results.of(
                found, [found.block or tool_results.NOTHING], peers=bool(found.block), most=None
            )

        return await self._do(ctx, "mem_context", job)

    async def mem_recover(self, ctx: Ctx, wu: str = "") -> CallToolResult:
        """Return what you need after a compaction or restart: identity, last checkpoint, changes since then, context."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import recover

            found = recover.recover(at.store(), self._session.caller(at), wu=wu or None)
            return tool_results.of(found, memory.block(found), peers=True, most=None)

        return await self._do(ctx, "mem_recover", job)

    async def mem_checkpoint(
        self,
        ctx: Ctx,
        note: str,
        next_steps: str = "",
        progress: str = "",
        wu: str = "",
        metadata: dict[str, Any] | None = None,
        done: Annotated[bool, Field(description=shared.DONE.help)] = False,
    ) -> CallToolResult:
        """Record the state of the work for mem_recover, before a pause, hand-over or compaction."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import checkpoints as operation

            created = operation.checkpoint(
                at.store(), self._session.caller(at), note, progress=progress or None,
                next_steps=next_steps or None, wu=wu or None, metadata=metadata, done=done,
            )  # fmt: skip
            return tool_results.of(created, memory.checkpointed(created))

        return await self._do(ctx, "mem_checkpoint", job)

    async def mem_ready(
        self,
        ctx: Ctx,
        wu: Wu = "",
        limit: Annotated[int, Field(ge=1, le=shared.READY_LIMIT.tool_most)] = shared.READY_LIMIT.tool_default,
    ) -> CallToolResult:
        """List the nodes of a work unit that are ready, what blocks the others, and the tasks that you may take."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.tasks import ready_tasks

            found = ready_tasks.ready_work(at.store(), self._session.reader(at), wu or None, limit=limit)
            return tool_results.of(found, memory.ready(found), peers=True)

        return await self._do(ctx, "mem_ready", job)
