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
        session: Runs the jobs of calls in its thread.
        delivery: Delivers signals and marks them.
    """

    def __init__(self, session: McpSession, delivery: SignalDelivery) -> None:
        self._session = session
        self._delivery = delivery

    async def _do(
        self, ctx: Ctx, tool: str, job: Callable[[CallEnvironment], CallToolResult]
    ) -> CallToolResult:
        """Run a job in the session's thread, after pending answers were marked. An error becomes the result."""
        self._note_client(ctx)
        try:
            await self._delivery.settled()
            return await self._session.run(job)
        except Exception as error:
            return tool_results.of_error(error, tool)

    def _note_client(self, ctx: Ctx) -> None:
        """Note the name that the client gave in its `initialize` request."""
        params = ctx.request_context.session.client_params
        if params is not None:
            self._session.known_as(params.client_info.name)
