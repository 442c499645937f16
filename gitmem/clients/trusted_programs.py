"""The user's list of gitmem programs that hooks may start.

A repository notes in its git folder which gitmem program its hooks start. A git folder can come from a stranger, in an
archive or on a shared disk. Hooks therefore start a noted program only if this list contains it, too. The list is in
the user's own state folder. The hook scripts read it with `gitmem.clients.hooks.script.IS_LISTED`.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "programs"
KEPT_MAX = 100  # above this number, programs that no longer exist are removed


def is_listed(folder: str, program: str) -> bool:
    """Return whether the user's list contains a program.

    Args:
        folder: gitmem's folder in the user's state folder.
        program: The program's absolute path.
    """
    path = os.path.join(folder, NAME)
    return _is_private(folder) and _is_private(path) and program in _read(path)


def add(folder: str, program: str) -> bool:
    """Add a program that the user runs to the list.

    Args:
        folder: gitmem's folder in the user's state folder; created if missing.
        program: The program's absolute path.

    Returns:
        Whether the list contains it now. False if the list can't be written, or if other users could write to it.
    """
    if not os.path.isabs(program) or "\n" in program:
        return False
    if is_listed(folder, program):
        return True
    path = os.path.join(folder, NAME)
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        if not _is_private(folder) or (os.path.lexists(path) and not _is_private(path)):
            return False
        known = _read(path)
        if len(known) >= KEPT_MAX:
            _rewrite(path, [each for each in known if os.path.exists(each)][-KEPT_MAX // 2 :])
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            os.write(descriptor, os.fsencode(program) + b"\n")
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return is_listed(folder, program)


def _rewrite(path: str, programs: Sequence[str]) -> None:
    temporary = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(b"".join(os.fsencode(each) + b"\n" for each in programs))
    os.replace(temporary, path)


def _read(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            return [os.fsdecode(line) for line in file.read().split(b"\n") if line]
    except OSError:
        return []


def _is_private(path: str) -> bool:
    """Return whether a file or folder belongs to this user and no other user may write to it."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    if not hasattr(os, "geteuid"):  # Windows, where these bits have no meaning
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
