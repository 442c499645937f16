"""The lock of a clone's log: an OS lock, released when its process ends.

It avoids wasted work. Correctness depends on the compare-and-swap of the ref, not on it. On a file system without
locks, every process gets the lock.
"""

from __future__ import annotations

import os

from .. import shared_mode
from ..errors import StoreError
from . import wal_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class Lock:
    """A lock file. Not reentrant; use one object once. The file has no content and is never deleted."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._portable: object | None = None

    def take(self) -> bool:
        """Try to acquire the lock, without waiting; return whether that succeeded.

        Raises:
            StoreError: The file cannot be opened or locked.
        """
        try:
            return self._take()
        except OSError as error:
            raise StoreError(
                f"The lock {self.path} cannot be opened or locked ({error.strerror}); nothing was changed.",
                hint="Free the disk or mend the permissions of the git folder, then run the command again.",
                code="lock",
            ) from error

    def _take(self) -> bool:
        try:
            import fcntl  # noqa: F401  (whether it is there)
        except ImportError:  # Windows
            return self._take_portable()
        fd = shared_mode.open_file(self.path, os.O_RDWR | os.O_CREAT)
        try:
            if wal_files.lock(fd, exclusive=True):
                self._fd, fd = fd, -1
        finally:
            if fd >= 0:
                os.close(fd)
        return self.is_held

    def _take_portable(self) -> bool:
        import filelock

        lock = filelock.FileLock(self.path)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return False
        self._portable = lock
        return True

    @property
    def is_held(self) -> bool:
        """Whether the lock was acquired and not released."""
        return self._fd >= 0 or self._portable is not None

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._portable is not None:
            self._portable.release()  # type: ignore[attr-defined]  # a filelock, imported on Windows alone
            self._portable = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
