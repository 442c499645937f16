"""Calls of tools: the command of each, its answer or error as a result, and the signals delivered with it."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult

from gitmem.agents import delivery
from gitmem.outcome import Struct
from gitmem.signals import inbox

from .. import environment, failure
from ..render import output, repository, signals
from ..worker import Worker
from . import tool_results, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp.server.mcpserver import Context
    from mcp_types import RequestId

    from gitmem.agents.caller import Caller
    from gitmem.signals.inbox import InboxResult

    from .mcp_session import CallEnvironment, McpSession

    Ctx = Context[Any, Any]
    Show = Callable[[CallEnvironment, Caller], tuple[InboxResult, CallToolResult]]


INBOX_BYTES = 8 * 1024  # below clients' limits: signals beyond them would be marked but never shown
POLL_SECONDS = 1.0  # between reports of progress
# The commands that wait for others; the last two for the servers of tasks.
SLOW = ("call", "converged", "task message", "task cancel")


class ToolCalls(Struct):
    """Runs the calls of tools.

    Attributes:
        session: Runs the jobs of calls in its thread.
        delivery: Delivers signals and marks them.
        network: The thread that waits for remotes, so that no other call has to.
        served: The names of the tools.
    """

    _session: McpSession
    _delivery: SignalDelivery
    _network: Worker
    served: Sequence[str]

    async def __call__(self, ctx: Ctx, tool: str, given: Mapping[str, Any]) -> CallToolResult:
        """Answer a call, after pending answers were marked. An error becomes the result.

        Args:
            tool: The name of the tool.
            given: The arguments that are not empty.
        """
        self._note_client(ctx)
        try:
            path, values = tools.command_of(tool, given)
            if tool == "inbox":
                return await self._inbox(ctx, values)
            await self._delivery.wait_until_marked()
            if tool == "sync":
                return await self._sync(ctx, **values)
            if path in SLOW:
                return await self._slowly(ctx, path, values)
            return await self._session.run(lambda at: self._answer(at, self._run(at, path, values)))
        except Exception as error:
            return tool_results.of_error(error, tool, self.served)

    def _run(self, at: CallEnvironment, path: str, values: Mapping[str, Any]) -> CallToolResult:
        """Run a command, and return its answer as the result of a tool."""
        tools.body_of(path)(at, **values)
        found, lines, how = at.said
        text_next = how.get("text_next")
        text = lines(found)
        quotes = any(not name or getattr(found, name, None) for name in tools.QUOTES.get(path, ()))
        answer = tool_results.of(
            found, text if any(text) else [tool_results.NOTHING], peers=quotes, is_framed=path in tools.FRAMED,
            text_next=text_next(found) if text_next else None, whole=tools.typed(path, values) if path in tools.READS else "",
            most=None if path in tools.LIMITED else tool_results.TEXT_BYTES,
        )  # fmt: skip
        if path == "session end":
            self._session.forget(found.session_id)
        return answer

    async def _slowly(self, ctx: Ctx, path: str, values: Mapping[str, Any]) -> CallToolResult:
        """Run a command that waits for others in a thread of its own, and report progress meanwhile; a cancelled call ends it."""
        stop = threading.Event()
        if path not in tools.READS:
            await self._session.run(self._session.caller)  # begins a session in its own thread

        def job() -> CallToolResult:
            with self._session.environment() as at:
                at.stop = stop
                return self._run(at, path, values)

        worker = Worker(f"gitmem mcp {path}")
        try:
            answer = await self._wait(ctx, worker, job, "waiting")
        finally:
            stop.set()
            worker.stop(0)
        return await self._session.run(lambda at: self._answer(at, answer))

    async def _sync(self, ctx: Ctx, remotes: Sequence[str] = ()) -> CallToolResult:
        """Sync with configured remotes, without consenting to publish.

        A cancelled call stops waiting; the sync itself continues to its end.
        """

        def job() -> CallToolResult:
            from gitmem.sync import sync_remotes as operation

            with self._session.environment() as at:
                synced = operation.sync(at.store(), remotes, configured_only=True)
                operation.reword_for_agent(synced)
                received = any(each.records for each in synced.remotes)
                answer = tool_results.of(
                    synced, repository.sync(synced), peers=received, whole="gitmem doctor"
                )
                return tool_results.with_addresses(at, tool_results.with_notice(at, answer))

        what = f"syncing with {'the named remotes' if remotes else 'the default remote'}"  # a URL may contain a password
        return await self._wait(ctx, self._network, job, what)

    async def _wait(
        self, ctx: Ctx, worker: Worker, job: Callable[[], CallToolResult], what: str
    ) -> CallToolResult:
        """Return the result of a job in another thread; report progress until it has one."""
        began = time.monotonic()
        running = asyncio.wrap_future(worker.submit(job))
        await ctx.report_progress(0, None, what)
        while not (await asyncio.wait({running}, timeout=POLL_SECONDS))[0]:
            await ctx.report_progress(time.monotonic() - began, None, what)
        await ctx.report_progress(time.monotonic() - began, None, "done")
        return running.result()

    async def _inbox(self, ctx: Ctx, values: Mapping[str, Any]) -> CallToolResult:
        """Show signals, and mark them once the answer is written."""
        options = dict(values)
        keeps = options.pop("no_mark", False)

        def show(at: CallEnvironment, caller: Caller) -> tuple[InboxResult, CallToolResult]:
            found = inbox.read(at.store(), caller, max_bytes=INBOX_BYTES, via=output.program(), **options)
            if not options:
                found.add_work(at.store(), caller)
            if found.more:
                found.next.insert(0, "gitmem inbox")
            answer = tool_results.of(
                found, signals.inbox(found), peers=bool(found.signals), stamped=True, text_next=signals.inbox_next(found),
                most=None,
            )  # fmt: skip
            return found, answer

        request = ctx.request_context.request_id
        assert request is not None  # only notifications have none
        return await self._delivery.show(request, show, marks=not keeps)

    def _answer(self, at: CallEnvironment, answer: CallToolResult) -> CallToolResult:
        answer = tool_results.with_notice(at, answer)
        environment.note_commits(at)
        answer = tool_results.with_offer(answer, self._session.offer(at))
        return tool_results.with_addresses(at, answer)

    async def add_notice(self, result: CallToolResult) -> CallToolResult:
        """Return an error with the notice of unread signals, if there are any and the repository can be read."""
        try:
            return await self._session.run(
                lambda at: tool_results.with_addresses(at, tool_results.with_notice(at, result))
            )
        except Exception:
            return result

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
            answer = tool_results.with_addresses(at, answer)
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
