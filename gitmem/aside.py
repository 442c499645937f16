"""Small files that are written aside and then moved into place: who reads one sees the old text or the new one."""

from __future__ import annotations

import os

TEMPORARY = ".tmp-"


def replace(path: str, content: bytes) -> None:
    """Give a file its content in one step. Nothing is fsynced: after a power loss it may be empty, or the old one.

    Raises: OSError; the file is as it was then, and nothing is left beside it.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f"{TEMPORARY}{name}-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        drop(temporary)
        raise


def drop(path: str) -> None:
    """Remove a file that may be gone, or may stay."""
    try:
        os.unlink(path)
    except OSError:
        return
