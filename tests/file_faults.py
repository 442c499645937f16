"""Calls of the operating system on chosen files that fail, or that something happens before or after.

A crash point is named by the file that a step is about to change, so a test holds whatever function changes it.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest


def at(
    patch: pytest.MonkeyPatch, call: str, pattern: str, act: Callable[[], object], *, after: bool = False
) -> list[str]:
    """Let something happen at each call of a function of `os` on files of a pattern.

    Args:
        call: The function, such as `replace`, `unlink`, `open`, `write`, `listdir` or `posix_spawnp`.
        pattern: Of paths, as `fnmatch` has it. A descriptor stands for the path that it was opened by, and a program
            for its arguments.
        act: Called before the real function; whatever it raises, the function raises.
        after: Call it after the real function.

    Returns:
        The paths of these calls; it grows.
    """
    real = getattr(os, call)
    seen: list[str] = []

    def called(*args: Any, **options: Any) -> Any:
        found = [path for each in args[:2] if fnmatch(path := _path(each), pattern)]
        if not found:
            return real(*args, **options)
        seen.extend(found[:1])
        if not after:
            act()
        result = real(*args, **options)
        if after:
            act()
        return result

    patch.setattr(os, call, called)
    return seen


def _path(given: object) -> str:
    """Return the path of an argument, or the words of a command; "" for other arguments."""
    if isinstance(given, list):
        return " ".join(map(os.fsdecode, given))
    if isinstance(given, int) and not isinstance(given, bool):
        try:
            return os.readlink(f"/proc/self/fd/{given}")
        except OSError:
            return ""
    return (
        os.fsdecode(given)
        if isinstance(given, str | bytes | os.PathLike) and len(os.fsdecode(given)) < 4096
        else ""
    )


def full() -> None:
    """Fail as on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def denied() -> None:
    """Fail as where this process may not write."""
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)
