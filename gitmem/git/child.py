"""A git process on pipes, without `subprocess`, whose import alone doubles a command's start time.

Where `posix_spawn` cannot make sessions (a Python built for an old C library), `subprocess` starts it; `run` chooses.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

KILL_WAIT_SECONDS = 5.0
LOST_STATUS = -1_000  # this process ignores SIGCHLD, so the system discards exit statuses
_SIGPIPE, _SIGXFSZ, _SIGKILL = 13, 25, 9  # Python ignores the first two; git must not inherit that
_CHUNK_BYTES = 1 << 16
ERRORS_MAX = 1 << 20  # bytes of errors that are kept; what a remote prints is among them


class OutputTooLargeError(Exception):
    """A process has written more than its caller accepts.

    Args:
        out: What it had written.
    """

    def __init__(self, out: bytes) -> None:
        super().__init__()
        self.out = out


class ChildProcess:
    """A process in its own session, with pipes; `stdin` and `stderr` may be None."""

    def __init__(
        self, pid: int, stdin: IO[bytes] | None, stdout: IO[bytes], stderr: IO[bytes] | None
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._status: int | None = None

    def communicate(
        self, data: bytes, limit_seconds: float, out_max: int | None = None
    ) -> tuple[int, bytes, bytes]:
        """Send `data`, read all output and wait for the end.

        Returns:
            Exit status, output, and the last `ERRORS_MAX` bytes of the errors.

        Raises:
            TimeoutError: the process still runs after the limit.
            OutputTooLargeError: its output is larger than `out_max` bytes.
        """
        deadline = time.monotonic() + limit_seconds
        out, err = self._exchange(data, deadline, out_max)
        pause = 0.0001
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        self.close_pipes()
        return self.wait(), out, err

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int:
        """Wait without limit and return the exit status (negative: the signal that ended the process)."""
        status = self._reap(0)
        assert status is not None
        return status

    def _reap(self, options: int) -> int | None:
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                self._status = LOST_STATUS
            else:
                self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def kill(self) -> None:
        """Kill the process and those that it started; close our pipes even if one of them holds the other end."""
        self.end_group()
        self.close_pipes()
        deadline = time.monotonic() + KILL_WAIT_SECONDS
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)

    def end_group(self) -> None:
        """Send SIGKILL to the process group, without waiting.

        Not after the process was waited for: its id may belong to another process by then.
        """
        try:
            if self._status is None:
                os.killpg(self.pid, _SIGKILL)
        except OSError:
            pass

    def close_pipes(self) -> None:
        """Close our ends of the pipes: a child that reads gets end of file."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # the child ended with unread input
                pass

    def _exchange(self, data: bytes, deadline: float, out_max: int | None) -> tuple[bytes, bytes]:
        """Write and read at the same time: each side may block until the other reads."""
        import select

        poller = select.poll()
        out: list[bytes] = []
        err = bytearray()
        sinks = {each.fileno() for each in (self.stdout, self.stderr) if each is not None}
        for handle in sinks:
            poller.register(handle, select.POLLIN)
        rest = memoryview(data)
        size = 0
        if self.stdin is not None:
            os.set_blocking(self.stdin.fileno(), False)
            poller.register(self.stdin.fileno(), select.POLLOUT)
        while sinks or (self.stdin is not None and not self.stdin.closed):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            for handle, _ in poller.poll(remaining * 1_000):
                if handle not in sinks:
                    rest = rest[_write(handle, rest) :]
                    if not rest and self.stdin is not None:
                        poller.unregister(handle)
                        self.stdin.close()
                    continue
                chunk = os.read(handle, _CHUNK_BYTES)
                if handle == self.stdout.fileno():
                    out.append(chunk)
                    size += len(chunk)
                    _check_size(size, out, out_max)
                else:
                    err += chunk
                    del err[: -ERRORS_MAX if len(err) > 2 * ERRORS_MAX else 0]
                if not chunk:
                    poller.unregister(handle)
                    sinks.remove(handle)
        return b"".join(out), bytes(err[-ERRORS_MAX:])


def _check_size(size: int, out: list[bytes], most: int | None) -> None:
    if most is not None and size > most:
        raise OutputTooLargeError(b"".join(out))


def spawn(command: list[str], environment: Mapping[str, str], input: bool, errors: bool) -> ChildProcess:
    """Start git by `posix_spawn`, in its own session.

    Args:
        command: The program, found on PATH, and its arguments.
        input: Whether standard input is a pipe; else it is empty.
        errors: Whether standard error is a pipe; else it is discarded.

    Raises:
        OSError: the process cannot be started.
        NotImplementedError: the C library does not support sessions in posix_spawn.
    """
    pipes: list[int] = []
    try:
        for _ in range(1 + input + errors):
            pipes += _pipe()
        theirs_out, ours_out = pipes[1], pipes[0]
        actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_DUP2, theirs_out, 1)
        ]
        if input:
            actions.append((os.POSIX_SPAWN_DUP2, pipes[2], 0))
        else:
            actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
        if errors:
            actions.append((os.POSIX_SPAWN_DUP2, pipes[-1], 2))
        else:
            actions.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
        pid = os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=actions,
            setsid=True,
            setsigdef=[_SIGPIPE, _SIGXFSZ],
        )
    except BaseException:
        for handle in pipes:
            os.close(handle)
        raise
    os.close(theirs_out)
    stdin = stderr = None
    if input:
        os.close(pipes[2])
        stdin = os.fdopen(pipes[3], "wb")
    if errors:
        os.close(pipes[-1])
        stderr = os.fdopen(pipes[-2], "rb", 0)
    return ChildProcess(pid, stdin, os.fdopen(ours_out, "rb"), stderr)


def start_portably(
    command: list[str], environment: Mapping[str, str], input: bool, errors: bool
) -> ChildProcess:
    """Start git as `spawn` does, by `subprocess`.

    Raises:
        OSError: the process cannot be started.
    """
    from subprocess import DEVNULL, PIPE, Popen

    popen = Popen(
        command,
        env=dict(environment),
        stdin=PIPE if input else DEVNULL,
        stdout=PIPE,
        stderr=PIPE if errors else DEVNULL,
        start_new_session=True,
    )
    popen.returncode = LOST_STATUS  # or `subprocess` would collect the exit status
    assert popen.stdout is not None
    return ChildProcess(popen.pid, popen.stdin, popen.stdout, popen.stderr)


def _pipe() -> tuple[int, int]:
    """Return reading and writing end; neither has a number of a standard stream, even if that is closed."""
    ends = list(os.pipe())
    low: list[int] = []
    while min(ends) <= 2:
        low += [end for end in ends if end <= 2]
        ends = [os.dup(end) if end <= 2 else end for end in ends]
    for end in low:
        os.close(end)
    return ends[0], ends[1]


def _write(handle: int, data: memoryview) -> int:
    """Return how many bytes the pipe accepted; all of them if the reader has closed it."""
    try:
        return os.write(handle, data[:_CHUNK_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)
