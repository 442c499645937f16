"""Files of the write-ahead log: their names, their locks, and who else may write to their folder."""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WAL, DEFERRED = ".wal1", ".deferred1"  # the number is the format's: a later one is refused
OLD_WAIT, OLD_DEFERRED = "-wait.spool", "-ride.spool"  # an entry each, as version 0.1 left them
DAMAGED = ".damaged"
NAME_IS_SYNCED = 0  # time of an empty generation whose name survives a power loss
_DIGITS = 17
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class WalFile:
    """A file of a write-ahead log as a listing of its folder has it. `size` is in bytes."""

    __slots__ = ("folder", "name", "number", "size")

    def __init__(self, folder: str, name: str, size: int) -> None:
        self.folder = folder
        self.name = name
        self.number = int(name[:_DIGITS])
        self.size = size

    @property
    def path(self) -> str:
        return os.path.join(self.folder, self.name)

    @property
    def is_deferred(self) -> bool:
        """Whether its entries wait for the next commit and start none."""
        return self.name.endswith((DEFERRED, OLD_DEFERRED))

    @property
    def is_old(self) -> bool:
        """Whether version 0.1 wrote it."""
        return self.name.endswith(".spool")


def name_of(number: int, *, deferred: bool) -> str:
    """Return the name of a generation."""
    return f"{number:0{_DIGITS}d}{DEFERRED if deferred else WAL}"


def listed(folder: str) -> list[WalFile]:
    """Return the files of a write-ahead log, oldest first; none where the folder can't be read."""
    found = []
    for name in _names(folder):
        if _is_numbered(name) and _is_file(name):
            try:
                found.append(WalFile(folder, name, os.lstat(os.path.join(folder, name)).st_size))
            except OSError:
                continue  # it was committed meanwhile
    return sorted(found, key=lambda file: (file.number, file.name))


def newest(folder: str, *, deferred: bool) -> str | None:
    """Return the name of the newest generation of a kind: without a look at each file, for those who write."""
    end = DEFERRED if deferred else WAL
    return max((name for name in _names(folder) if name.endswith(end) and _is_numbered(name)), default=None)


def other_formats(folder: str) -> list[str]:
    """Return the names of generations whose format is not ours: a newer gitmem wrote them."""
    return [name for name in _names(folder) if _is_numbered(name) and _has_other_format(name)]


def foreign(folder: str) -> list[str]:
    """Return the names in the folder that are no files of any write-ahead log's."""
    ours = ("", "repository", "lock", "done", "aside")
    return [
        name
        for name in _names(folder)
        if name not in ours
        and not (_is_numbered(name) and (_is_file(name) or _has_other_format(name) or name.endswith(DAMAGED)))
        and not name.startswith(("tmp-", ".tmp-"))
    ]


def damaged(folder: str) -> list[str]:
    """Return the names of generations in which a committer has found bytes that are no records."""
    return [name for name in _names(folder) if _is_numbered(name) and name.endswith(DAMAGED)]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_numbered(name: str) -> bool:
    number = name[:_DIGITS]
    return len(number) == _DIGITS and number.isascii() and number.isdigit()


def _is_file(name: str) -> bool:
    return name[_DIGITS:] in (WAL, DEFERRED) or name.endswith((OLD_WAIT, OLD_DEFERRED))


def _has_other_format(name: str) -> bool:
    rest = name[_DIGITS:]
    for end in (WAL, DEFERRED):
        number = rest.removeprefix(end[:-1])
        if rest != end and number != rest and number.isascii() and number.isdigit():
            return True
    return False


def changed(file: WalFile) -> float:
    """Return when a file was last written to, in seconds since the epoch; now where it is gone."""
    try:
        found = os.stat(file.path)
        return found.st_mtime or found.st_ctime  # 0 where it was written to before its name was synced
    except OSError:
        return time.time()


def lock(handle: int, *, exclusive: bool) -> bool:
    """Lock an open file until it is closed, without waiting. False where another process keeps it.

    Where the file system has no locks everybody has them: they save work, and correctness rests on the order of steps.

    Raises: OSError.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


def open_to_read(path: str) -> int | None:
    """Open a file of a write-ahead log, no link and nothing that waits; None where it is gone. Raises: OSError."""
    flags = (
        os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    )
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return None


def sync_data(handle: int) -> None:
    """Make what was written to a file survive a power loss. Raises: OSError."""
    getattr(os, "fdatasync", os.fsync)(handle)


def sync_folder(folder: str) -> None:
    """Make the names in a folder survive a power loss, where the system can. Raises: OSError."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows has no such call
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_names(folder: str, names: Iterable[str], *, parents: bool = False) -> None:
    """Make the names of empty generations survive a power loss, and note that in their times.

    Args:
        parents: Also the folder's own name, and that of the one that it is in.

    Raises: OSError.
    """
    parent = os.path.dirname(folder)
    for each in (folder, parent, os.path.dirname(parent)) if parents else (folder,):
        sync_folder(each)
    for name in names:
        try:
            os.utime(os.path.join(folder, name), (NAME_IS_SYNCED, NAME_IS_SYNCED))
        except OSError:
            continue  # another user's: whoever writes to it first syncs once more


def is_private(folder: str) -> bool:
    """Return whether nobody else could have put files into a folder: own uid, mode 0700, no link."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000)
