"""The command line without a process of its own: the same answers for a tenth of the time."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import io
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from cli import background
from cli import main as front
from gitmem import commit_process
from gitmem.log.lock import Lock

NOBODY = 1 << 22  # no process has this id
POPEN = subprocess.Popen


def background_starts(patch: pytest.MonkeyPatch, act: Callable[[], object] = lambda: None) -> list[list[str]]:
    """Start no process in the background from now on.

    Args:
        act: Called instead; whatever it raises, the start raises.

    Returns:
        The arguments of each that would have been started; it grows.
    """
    found: list[list[str]] = []
    spawn, ours = os.posix_spawn, background.program()

    def noted(path: str, command: list[str], *rest: object, **options: object) -> int:
        if command[: len(ours)] != ours:
            return spawn(path, command, *rest, **options)  # type: ignore[arg-type]  # as they came
        found.append(command[len(ours) :])
        act()
        return NOBODY

    patch.setattr(os, "posix_spawn", noted)
    return found


def no_committer(patch: pytest.MonkeyPatch) -> None:
    """Start no committer from now on."""
    spawn = os.posix_spawn

    def others(path: str, command: list[str], *rest: object, **options: object) -> int:
        return NOBODY if command[-1] == "commit-waiting" else spawn(path, command, *rest, **options)  # type: ignore[arg-type]

    patch.setattr(os, "posix_spawn", others)


@contextlib.contextmanager
def living_committer(repo: Path) -> Iterator[None]:
    """Let commands find that a committer is alive: they start none, and nothing is committed."""
    with Lock(str(repo / ".git" / "gitmem" / commit_process.LOCK)) as lock:
        assert lock.take()
        yield


@contextlib.contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Let this process have these variables, too, and afterwards those that it had, in a tenth of the time of `mock.patch.dict`."""
    known = os.environ._data  # type: ignore[attr-defined]  # as the system has them
    before = dict(known)
    try:
        os.environ.update(given)
        yield
    finally:
        for name in [name for name in known if known[name] != before.get(name)]:
            del os.environ[os.fsdecode(name)]
        os.environ.update(
            {os.fsdecode(name): os.fsdecode(before[name]) for name in before if name not in known}
        )


@contextlib.contextmanager
def standard_streams(streams: Sequence[io.TextIOWrapper]) -> Iterator[None]:
    """Let this process have these for standard input, output and error."""
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        sys.stdin, sys.stdout, sys.stderr = streams
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def gitmem(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as `subprocess.run(["gitmem", *args], ...)` does, in this process.

    Args:
        args: The arguments of the command.
        cwd: The folder that it runs in.
        env: Variables that replace or join those of this process.
        given: Its standard input.
    """
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (given, b"", b"")]
    with (
        contextlib.chdir(cwd),
        variables(env or {}),
        standard_streams(streams),
    ):
        status = front.main(list(args))
        streams[1].flush()
        streams[2].flush()
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(args, status, out, err)


def become(args: Sequence[str], env: Mapping[str, str], before: str = "") -> None:
    """Run a command in a fork of this process, and end with its status: a `preexec_fn` that saves the start of Python and the imports.

    Args:
        args: The arguments of the command.
        env: Its variables.
        before: Code to run before it.
    """
    gc.freeze()  # a scan for garbage would copy all pages of the parent
    signal.set_wakeup_fd(-1)
    subprocess.Popen = POPEN  # type: ignore[misc]  # it starts git
    os.closerange(3, 4096)  # with the pipe that tells the parent that the program was started
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["gitmem", *args]
    sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python starts
    status = 1
    try:
        exec(before, {})
        status = contextvars.Context().run(front.main)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
