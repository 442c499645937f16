"""Files and folders of a spool: taken back, removed, made durable, and checked for who else may write to them."""

from __future__ import annotations

import os

from ..errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .lock import Lock


def withdraw(path: str, lock: Callable[[], Lock] | None, is_committed: Callable[[], bool]) -> bool:
    """Take an entry back that others may have seen. False where that is not plainly so: then it is recorded."""
    try:
        held = lock() if lock is not None else None
        if held is not None and not held.take():
            return False  # a leader is at work, and may have read it
    except (OSError, StoreError):
        return False  # whoever may lead is out of our sight
    try:
        return not is_committed() and take_back(path)  # what is gone by now is in a commit
    finally:
        if held is not None:
            held.release()


def take_back(path: str) -> bool:
    """Remove an entry that is reported as failed: a power loss must not bring it back. False where it was gone."""
    from ..git.durable import fsync_dir

    if not remove(path):
        return False
    fsync_dir(os.path.dirname(path))
    return True


def remove(path: str) -> bool:
    """Remove a file. False where it was gone, or stays."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def is_private(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000)


def fsync_folder(folder: str) -> None:
    """Make renames in a folder survive a power loss, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows has no such call
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
