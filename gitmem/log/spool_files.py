"""Files and folders of a spool: taken back, removed, made durable, and checked for who else may write to them."""

from __future__ import annotations

import errno
import os
import time

from ..errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .lock import Lock

LOCK = "lock"
LOCK_WAIT_SECONDS = 2.0


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


def take_lock(folder: str) -> Lock:
    """Return the taken lock of a spool folder that several repositories may write to.

    Raises: OSError where somebody else keeps it, or it can't be opened.
    """
    from .lock import Lock

    lock = Lock(os.path.join(folder, LOCK))
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    try:
        while not lock.take():
            if time.monotonic() >= deadline:
                raise BlockingIOError(errno.EAGAIN, "another process keeps its lock")
            time.sleep(0.002)
    except StoreError as error:
        raise OSError(errno.EIO, "its lock cannot be opened") from error
    return lock


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


def sync_read(path: str) -> None:
    """Make a file that others have written, and its name, survive a power loss as far as the system lets us."""
    from ..git.durable import fsync_dir

    fsync_dir(path)
    fsync_dir(os.path.dirname(path))
