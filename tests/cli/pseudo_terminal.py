"""Run the program on a terminal of its own, of any width."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests import in_process

SECONDS = 60


def run(
    args: Sequence[str],
    cwd: Path,
    *,
    columns: int = 80,
    typed: bytes = b"",
    after: bytes = b"",
    errors: bool = False,
    both: bool = False,
    variables: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Return the exit status and what the terminal got.

    Args:
        columns: The width of the terminal; 0 for one that does not know it.
        typed: What its user types.
        after: What its user waits for before.
        errors: Whether standard error is the terminal and standard output is discarded, instead of the other way round.
        both: Whether both are the terminal. Otherwise standard error must stay empty.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LESS")}
    env |= {"TERM": "xterm", **(variables or {})}
    child = subprocess.Popen(
        ["gitmem", *args],
        preexec_fn=partial(in_process.become, args, env),  # noqa: PLW1509
        cwd=cwd,
        stdin=theirs,
        stdout=subprocess.DEVNULL if errors else theirs,
        stderr=theirs if errors or both else subprocess.PIPE,
        start_new_session=True,
    )
    os.close(theirs)
    said = _all_of(ours, child, typed, after)
    os.close(ours)
    err = b"" if child.stderr is None else child.stderr.read()
    status = child.wait()
    assert err == b"", err.decode()
    return status, said.decode("utf-8", "replace").replace("\r\n", "\n")


def _all_of(terminal: int, child: subprocess.Popen[bytes], typed: bytes, after: bytes) -> bytes:
    """Return what is written to a terminal until its last process has closed it."""
    said, end = b"", time.monotonic() + SECONDS
    while time.monotonic() < end:
        if typed and after in said:
            os.write(terminal, typed)
            typed = b""
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            found = os.read(terminal, 65536)
        except OSError:  # all have closed it
            return said
        if not found:
            return said
        said += found
    child.kill()
    raise AssertionError(f"still writing after {SECONDS} s: {said[-500:]!r}")
