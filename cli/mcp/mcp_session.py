"""Where the tools work: one thread, a fresh look at the repository for each call, and the one who acts.

Who acts is what the environment says, as for every command: GITMEM_SESSION, or the session id of a harness.
Most clients say nothing. A guess from the worktree would then read somebody else's mail, so the first call that
acts starts a session for the client, which ends with this server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitmem.agents import caller as callers
from gitmem.agents import own_sessions
from gitmem.errors import GitmemError, UsageError
from gitmem.sessions import lifecycle

from ..environment import Environment, run_in
from ..render import output
from .worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from gitmem.agents.caller import Caller, CallerClaims
    from gitmem.store import Store

    Answer = TypeVar("Answer")

# How clients are called here, by the beginning of what they call themselves.
CLIENTS = ("claude-code", "codex", "cursor", "gemini", "opencode", "cline", "copilot", "windsurf", "zed")
CLIENT_MAX = 40  # characters
STOP_SECONDS = 5.0


class CallEnvironment(Environment):
    """The surroundings of one call. Nobody sits at a terminal, whatever the pipes are.

    Args:
        own: The session that the server has started.
    """

    def __init__(self, directory: str | None, as_: str | None, own: str | None = None) -> None:
        super().__init__(directory, as_ or own, json=True)
        self.own = own
        self.looks = True  # the client has nothing else that would

    def who(self) -> CallerClaims:
        who = super().who()
        who.terminal = False
        if who.as_ is not None and who.as_ == self.own:
            who.session = self.own  # it acts as itself
        return who

    def store(self, *, long_lived: bool = True) -> Store:
        return super().store(long_lived=long_lived)


class McpSession:
    """One server's way to the log.

    Args:
        directory: The value of -C.
        as_: The value of --as.
    """

    def __init__(self, directory: str | None, as_: str | None) -> None:
        self.directory = directory
        self.as_ = as_
        self.client: str | None = None
        self.own: str | None = None  # the session that was started here
        self.worker = Worker("gitmem mcp desk")

    async def run(self, job: Callable[[CallEnvironment], Answer]) -> Answer:
        """What a job gives, in the one thread that has the store."""
        return await self.worker.run(lambda: self.do(job))

    def do(self, job: Callable[[CallEnvironment], Answer]) -> Answer:
        return run_in(self.here, job)

    def here(self) -> CallEnvironment:
        return CallEnvironment(self.directory, self.as_, self.own)

    def known_as(self, name: str) -> None:
        """Remember what the client calls itself."""
        slug = "".join(char if char.isalnum() else "-" for char in name.lower() if char.isascii()).strip("-")
        self.client = next((each for each in CLIENTS if slug.startswith(each)), slug[:CLIENT_MAX]) or None

    def caller(self, at: CallEnvironment) -> Caller:
        """Who acts; a session is started where nothing says so."""
        if self.own is None and not self._is_identified(at):
            self._start(at)
        try:
            return at.caller()
        except UsageError as error:
            if self.own is None or error.code != "ended-session":
                raise
        self.own = None  # somebody ended it
        return self._start(at)

    def reader(self, at: CallEnvironment) -> Caller | None:
        """Who looks, where that is clear; nothing is started for a look."""
        return at.caller_if_any() if self.own is not None or self._is_identified(at) else None

    def _is_identified(self, at: CallEnvironment) -> bool:
        who = at.who()
        if who.as_ or who.session:
            return True
        return (
            who.client_session is not None
            and own_sessions.of_client(at.store(), who.client_session[1]) is not None
        )

    def _start(self, at: CallEnvironment) -> Caller:
        """Start a session. One of a harness is found by its id from now on, and is the harness's to end."""
        at.as_ = self.as_
        at.store().snapshot = None  # it lacks the session that starts
        who = at.who()
        started = lifecycle.start(at.store(), who, client=self.client)
        if who.client_session is None:
            self.own = at.own = at.as_ = started.session_id
            output.set_options(self.directory, self.own)
        found = callers.find(at.store(), at.who())
        assert found is not None
        return found

    def close(self) -> None:
        """End the session that was started here, and let the thread end."""
        if self.own is not None:
            self.worker.submit(self._end)
        self.worker.stop(STOP_SECONDS)

    def _end(self) -> None:
        try:
            self.do(lambda at: lifecycle.end(at.store(), at.caller()))
        except (GitmemError, OSError) as error:
            output.write_error(f"gitmem: cannot end session {self.own} ({error}).")
