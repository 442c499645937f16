"""Ends of the screen that nobody has typed: a signal, and a terminal that has gone.

Without this a signal would leave the terminal without echo and with the mouse captured, and a screen that ignores hangups, such as one
under `nohup`, would ask a terminal that has gone for keys without a pause, and wait to write to it, for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ENDS = (signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 1.0


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Let the screen restore the terminal before a signal ends this process; end it when the terminal has gone."""
    came: list[int] = []
    stop = threading.Event()

    def end(number: int, _: object) -> None:
        came.append(number)
        signal.raise_signal(signal.SIGINT)  # which the event loop answers by cancelling the screen

    before = [
        (number, signal.signal(number, end)) for number in ENDS if signal.getsignal(number) == signal.SIG_DFL
    ]
    threading.Thread(target=_look, args=(stop,), name="gitmem top terminal", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        for number, handler in before:
            signal.signal(number, handler)
        if came:
            os.kill(os.getpid(), came[0])


def _look(stop: threading.Event) -> None:
    """End the process when its terminal has gone: nothing can be drawn, and what was recorded is on the disk."""
    import termios

    while not stop.wait(LOOK_SECONDS):
        try:
            termios.tcgetattr(sys.__stdin__ or 0)
        except (OSError, ValueError, termios.error):
            os._exit(128 + signal.SIGHUP)
