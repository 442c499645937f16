"""Other message programs for agents, and ours, all used as their help describes.

Each has its own home. `caller` writes, `reader` reads, and the other messages belong to `others`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod

from . import workbench as workbenches
from .workbench import Workbench

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SUBJECT = "The parser"
TEXT = "Please look at the boundary of the index before the review, and tell me what you would change."
CALL_SECONDS = 60.0


class Mailbox(ABC):
    """One program.

    Attributes:
        version: Its requirement for the package index; None if it is not installed from there.
        pid: The process of its server; None if it has none.
        each: The number of messages of each writer when many write at once.
    """

    name = ""
    version: str | None = None
    note = ""
    each = 10
    pid: int | None = None

    def __init__(self, workbench: Workbench, programs: str) -> None:
        self.workbench = workbench
        self.programs = programs
        self.home = os.path.join(workbench.folder, "home-" + type(self).__name__)
        os.makedirs(self.home)
        self.environment = {**workbench.environment, "HOME": self.home}
        self.where = self.home

    def begin(self, writers: int) -> None:  # noqa: B027  (most programs need nothing here)
        """Register the writers and the reader."""

    @abstractmethod
    def fill(self, count: int) -> None:
        """Store this many messages that are already read."""

    def command(self, number: int = 0) -> list[str]:
        """Return the command that sends a message to the reader as one of the writers; a program without one has its own `sending`."""
        raise NotImplementedError

    def sending(self, number: int) -> Callable[[], None]:
        """Return a function that sends one message as that writer; it raises an error if the program reports one."""
        command = self.command(number)

        def send() -> None:
            subprocess.run(
                command, cwd=self.where, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                check=True, timeout=CALL_SECONDS,
            )  # fmt: skip

        return send

    def sending_at_once(self, number: int) -> Callable[[], None]:
        """Return such a function for a writer that writes at the same time as others."""
        return self.sending(number)

    def stop_writers(self) -> None:  # noqa: B027  (most programs need nothing here)
        """End the processes that `sending_at_once` has started."""

    @abstractmethod
    def read(self) -> str:
        """Return the text of the reader's inbox; it is marked as read."""

    @abstractmethod
    def stored(self) -> int:
        """Return the number of stored messages."""

    def _out(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.where, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def end(self) -> None:  # noqa: B027  (most programs need nothing here)
        """End all processes that still run."""


class Gitmem(Mailbox):
    """gitmem's commands."""

    name = "gitmem"
    note = "a process a call"

    def __init__(self, workbench: Workbench, programs: str) -> None:
        super().__init__(workbench, programs)
        self.where = workbench.repository("mailbox-" + type(self).__name__)

    def begin(self, writers: int) -> None:
        self.sessions = [workbenches.start(self.where, f"Writer{number}") for number in range(writers)]

    def fill(self, count: int) -> None:
        workbenches.publish(self.where, workbenches.sessions(workbenches.START))
        workbenches.publish(self.where, workbenches.history(count), commits=20)
        with workbenches.open_log(self.where, workbenches.session_of(0)) as log:
            log.inbox()

    def command(self, number: int = 0) -> list[str]:
        to = workbenches.session_of(0)
        return [self.workbench.program("gitmem"), "--as", self.sessions[number], "signal", TEXT, "--to", to]

    def read(self) -> str:
        return self._out(self.workbench.program("gitmem"), "--as", workbenches.session_of(0), "inbox")

    def stored(self) -> int:
        self._out(self.workbench.program("gitmem"), "log", "-n", "1")  # commits waiting records
        return self.workbench.signals(self.where)


class GitmemLibrary(Gitmem):
    """gitmem's library in long-lived processes."""

    name = "gitmem, in a process that lives on"
    note = "the library, as `gitmem mcp` uses it"

    def fill(self, count: int) -> None:
        super().fill(count)
        reader = workbenches.session_of(0)
        self.caller, self.reader = (
            workbenches.open_log(self.where, session, commit_after=None)
            for session in (self.sessions[0], reader)
        )
        self.processes: list[subprocess.Popen[str]] = []

    def sending(self, number: int) -> Callable[[], None]:
        to = [workbenches.session_of(0)]

        def send() -> None:
            self.caller.signals.send(TEXT, to=to)

        return send

    def sending_at_once(self, number: int) -> Callable[[], None]:
        to = workbenches.session_of(0)
        words = ["-m", "benchmarks.writer", "library", self.where, self.sessions[number], to, "1"]
        process = subprocess.Popen(
            [sys.executable, *words], cwd=workbenches.HERE, env={**self.environment, "PYTHONPATH": workbenches.HERE},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.processes.append(process)
        asked, said = process.stdin, process.stdout
        assert asked is not None and said is not None and said.readline() == "ready\n"

        def send() -> None:
            asked.write("one\n")
            asked.flush()
            if said.readline() != "done\n":
                raise RuntimeError(f"the writer ended with {process.wait()}")

        return send

    def read(self) -> str:
        return "\n".join(str(each["message"]) for each in self.reader.inbox().signals)

    def stop_writers(self) -> None:
        for process in self.processes:
            process.communicate()
        self.processes.clear()

    def end(self) -> None:
        for log in (self.caller, self.reader):
            log.close()
