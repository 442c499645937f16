"""The resources: a thread, and the context of a work unit. Reading them marks nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ResourceError

from .. import shared_options as shared
from ..render import signals
from . import tool_results
from .calls import ToolCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import MCPServer

    from .mcp_session import CallEnvironment


class Resources(ToolCalls):
    """Texts that a client may give its model without a tool call."""

    def add_to(self, server: MCPServer) -> None:
        """Register the resources."""
        add = server.resource
        add("gitmem://thread/{id}", description="A thread, by its id or the id of a signal in it.")(
            self.thread
        )
        add("gitmem://context", description="Memory nodes for your work unit.")(self.own_context)
        add("gitmem://context/{wu}", description="Memory nodes for a work unit.")(self.context)

    async def thread(self, id: str) -> str:
        """Return a thread by its id, or by the id of a signal in it."""

        def job(at: CallEnvironment) -> str:
            from gitmem.signals import threads

            most = shared.THREAD_LIMIT.tool_most
            found = threads.thread(at.store(), id, self._session.reader(at), limit=most)
            lines = signals.thread(found, tool_results.RECIPIENTS)
            return tool_results.cut_text([tool_results.PEERS, *lines])

        return await self._read(job)

    async def own_context(self) -> str:
        """Return the context of the caller's work unit."""
        return await self._context(None)

    async def context(self, wu: str) -> str:
        """Return the context of a work unit."""
        return await self._context(wu)

    async def _context(self, wu: str | None) -> str:
        def job(at: CallEnvironment) -> str:
            from gitmem.memory import context

            found = context.context(at.store(), self._session.reader(at), wu=wu)
            return "\n".join([tool_results.PEERS, found.block]) if found.block else tool_results.NOTHING

        return await self._read(job)

    async def _read(self, job: Callable[[CallEnvironment], str]) -> str:
        try:
            await self._delivery.wait_until_marked()
            return await self._session.run(job)
        except Exception as error:
            raise ResourceError(tool_results.sentences(error, "resource")) from None
