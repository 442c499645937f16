"""The time limit of a hook."""

from __future__ import annotations

import os
import time


class HookTimer:
    """The time limit of a hook, which ends this process at any point: each step must survive that.

    Args:
        name: The client and its event.
        seconds: The limit, from now.
        is_background: Whether no client waits for the hook. Its errors then limit no other hook.

    Attributes:
        state: The folder of gitmem's own files, once it is known and exists.
    """

    def __init__(self, name: str, seconds: float, *, is_background: bool = False) -> None:
        self._name = name
        self._is_background = is_background
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._parent = os.getppid()
        self.state = ""

    def is_waited_for(self) -> bool:
        """Return whether the client still waits for the answer."""
        return time.monotonic() < self._deadline and os.getppid() == self._parent

    def begin(self) -> None:
        """Start the timer."""
        import signal

        try:
            signal.signal(signal.SIGALRM, self._give_up)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
        except ValueError:
            return  # not the main thread

    def end(self) -> None:
        """Stop the timer: a printed answer must be recorded, however long that takes."""
        import signal

        signal.setitimer(signal.ITIMER_REAL, 0)

    def note(self, sentence: str) -> None:
        """Record an error for the user, and make the script start gitmem only once a turn, unless this is in the background."""
        from gitmem.clients.hooks import hook_errors

        if os.path.isdir(self.state):
            hook_errors.note(self.state, time.time_ns() // 1000, self._name, sentence)
            if not self._is_background:
                hook_errors.limit_to_turns(self.state)

    def _give_up(self, *_: object) -> None:
        self.note(f"timed out after {self._seconds:g} s")
        os._exit(0)
