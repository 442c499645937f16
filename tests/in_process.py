"""The command line without a process of its own: the same answers for a tenth of the time."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

import pytest

from cli import background
from cli import main as front
from gitmem import commit_process
from gitmem.log.lock import Lock

NOBODY = 1 << 22  # no process has this id


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


@contextlib.contextmanager
def living_committer(repo: Path) -> Iterator[None]:
    """Let commands find that a committer is alive: they start none, and nothing is committed."""
    with Lock(str(repo / ".git" / "gitmem" / commit_process.LOCK)) as lock:
        assert lock.take()
        yield


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
        mock.patch.dict(os.environ, env or {}),
        mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
    ):
        status = front.main(list(args))
        streams[1].flush()
        streams[2].flush()
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(args, status, out, err)
