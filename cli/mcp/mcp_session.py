"""The caller and the thread of all tools; the repository is opened anew for each call.

The environment identifies the caller, as for every command: GITMEM_SESSION, or the session id of a client. Most clients
set neither. A guess from the worktree could then read another agent's messages. Therefore the first call that acts
starts a session for the client, which ends with this server.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from gitmem.agents import caller as callers
from gitmem.agents import lifecycle, presence
from gitmem.errors import GitmemError, UsageError

from ..environment import Environment, run_in
from ..render import output
from ..worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar, Unpack

    from gitmem.agents.caller import Caller, CallerClaims
    from gitmem.store import Store

    from ..render.output import Form

    Answer = TypeVar("Answer")

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
            output.forget_caller()
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
