"""Small files that are written aside and then moved into place: who reads one sees the old text or the new one."""

from __future__ import annotations

import os

from . import shared_mode

TEMPORARY = ".tmp-"


def replace(path: str, content: bytes, *, durable: bool = False, private: bool = False) -> None:
    """Give a file its content in one step.

    Args:
        durable: Sync the file, and the caller its folder. Without it the file may be empty or old after a power loss.
        private: Let this user alone read and write the file, also in a repository that several users share.

    Raises: OSError; the file is as it was then, and nothing is left beside it.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f"{TEMPORARY}{name}-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(temporary, flags, 0o600) if private else shared_mode.open_file(temporary, flags)
        try:
            while content:
                content = content[os.write(handle, content) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except OSError:
        drop(temporary)
        raise


def names_in(folder: str) -> list[str]:
    """Return the names in a folder; none where it is missing or may not be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def drop(path: str) -> None:
    """Remove a file that may be gone, or may stay."""
    try:
        os.unlink(path)
    except OSError:
        return
