"""The base class of tools and resources: the environment of a call, and errors as results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import BeforeValidator, Field

from .. import shared_options as shared
from . import tool_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import SignalDelivery
    from .mcp_session import CallEnvironment, McpSession


def _listed(value: Any) -> Any:
    """Return a single name as a list: models often forget the brackets."""
    return [value] if isinstance(value, str) else value


Ctx = Context[Any, Any]
Words = Annotated[list[str], BeforeValidator(_listed), Field(default_factory=list)]
Wu = Annotated[str, Field(description=shared.WU.help)]


class ToolCalls:
    """Base of the tools. An empty text counts as not given: models like to fill every field.

    Args:
        desk: Runs the jobs of calls in its thread.
        handing: Delivers signals and marks them.
    """

    def __init__(self, desk: McpSession, handing: SignalDelivery) -> None:
        self._desk = desk
        self._handing = handing

    async def _do(
        self, ctx: Ctx, tool: str, job: Callable[[CallEnvironment], CallToolResult]
    ) -> CallToolResult:
        """Run a job in the session's thread, after pending answers were marked. An error becomes the result."""
        self._meet(ctx)
        try:
            await self._handing.settled()
            return await self._desk.run(job)
        except Exception as error:
            return tool_results.of_error(error, tool)

    def _meet(self, ctx: Ctx) -> None:
        """Note the name that the client gave in its `initialize` request."""
        params = ctx.request_context.session.client_params
        if params is not None:
            self._desk.known_as(params.client_info.name)
