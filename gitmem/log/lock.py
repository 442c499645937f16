"""The lock of a clone's log: an OS lock, released when its process ends.

It avoids wasted work. Correctness depends on the compare-and-swap of the ref, not on it. On a file system without
locks, every process gets the lock.
"""

from __future__ import annotations

import errno
import os

from .. import local_files
from ..errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from filelock import FileLock

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def lock_file(handle: int, *, exclusive: bool) -> bool:
    """Lock an open file until it is closed, without waiting; False if another process holds the lock.

    On a file system without locks every process gets them: they save work; correctness depends on the order of steps.

    Raises:
        OSError: Locking failed for another reason.
    """
    import fcntl

    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in NO_LOCKS:
            raise
    return True


class Lock:
    """A lock file. Not reentrant; use one object once. The file is never deleted.

    Args:
        path: The file.
        background: Whether no answer waits for the lock: then filelock takes it. Importing that costs three times as
            much as starting Python, so all others call `flock` on the same file, see docs/decisions/0082.
    """

    def __init__(self, path: str, *, background: bool = False) -> None:
        self.path = path
        self._is_background = background
        self._fd = -1
        self._filelock: FileLock | None = None

    def take(self) -> bool:
        """Try to acquire the lock, without waiting; return whether that succeeded.

        Raises:
            StoreError: The file cannot be opened or locked.
        """
        try:
            return self._take()
        except OSError as error:
            raise StoreError(
                f"The lock {self.path} cannot be opened or locked ({error.strerror}). Nothing was changed.",
                hint="Free disk space or correct the permissions of the git folder, then run the command again.",
                code="lock",
            ) from error

    def _take(self) -> bool:
        # who may read a file may lock it, and so stop others
        fd = local_files.open_file(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if self._is_background:
                return self._take_filelock()
            if lock_file(fd, exclusive=True):
                self._fd, fd = fd, -1
        finally:
            if fd >= 0:
                os.close(fd)
        return self.is_held

    def _take_filelock(self) -> bool:
        import filelock

        lock = filelock.FileLock(self.path, fallback_to_soft=False, preserve_lock_file=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return False
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        self._filelock = lock
        return True

    @property
    def is_held(self) -> bool:
        """Whether the lock was acquired and not released."""
        return self._fd >= 0 or self._filelock is not None

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._filelock is not None:
            self._filelock.release()
            self._filelock = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
