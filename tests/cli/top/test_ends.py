"""The screen ends when it is told to, or when nobody can see it, and leaves the terminal as it was."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import in_process

SECONDS = 30.0
ON_SCREEN, OFF_SCREEN, MOUSE_OFF = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?1000l"


class Shown:
    """A screen on a terminal of its own."""

    def __init__(self, repo: Path) -> None:
        with (repo / ".git" / "config").open("a") as config:
            config.write("[user]\n\tname = Test Person\n\temail = person@example.org\n")
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen(
            ["gitmem", "top"], preexec_fn=partial(in_process.become, ["top"], {**os.environ, "TERM": "xterm"}), cwd=repo,  # noqa: PLW1509
            stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, start_new_session=True,
        )  # fmt: skip
        self.said = b""
        self.read_until(ON_SCREEN)
        while termios.tcgetattr(self.theirs) == self.before:
            time.sleep(0.01)

    def read_until(self, text: bytes) -> None:
        end = time.monotonic() + SECONDS
        while text not in self.said and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.1)[0]:
                self.said += os.read(self.ours, 65536)
        assert text in self.said


@pytest.fixture
def shown(repo: Path) -> Iterator[Shown]:
    found = Shown(repo)
    yield found
    found.process.kill()
    found.process.wait()
    for each in (found.ours, found.theirs):
        with contextlib.suppress(OSError):
            os.close(each)


def test_a_signal_leaves_no_terminal_without_echo(shown: Shown) -> None:
    """The mouse is released, the lines from before are back, and whoever asked for the end sees the signal."""
    shown.process.send_signal(signal.SIGTERM)

    shown.read_until(OFF_SCREEN)
    assert shown.process.wait(SECONDS) == -signal.SIGTERM
    assert MOUSE_OFF in shown.said and b"Traceback" not in shown.said
    assert termios.tcgetattr(shown.theirs) == shown.before


def test_a_screen_without_a_terminal_ends_although_it_gets_no_signal(shown: Shown) -> None:
    """Under nohup, or out of its session, it would ask for keys without a pause for ever."""
    os.close(shown.theirs)
    os.close(shown.ours)

    assert shown.process.wait(SECONDS) == 128 + signal.SIGHUP
