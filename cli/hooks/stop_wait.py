"""The wake-up of an agent that waits for its user: a hook in the background that sleeps until somebody signals it.

It ends with 2 and the message on standard error, which is how Claude Code wakes its model (`asyncRewake`). One
sleeper a session: the newest replaces the others. It also ends with the session, with its client, when the
user says something, and after half an hour.
"""

from __future__ import annotations

import os
import sys
import time

from gitmem import atomic_write, shared_mode
from gitmem.agents.heartbeats import PROMPTS, WAKES
from gitmem.signals import inbox

from .. import autosync
from ..render import out
from . import show_signals, who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..environment import Environment
    from .hook_input import HookInput

SLEEP_SECONDS = 30 * 60.0
POLL_SECONDS = 0.5
WOKEN = 2


class Sleep:
    """One sleeper of a session.

    Args:
        state: The folder of gitmem's own files.
        session_id: The session of ours.
        harness: The client's id of it.
    """

    __slots__ = ("_flag", "_mark", "_parent", "_prompt", "_said", "_session", "_token")

    def __init__(self, state: str, session_id: str, harness: str) -> None:
        self._flag = os.path.join(state, "flags", session_id)
        self._session = os.path.join(state, "sessions", session_id)
        self._prompt = os.path.join(state, PROMPTS, os.path.basename(harness) or "-")
        self._mark = os.path.join(state, WAKES, session_id)
        self._said = _changed(self._prompt)
        self._parent = os.getppid()
        self._token = f"{os.getpid()} {time.time_ns()}\n".encode()

    def lie_down(self) -> None:
        """Be the session's only sleeper. Where that can't be written the sleep is over: it might wake again and again."""
        try:
            shared_mode.make_dirs(os.path.dirname(self._mark))
            atomic_write.replace(self._mark, self._token)
        except OSError:
            return

    def is_over(self) -> bool:
        """Whether there is nothing to wait for: another sleeps, the user spoke, the session or its client is gone."""
        try:
            with open(self._mark, "rb") as file:
                if file.read() != self._token:
                    return True
            os.stat(self._session)
        except OSError:
            return True
        return os.getppid() != self._parent or _changed(self._prompt) != self._said

    def is_called(self) -> bool:
        """Whether something is there that may interrupt."""
        try:
            return os.stat(self._flag).st_size > 0
        except OSError:
            return False

    def get_up(self) -> None:
        try:
            with open(self._mark, "rb") as file:
                own = file.read() == self._token
            if own:
                os.unlink(self._mark)
        except OSError:
            return


def wait(
    at: Environment, call: HookInput, *, seconds: float = SLEEP_SECONDS, poll: float = POLL_SECONDS
) -> int:
    """Sleep, and wake the agent: 2 where something was said to it, else 0."""
    caller = who.caller(at, call)
    if caller is None or caller.session_id is None:
        return 0
    sleep = Sleep(at.place.state, caller.session_id, call.session or "")
    at.close()
    sleep.lie_down()
    deadline = time.monotonic() + seconds
    try:
        while not sleep.is_over():
            autosync.start(at, autosync.LOOK)  # nothing else happens where this agent waits
            if sleep.is_called() and _wake(at, call):
                return WOKEN
            if time.monotonic() >= deadline:
                return 0
            time.sleep(poll)
        return 0
    finally:
        sleep.get_up()


def _wake(at: Environment, call: HookInput) -> bool:
    """Say what waits; False where that is nothing, or not ours to say."""
    from gitmem.mailbox import delivery_lock

    try:
        store = at.store()
        caller = who.caller(at, call)
        if caller is None:
            return False
        with delivery_lock.turn(store, caller.reader) as mine:
            if not mine:
                return False
            text_of = show_signals.shown(store, caller, who.via(at, call, caller))
            reading = show_signals.unread(store, caller, text_of, directed=True)
            text = show_signals.injection(reading, text_of)
            if text and not _say(text):
                return False
            inbox.mark(store, reading)
            return bool(text)
    finally:
        at.close()


def _say(text: str) -> bool:
    """Write to standard error, and be sure that it is out."""
    err = sys.stderr
    try:
        out.write_whole(err.buffer, (text + "\n").encode("utf-8", "replace"))
        err.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
