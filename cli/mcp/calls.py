"""Calls of tools: their caller and thread, the command of each, its answer or error as a result, and the signals delivered with it.

The environment identifies the caller, as for every command: GITMEM_SESSION, or the session id of a client. Most clients
set neither. A guess from the worktree could then read another agent's messages. Therefore the first call that acts
starts a session for the client, which ends with this server. The repository is opened anew for each call.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult

from gitmem.agents import caller as callers
from gitmem.agents import delivery, lifecycle, presence
from gitmem.errors import GitmemError, UsageError
from gitmem.outcome import Struct
from gitmem.signals import inbox

from .. import environment, failure
from ..environment import Environment, run_in
from ..render import output, repository, signals
from ..worker import Worker
from . import tool_results, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar, Unpack

    from mcp.server.mcpserver import Context
    from mcp_types import RequestId

    from gitmem.agents.caller import Caller, CallerClaims
    from gitmem.signals.inbox import InboxResult
    from gitmem.store import Store

    from ..render.output import Form

    Answer = TypeVar("Answer")
    Ctx = Context[Any, Any]
    Show = Callable[["CallEnvironment", Caller], tuple[InboxResult, CallToolResult]]


# Our names of clients, each a prefix of the name that the client gives.
CLIENTS = ("claude-code", "codex", "cursor", "gemini", "opencode", "cline", "copilot", "windsurf", "zed")
CLIENT_MAX = 40  # characters
STOP_SECONDS = 5.0


class CallEnvironment(Environment):
    """The environment of one call. The caller is never at a terminal, even if standard input is one.

    Args:
        mcp: The server's access to the log, which starts a session for the caller if it needs one.

    Attributes:
        own: The session that the server has started.
        said: The outcome of the command that runs, what renders it, and how.
    """

    def __init__(self, mcp: McpSession) -> None:
        super().__init__(mcp.directory, mcp.as_ or mcp.own, json=True)
        self.mcp = mcp
        self.own = mcp.own
        self._thread = threading.get_ident()
        self.said: tuple[Any, Callable[[Any], Sequence[str]], Form]
        self.allows_secret = self.calls_servers = False
        self.reads_signals = True  # nothing else syncs for the client

    def is_agent(self) -> bool:
        """Return True."""
        return True

    def who(self) -> CallerClaims:
        """Return everything that identifies the caller."""
        who = super().who()
        who.terminal = False
        if who.as_ is not None and who.as_ == self.own:
            who.session = self.own  # the session's own call
        return who

    def answer(self, outcome: Any, lines: Callable[[Any], Sequence[str]], **how: Unpack[Form]) -> bool:
        """Keep the outcome of the command."""
        self.said = outcome, lines, how
        return True

    def caller(self, *, dry_run: bool = False) -> Caller:
        """Return the caller, see `McpSession.caller`."""
        return self.mcp.caller(self)

    def identified(self) -> Caller:
        """Return the caller that the environment, an option or the server's own session identifies."""
        return super().caller()

    def caller_if_any(self) -> Caller | None:
        """Return the caller of a call that only reads, or None if it is not identified. No session is started."""
        return super().caller_if_any() if self.mcp.is_identified(self) else None

    def short_address(self, address: str) -> str:
        """Return how an address is shown; as it is once the store is closed, and to the thread of another call."""
        is_open = self._store is not None and threading.get_ident() == self._thread
        return super().short_address(address) if is_open else address

    def store(self, *, long_lived: bool = True) -> Store:
        """Return the store, which is opened once, for many reads and writes."""
        return super().store(long_lived=long_lived)


class McpSession:
    """The server's access to the log: its thread and its session.

    Args:
        directory: The value of -C.
        as_: The value of --as.
    """

    def __init__(self, directory: str | None, as_: str | None) -> None:
        self.directory = directory
        self.as_ = as_
        self.client: str | None = None
        self.own: str | None = None  # the session that was started here
        self._offers = False  # whether a session was started and no answer has offered it an identity yet
        self.worker = Worker("gitmem mcp session")

    async def run(self, job: Callable[[CallEnvironment], Answer]) -> Answer:
        """Run a job in the one thread that uses the store; return its result."""
        return await self.worker.run(lambda: self.do(job))

    def do(self, job: Callable[[CallEnvironment], Answer]) -> Answer:
        """Run a job in this thread, see `environment.run_in`; return its result."""
        return run_in(self.environment, job)

    def environment(self) -> CallEnvironment:
        """Return a new environment for one call."""
        return CallEnvironment(self)

    def set_client_name(self, name: str) -> None:
        """Note the client's name, as it gives it."""
        slug = "".join(char if char.isalnum() else "-" for char in name.lower() if char.isascii()).strip("-")
        self.client = next((each for each in CLIENTS if slug.startswith(each)), slug[:CLIENT_MAX]) or None

    def caller(self, at: CallEnvironment) -> Caller:
        """Return the caller.

        Start a session if the environment identifies none, or if the server's own session has ended.
        """
        if not self.is_identified(at):
            self._start(at)
        try:
            return at.identified()
        except UsageError as error:
            if self.own is None or error.code != "ended-session":
                raise
        self.own = None  # it was ended elsewhere
        return self._start(at)

    def is_identified(self, at: CallEnvironment) -> bool:
        """Return whether the server's own session, an option, a variable or a session of the client identifies the caller."""
        if self.own is not None:
            return True
        who = at.who()
        if who.as_ or who.session:
            return True
        return (
            who.client_session is not None
            and presence.of_client(at.store(), who.client_session[1]) is not None
        )

    def _start(self, at: CallEnvironment) -> Caller:
        """Start a session and return it as the caller.

        A session that has a client's id is found by that id from now on, and the client ends it.
        """
        at.as_ = self.as_
        at.store().snapshot = None  # it lacks the session that starts
        who = at.who()
        started = lifecycle.start(at.store(), who, client=self.client)
        self._offers = True
        if who.client_session is None:
            self.own = at.own = at.as_ = started.session_id
            output.set_options(self.directory, self.own)
        found = callers.find(at.store(), at.who())
        assert found is not None
        return found

    def offer(self, at: CallEnvironment) -> str:
        """Return the line that offers the identity of this worktree's last agent to a session that was started here.

        It is in one answer. Otherwise, and if the session has an identity meanwhile, return "".
        """
        if not self._offers:
            return ""
        self._offers = False
        caller = callers.find(at.store(), at.who(), must=False)
        return lifecycle.offer(at.store(), caller) if caller is not None else ""

    def forget(self, session_id: str) -> None:
        """Forget the server's own session if this ended one is it: the next call that acts starts another."""
        if session_id == self.own:
            self.own = None
            output.forget("--as")
            output.set_options(self.directory, self.as_)

    def close(self) -> None:
        """End the session that was started here, then the thread."""
        if self.own is not None:
            self.worker.submit(self._end)
        self.worker.stop(STOP_SECONDS)

    def _end(self) -> None:
        try:
            self.do(lambda at: lifecycle.end(at.store(), at.caller()))
        except (GitmemError, OSError) as error:
            output.write_error(f"gitmem: cannot end session {self.own} ({error}).")


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
