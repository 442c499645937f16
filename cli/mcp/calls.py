"""The base class of tools and resources: the environment of a call, and errors as results."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import BeforeValidator, Field

from gitmem.signals import signal_options

from .. import after_command
from .. import shared_options as shared
from . import tool_results

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from .delivery import SignalDelivery
    from .mcp_session import CallEnvironment, McpSession

    Method = TypeVar("Method", bound=Callable[..., Any])


def _listed(value: Any) -> Any:
    """Return a single name as a list: models often forget the brackets."""
    return [value] if isinstance(value, str) else value


def _single(value: Any) -> Any:
    """Return the name of a list of one: models give it as the recipients of a signal."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _upper(value: Any) -> Any:
    """Return a text in upper case, as the values of these options are."""
    return value.upper() if isinstance(value, str) else value


Ctx = Context[Any, Any]
Words = Annotated[list[str], BeforeValidator(_listed), Field(default_factory=list)]
Name = Annotated[str, BeforeValidator(_single)]
Wu = str  # what it may be, `session` and `signal` say: 40 bytes in each tool


def with_signal_options(method: Method) -> Method:
    """Give a tool the parameters of `shared_options.TOOL_SIGNAL_OPTIONS` in the place of its `**options`."""
    signature = inspect.signature(method, eval_str=True)
    *first, _ = signature.parameters.values()
    parameters = [*first, *map(_parameter, shared.TOOL_SIGNAL_OPTIONS)]
    method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # the SDK reads it
    method.__annotations__ = {each.name: each.annotation for each in parameters[1:]}
    return method


def _parameter(name: str) -> inspect.Parameter:
    """Return an option of signals as a parameter of a tool."""
    option, type = shared.SIGNAL_OPTIONS[name], signal_options.TYPES[name]
    described = Field(description=option.help)
    annotation: Any
    default: Any = ""
    if option.values:
        annotation, default = Annotated[Literal[option.values], BeforeValidator(_upper)], option.default
    elif type is bool:
        annotation, default = Annotated[bool, described], False
    elif type == str | None:
        annotation = Annotated[str, described]
    else:
        annotation, default = Annotated[Words, described], inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


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
            await self._delivery.wait_until_marked()
            return await self._session.run(lambda at: self._answer(at, job))
        except Exception as error:
            return tool_results.of_error(error, tool)

    def _answer(
        self, at: CallEnvironment, job: Callable[[CallEnvironment], CallToolResult]
    ) -> CallToolResult:
        answer = tool_results.with_notice(at, job(at))
        after_command.note_commits(at)
        return tool_results.with_offer(answer, self._session.offer(at))

    async def add_notice(self, result: CallToolResult) -> CallToolResult:
        """Return an error with the notice of unread signals, if there are any and the repository can be read."""
        try:
            return await self._session.run(lambda at: tool_results.with_notice(at, result))
        except Exception:
            return result

    def _note_client(self, ctx: Ctx) -> None:
        """Note the name that the client gave in its `initialize` request."""
        params = ctx.request_context.session.client_params
        if params is not None:
            self._session.set_client_name(params.client_info.name)
