"""The base class of tools and resources: the environment of a call, errors as results, and the signals delivered with them."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import BeforeValidator, Field

from gitmem.agents import delivery
from gitmem.outcome import Struct
from gitmem.signals import inbox, signal_options

from .. import environment, failure
from .. import shared_options as shared
from ..render import output
from . import tool_results

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from mcp_types import RequestId

    from gitmem.agents.caller import Caller
    from gitmem.signals.inbox import InboxResult
    from gitmem.store import Store

    from .mcp_session import CallEnvironment, McpSession

    Method = TypeVar("Method", bound=Callable[..., Any])
    Show = Callable[[CallEnvironment, Caller], tuple[InboxResult, CallToolResult]]


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


class ToolCalls(Struct):
    """Base of the tools. An empty text counts as not given: models like to fill every field.

    Attributes:
        session: Runs the jobs of calls in its thread.
        delivery: Delivers signals and marks them.
    """

    _session: McpSession
    _delivery: SignalDelivery

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

    def tool(self, job: Callable[..., CallToolResult]) -> Callable[..., Awaitable[CallToolResult]]:
        """Return the tool that runs a method as a job, see `_do`: it takes the SDK's context in the place of the environment."""

        async def call(ctx: Ctx, *given: Any, **named: Any) -> CallToolResult:
            return await self._do(ctx, job.__name__, lambda at: job(at, *given, **named))

        signature = inspect.signature(job, eval_str=True)
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Ctx)
        parameters = [context, *list(signature.parameters.values())[1:]]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # the SDK reads it
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        call.__name__, call.__doc__ = job.__name__, job.__doc__
        return call

    def _answer(
        self, at: CallEnvironment, job: Callable[[CallEnvironment], CallToolResult]
    ) -> CallToolResult:
        answer = tool_results.with_notice(at, job(at))
        environment.note_commits(at)
        return tool_results.with_offer(answer, self._session.offer(at))

    async def add_notice(self, result: CallToolResult) -> CallToolResult:
        """Return an error with the notice of unread signals, if there are any and the repository can be read."""
        try:
            return await self._session.run(lambda at: tool_results.with_notice(at, result))
        except Exception:
            return result

    def _memory(self, at: CallEnvironment) -> Store:
        """Return the store as the session sees it, with its private nodes."""
        from gitmem.memory import reader_store

        return reader_store.for_reader(at.store(), lambda: self._session.reader(at))

    def _note_client(self, ctx: Ctx) -> None:
        """Note the name that the client gave in its `initialize` request."""
        params = ctx.request_context.session.client_params
        if params is not None:
            self._session.set_client_name(params.client_info.name)


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
