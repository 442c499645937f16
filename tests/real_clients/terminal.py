"""A terminal in which a client believes that somebody sits before it."""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROWS, COLUMNS = 40, 120
KEY_SECONDS = 1.0  # some clients take keys that come at once for pasted text


class Shown(list[bytes]):
    """What a program has shown in its window, in the order of time."""

    def __init__(self, window: int) -> None:
        self._window = window

    def type(self, line: str) -> None:
        """Type a line as a person does: first the text, and after a moment the key that sends it."""
        os.write(self._window, line.encode())
        time.sleep(KEY_SECONDS)
        os.write(self._window, b"\r")


@contextmanager
def terminal(command: Sequence[str], work: Path, env: Mapping[str, str]) -> Iterator[Shown]:
    """Run a program in a terminal of its own; at the end its window is closed. What it showed is in the list."""
    import fcntl
    import pty
    import termios

    process, window = pty.fork()
    if process == 0:
        os.chdir(work)
        os.execve(command[0], list(command), dict(env))
    fcntl.ioctl(window, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shown = Shown(window)

    def read() -> None:
        try:
            while part := os.read(window, 65536):
                shown.append(part)
        except OSError:
            return  # the program has ended

    threading.Thread(target=read, daemon=True).start()
    try:
        yield shown
    finally:
        os.kill(process, signal.SIGHUP)  # what a window that is closed says
        os.waitpid(process, 0)
        os.close(window)
