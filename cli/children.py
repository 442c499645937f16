"""Programs that a watch starts, each in a process group of its own, so none of its processes outlives the watch."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from gitmem.invocation import child_process

from .background import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    class StopChild(Protocol):
        """A flag that ends a running child early."""

        def is_set(self) -> bool:
            """Return whether the child must end."""
            ...


POLL_SECONDS = 0.1
SYNC_SECONDS = 120.0


def run(
    command: str,
    *,
    input: bytes,
    environment: Mapping[str, str],
    folder: str,
    seconds: float,
    stop: StopChild,
) -> str | None:
    """Run the user's command with `sh -c`; return the error in a sentence, or None.

    Its standard output goes to our standard error, because ours contains only signals.

    Args:
        input: Its standard input.
        environment: Variables in addition to ours.
        seconds: The time limit.
        stop: Ends it early.
    """
    try:
        child = _start(
            ["sh", "-c", command], folder, stdin=subprocess.PIPE, stdout=_stderr(), environment=environment
        )
    except OSError as error:
        return f"cannot start it ({error.strerror})"
    deadline = time.monotonic() + seconds
    rest: bytes | None = input
    try:
        while True:
            try:
                child.communicate(rest, timeout=POLL_SECONDS)
            except subprocess.TimeoutExpired:
                rest = None  # already passed: continue with it
                if stop.is_set():
                    return "stopped because the watch ended"
                if time.monotonic() >= deadline:
                    return f"timed out after {seconds:g} seconds"
                continue
            code = child.returncode
            return None if code == 0 else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
    finally:
        end(child)


class BackgroundSyncs:
    """Repeated runs of `gitmem sync` beside a watch, which a hanging or failing remote does not block.

    Args:
        folder: The folder to sync in.
        seconds: The pause between the end of a sync and the start of the next.
        command: Returns the command line that `sync` and its options are appended to.
        limit_seconds: A sync that takes longer hangs, and is ended.
    """

    def __init__(
        self,
        folder: str,
        seconds: float,
        *,
        command: Callable[[], list[str]] = program,
        limit_seconds: float = SYNC_SECONDS,
    ) -> None:
        self.command = command
        self.limit_seconds = limit_seconds
        self.folder = folder
        self.seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._next = time.monotonic()
        self._deadline = 0.0
        self._failed = False
        self._only_fetches = False

    def tick(self) -> str | None:
        """Start or end a sync that is due; return a sentence when syncs begin to fail or work again."""
        now = time.monotonic()
        if self._child is None:
            if now < self._next:
                return None
            try:
                command = [*self.command(), "sync", "--json", "--timeout", "30s"]
                self._child = _start(command, self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            except OSError as error:
                return self._done(f"cannot start it ({error.strerror})")
            self._deadline = now + self.limit_seconds
            return None
        if self._child.poll() is None:
            if now < self._deadline:
                return None
            end(self._child)
            return self._done(f"timed out after {self.limit_seconds:g} seconds")
        assert self._child.stdout is not None
        answer = self._child.stdout.read()  # one line, which fits into a pipe
        code = self._child.returncode
        if code == 2 and b'"consent-needed"' in answer:  # the fetch was complete
            before, self._only_fetches = self._only_fetches, True
            notice = (
                None
                if before
                else f"sync fetches but does not push ({_why(answer)}); only your user may run `gitmem sync --publish`"
            )
            return self._done(None) or notice
        return self._done(None if code == 0 else _why(answer))

    def close(self) -> None:
        """End the running sync."""
        if self._child is not None:
            end(self._child)

    def _done(self, why: str | None) -> str | None:
        """Note the end of a sync; return a sentence if syncs begin to fail or work again, otherwise None."""
        if self._child is not None and self._child.stdout is not None:
            self._child.stdout.close()
        self._child = None
        self._next = time.monotonic() + self.seconds
        failed, self._failed = self._failed, why is not None
        if why is not None and not failed:
            return f"sync failed ({why}); retrying. Signals of this clone are still shown"
        return "sync works again" if why is None and failed else None


def _why(answer: bytes) -> str:
    """Return the error message of a failed sync."""
    import json

    try:
        report = json.loads(answer)
        if "error" in report:
            return str(report["error"]["message"])
        words = [f"{each['name']}: {each['message'] or each['state']}" for each in report["remotes"]]
        return "; ".join(words)
    except (ValueError, TypeError, LookupError):
        return "it printed no result"


def _start(
    command: Sequence[str],
    folder: str,
    *,
    stdin: int,
    stdout: int,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=stdin,
        stdout=stdout,
        stderr=None if environment is not None else subprocess.DEVNULL,
        start_new_session=True,
    )


def _stderr() -> int:
    """Return our standard error for a child's output, or DEVNULL without one."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.DEVNULL


def end(child: subprocess.Popen[bytes]) -> None:
    """End a program with all processes that it started, and close its pipes."""
    if child.poll() is not None:
        return
    child_process.end(child)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
