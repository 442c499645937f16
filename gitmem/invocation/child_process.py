"""Programs in a process group of their own, which end with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from . import process_guard
from .process_guard import KILL_SECONDS
from .runs import RESULT_MAX_BYTES, TEMPORARY, RunEnd, completed, failure, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

LAST_SECONDS = 1.0  # for output that is still in the pipe after the end
ERROR_MAX_BYTES = 4096  # of standard error, its end
CHUNK_BYTES = 64 * 1024
_GUARD_SECONDS = KILL_SECONDS + 3.0  # that the guard may take


class ChildRun:
    """A command that runs with `sh -c`, with a task on its standard input.

    Its result is its standard output if it ends with 0, its error the end of its standard error. The task's text is never part of the
    command line. The process group of the command is led by `process_guard`, which ends it with all that its processes have started when this
    process dies, as the end of a pipe tells it.

    Args:
        command: The command, from the user.
        input: Its standard input.
        environment: All of its variables.
        folder: Where it runs.
    """

    def __init__(self, command: str, input: bytes, environment: Mapping[str, str], folder: str) -> None:
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", process_guard.__file__], stdin=pipe, stdout=none, stderr=none, process_group=0
        )  # fmt: skip
        try:
            self._child = subprocess.Popen(
                ["sh", "-c", command], cwd=folder, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe,
                process_group=self._guard.pid,
            )  # fmt: skip
        except (OSError, ValueError):
            self._end_guard()
            raise
        self._ended = threading.Event()
        self._output = b""
        self._error = b""
        self._is_large = False
        assert self._child.stdin and self._child.stdout and self._child.stderr
        self._threads = [
            _thread(self._write, self._child.stdin, input),
            _thread(self._read, self._child.stdout),
            _thread(self._read_error, self._child.stderr),
        ]

    def poll(self, seconds: float) -> RunEnd | None:
        """Wait for its end, at most this many seconds."""
        self._ended.wait(seconds)
        if self._is_large:
            self.end()
            return too_large(f"more than {RESULT_MAX_BYTES} bytes")
        code = self._child.poll()
        if code is None:
            if self._ended.is_set() and seconds:  # it has closed its output and goes on
                try:
                    code = self._child.wait(seconds)
                except subprocess.TimeoutExpired:
                    return None
            else:
                return None
        for each in self._threads[1:]:
            each.join(LAST_SECONDS)
        self.end()
        return self._result(code)

    def end(self) -> None:
        """End it with all processes of its group, and if it runs, with those that they have started in other groups."""
        if self._guard.returncode is not None:
            return
        if self._child.poll() is None and self._guard.stdin is not None:
            self._guard.stdin.close()
            try:
                self._guard.wait(_GUARD_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        self._end_guard()
        try:
            self._child.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:  # the kernel holds it
            return

    def _end_guard(self) -> None:
        """Kill the group: the guard, and what the command has left in the background."""
        if (
            self._guard.returncode is None or self._child.poll() is None
        ):  # else its number may be another group's
            try:
                os.killpg(self._guard.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()

    def _result(self, code: int) -> RunEnd:
        if self._is_large:
            return too_large(f"more than {RESULT_MAX_BYTES} bytes")
        error = self._error.decode("utf-8", "replace").strip()
        if code:
            kind = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
            said = error or self._output.decode("utf-8", "replace").strip()[-ERROR_MAX_BYTES:]
            return failure("EXIT_STATUS", kind, said or kind, retryable=code == TEMPORARY)
        try:
            return completed(self._output.decode("utf-8").removesuffix("\n"))
        except UnicodeDecodeError as wrong:
            return failure(
                "BINARY_RESULT",
                "UnicodeDecodeError",
                f"The result is not valid UTF-8 (byte {wrong.start}). Commit it, and name the file.",
            )

    def _write(self, pipe: IO[bytes], input: bytes) -> None:
        try:
            with pipe:
                pipe.write(input)
        except OSError:  # it does not read
            return

    def _read(self, pipe: IO[bytes]) -> None:
        parts, size = [], 0
        with pipe:
            while part := os.read(pipe.fileno(), CHUNK_BYTES):
                parts.append(part)
                size += len(part)
                if size > RESULT_MAX_BYTES + 1:  # a newline at its end does not count
                    self._is_large = True
                    break
        self._output = b"".join(parts)
        self._ended.set()

    def _read_error(self, pipe: IO[bytes]) -> None:
        with pipe:
            while part := os.read(pipe.fileno(), CHUNK_BYTES):
                self._error = (self._error + part)[-ERROR_MAX_BYTES:]


def _thread(job: Callable[..., None], *values: object) -> threading.Thread:
    found = threading.Thread(target=job, args=values, daemon=True)
    found.start()
    return found


def end(child: subprocess.Popen[bytes]) -> None:
    """End a program with all processes of its process group, which it leads: SIGTERM first, then SIGKILL."""
    if child.poll() is None:
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            try:
                if hasattr(os, "killpg"):
                    os.killpg(child.pid, number)
                else:
                    child.kill()
                child.wait(KILL_SECONDS)
            except (ProcessLookupError, PermissionError):
                break
            except subprocess.TimeoutExpired:
                continue
            break
