"""Programs in a session of their own, which end with the process that started them."""

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
    command line. The command is the child of `process_guard`, which ends it with all that its processes have started when this
    process dies, as the end of a pipe tells it.

    Args:
        command: The command, from the user.
        input: Its standard input.
        environment: All of its variables.
        folder: Where it runs.
    """

    def __init__(self, command: str, input: bytes, environment: Mapping[str, str], folder: str) -> None:
        ours, theirs = [], []
        try:
            for is_input in (True, False, False):
                reads, writes = os.pipe()
                ours.append(writes if is_input else reads)
                theirs.append(reads if is_input else writes)
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", process_guard.__file__, command, *map(str, theirs)], cwd=folder,
                env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                pass_fds=theirs, start_new_session=True,  # so that nothing in it can join the group of another program
            )  # fmt: skip
        except (OSError, ValueError):
            for each in ours:
                os.close(each)
            raise
        finally:
            for each in theirs:
                os.close(each)
        self._ended = threading.Event()
        self._code: int | None = None
        self._exited, self._is_unguarded = threading.Event(), threading.Event()
        self._output = b""
        self._error = b""
        self._is_large = False
        to, out, error = os.fdopen(ours[0], "wb", 0), os.fdopen(ours[1], "rb"), os.fdopen(ours[2], "rb")
        self._threads = [
            _thread(self._write, to, input),
            _thread(self._read, out),
            _thread(self._read_error, error),
        ]
        _thread(self._wait)

    def poll(self, seconds: float) -> RunEnd | None:
        """Wait for its end, at most this many seconds."""
        self._ended.wait(seconds)
        if self._is_large:
            self.end()
            return too_large(f"more than {RESULT_MAX_BYTES} bytes")
        # it may have closed its output and go on
        if not self._exited.wait(seconds if self._ended.is_set() else 0):
            return None
        for each in self._threads[1:]:
            each.join(LAST_SECONDS)
        self.end()
        return self._result(self._code if self._code is not None else -int(signal.SIGKILL))

    def end(self) -> None:
        """End it with all processes of its group, and if it runs, with all others that they have started."""
        if self._guard.returncode is not None:
            return
        assert self._guard.stdin is not None
        if not self._exited.is_set():
            self._guard.stdin.close()
            self._is_unguarded.wait(_GUARD_SECONDS)
        if self._code is None:  # the guard was killed: without its help daemons are not found
            ours = (os.getpid(), os.getppid(), self._guard.pid)
            process_guard.end(process_guard.ProcessTree(self._guard.pid, excluded=ours))
        try:
            os.killpg(
                self._guard.pid, signal.SIGKILL
            )  # the guard, and what the command has left in the background
        except (ProcessLookupError, PermissionError):
            pass
        self._guard.stdin.close()
        self._guard.wait()

    def _wait(self) -> None:
        """Wait for the exit status of the command, and for the end of its guard."""
        assert self._guard.stdout is not None
        with self._guard.stdout as pipe:
            line = pipe.readline(20)
            self._code = int(line) if line.endswith(b"\n") else None
            self._exited.set()
            pipe.read()
        self._is_unguarded.set()

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
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(KILL_SECONDS)
            except (ProcessLookupError, PermissionError):
                break
            except subprocess.TimeoutExpired:
                continue
            break
