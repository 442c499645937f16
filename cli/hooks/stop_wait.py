"""Wake an idle agent: a background hook sleeps until a signal for the agent arrives.

It ends with status 2 and the message on standard error: that wakes the model of Claude Code (`asyncRewake`). Each
session has one sleeper: the newest replaces the others. The sleeper also ends with the session, with its client, at the
next prompt, and after half an hour.
"""

from __future__ import annotations

import os
import sys
import time

from gitmem import atomic_write, commit_process, state_files
from gitmem.agents.heartbeats import PROMPTS, WAKES
from gitmem.signals import inbox

from .. import autosync
from ..render import output
from . import hook_caller, show_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..environment import Environment
    from .hook_input import HookInput

SLEEP_SECONDS = 30 * 60.0
POLL_SECONDS = 0.5
EXIT_WAKE = 2


class StopWait:
    """The sleeper of a session.

    Args:
        state: The folder of gitmem's own files.
        session_id: Our session.
        client_session: The client's id of it.
    """

    __slots__ = ("_flag", "_mark", "_parent", "_prompt", "_said", "_session", "_token")

    def __init__(self, state: str, session_id: str, client_session: str) -> None:
        self._flag = os.path.join(state, "flags", session_id)
        self._session = os.path.join(state, "sessions", session_id)
        self._prompt = os.path.join(state, PROMPTS, os.path.basename(client_session) or "-")
        self._mark = os.path.join(state, WAKES, session_id)
        self._said = _changed(self._prompt)
        self._parent = os.getppid()
        self._token = f"{os.getpid()} {time.time_ns()}\n".encode()

    def acquire_turn(self) -> None:
        """Become the session's only sleeper. After a failed write `is_over` is true: it might wake again and again."""
        atomic_write.try_replace(self._mark, self._token, folders=True)

    def is_over(self) -> bool:
        """Return whether to stop: another sleeper, a new prompt, or the session or its client has ended."""
        try:
            if state_files.read(self._mark) != self._token:
                return True
            os.stat(self._session)
        except OSError:
            return True
        return os.getppid() != self._parent or _changed(self._prompt) != self._said

    def is_called(self) -> bool:
        """Return whether there is a signal that may interrupt."""
        try:
            return os.stat(self._flag).st_size > 0
        except OSError:
            return False

    def release_turn(self) -> None:
        """Remove the mark of this sleeper."""
        if state_files.read(self._mark) == self._token:
            atomic_write.remove_quietly(self._mark)


def wait(
    at: Environment, call: HookInput, *, seconds: float = SLEEP_SECONDS, poll: float = POLL_SECONDS
) -> int:
    """Sleep, then wake the agent; return 2 if signals were shown, otherwise 0."""
    caller = hook_caller.caller(at, call)
    if caller is None or caller.session_id is None:
        return 0
    sleep = StopWait(at.repo.state, caller.session_id, call.session or "")
    at.close()
    sleep.acquire_turn()
    deadline = time.monotonic() + seconds
    try:
        while not sleep.is_over():
            autosync.start(at, commit_process.IF_DUE)  # an idle agent starts no other command
            if sleep.is_called() and _deliver_unread(at, call):
                return EXIT_WAKE
            if time.monotonic() >= deadline:
                return 0
            time.sleep(poll)
        return 0
    finally:
        sleep.release_turn()


def _deliver_unread(at: Environment, call: HookInput) -> bool:
    """Show the unread signals; return False if there are none, or another process delivers them."""
    from gitmem.agents import delivery

    try:
        store = at.store()
        caller = hook_caller.caller(at, call)
        if caller is None:
            return False
        with delivery.delivery_lock(store, caller.reader) as mine:
            if not mine:
                return False
            via = hook_caller.reply_program(at, call, caller)
            text_of = show_signals.shown(store, caller, via)
            reading = show_signals.unread(store, caller, text_of, directed=True)
            text = show_signals.injection(reading, text_of, via)
            if text and not _write_stderr(text):
                return False
            inbox.mark(store, reading)
            return bool(text)
    finally:
        at.close()


def _write_stderr(text: str) -> bool:
    """Write to standard error and flush; return whether that succeeded."""
    err = sys.stderr
    try:
        output.write_whole(err.buffer, (text + "\n").encode("utf-8", "replace"))
        err.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
