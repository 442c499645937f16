"""Files of the write-ahead log: names, durability, the owner of the folder, and a fingerprint of what a clone's log has."""

from __future__ import annotations

import os
import time

from .. import local_files
from ..git.files import LOG_REF, plain_tip
from ..local_files import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..repo import Repo


WAL, DEFERRED = ".wal1", ".deferred1"  # the number is the version of the format; later versions are rejected
DAMAGED = ".damaged"
COMMITTED = "committed"  # in the state folder: a commit, its parent, and the files that it was made of
NAME_IS_SYNCED = 0  # mtime of an empty generation whose name survives a power loss
_DIGITS = 17


class WalFile:
    """A file in the listing of a write-ahead log folder. `size` is in bytes."""

    def __init__(self, folder: str, name: str, size: int) -> None:
        self.folder = folder
        self.name = name
        self.number = int(name[:_DIGITS])
        self.size = size

    @property
    def path(self) -> str:
        """The path of the file."""
        return os.path.join(self.folder, self.name)

    @property
    def is_deferred(self) -> bool:
        """Whether its entries wait for the next commit instead of starting one."""
        return self.name.endswith(DEFERRED)


def name_of(number: int, *, deferred: bool) -> str:
    """Return the name of a generation."""
    return f"{number:0{_DIGITS}d}{DEFERRED if deferred else WAL}"


def list_files(folder: str) -> list[WalFile]:
    """Return the files of a write-ahead log, oldest first; empty if the folder is unreadable."""
    found = []
    for name in names_in(folder):
        if _is_numbered(name) and _is_file(name):
            try:
                found.append(WalFile(folder, name, os.lstat(os.path.join(folder, name)).st_size))
            except OSError:
                continue  # it was committed meanwhile
    return sorted(found, key=lambda file: (file.number, file.name))


def newest(folder: str, *, deferred: bool) -> str | None:
    """Return the name of the newest generation of a kind, without a stat of each file (for writers)."""
    end = DEFERRED if deferred else WAL
    return max((name for name in names_in(folder) if name.endswith(end) and _is_numbered(name)), default=None)


def other_formats(folder: str) -> list[str]:
    """Return the names of generations in another format, which a newer gitmem wrote."""
    return [name for name in names_in(folder) if _is_numbered(name) and _has_other_format(name)]


def foreign(folder: str) -> list[str]:
    """Return the names in the folder that do not belong to any write-ahead log."""
    ours = ("", "repository", "lock", "done", "aside")
    return [
        name
        for name in names_in(folder)
        if name not in ours
        and not (_is_numbered(name) and (_is_file(name) or _has_other_format(name) or name.endswith(DAMAGED)))
        and not name.startswith(("tmp-", ".tmp-"))
    ]


def damaged(folder: str) -> list[str]:
    """Return the names of generations in which a committer found invalid bytes."""
    return [name for name in names_in(folder) if _is_numbered(name) and name.endswith(DAMAGED)]


def _is_numbered(name: str) -> bool:
    number = name[:_DIGITS]
    return len(number) == _DIGITS and number.isascii() and number.isdigit()


def _is_file(name: str) -> bool:
    return name[_DIGITS:] in (WAL, DEFERRED)


def _has_other_format(name: str) -> bool:
    rest = name[_DIGITS:]
    for end in (WAL, DEFERRED):
        number = rest.removeprefix(end[:-1])
        if rest != end and number != rest and number.isascii() and number.isdigit():
            return True
    return False


def modified_at(file: WalFile) -> float:
    """Return when a file was last written, in seconds since the epoch; the present time if it was removed."""
    try:
        found = os.stat(file.path)
        return found.st_mtime or found.st_ctime  # mtime is 0 if it was written before its name was synced
    except OSError:
        return time.time()


def open_to_read(path: str) -> int | None:
    """Open a file of a write-ahead log, without following links or blocking on a pipe; None if it was removed."""
    try:
        return local_files.open_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return None


def sync_data(handle: int) -> None:
    """Sync the content of a file, which then survives a power loss."""
    getattr(os, "fdatasync", os.fsync)(handle)


def sync_folder(folder: str) -> None:
    """Sync the names in a folder, which then survive a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_names(folder: str, names: Iterable[str], *, parents: bool = False) -> None:
    """Sync the names of empty generations, and record that in their modification times.

    Args:
        parents: Also sync the name of the folder and that of its parent.
    """
    parent = os.path.dirname(folder)
    for each in (folder, parent, os.path.dirname(parent)) if parents else (folder,):
        sync_folder(each)
    for name in names:
        try:
            local_files.utime(os.path.join(folder, name), (NAME_IS_SYNCED * 10**9,) * 2)
        except OSError:
            continue  # the file is another user's; its first writer syncs the name again


def note_commit(state: str, commit: str, parent: str, files: Iterable[WalFile]) -> None:
    """Record which files of a state folder a commit was made of. Never raise an error.

    Args:
        files: The files, with the sizes that were read. Nothing is recorded if one is in another folder.
    """
    from .. import local_files

    read = [file for file in files if file.size]
    rows = [f"{commit} {parent} {len(read)}", *(f"{file.name} {file.size}" for file in read), ""]
    try:
        if all(os.path.dirname(file.folder) == state for file in read):
            local_files.replace(os.path.join(state, COMMITTED), "\n".join(rows).encode())
    except OSError:
        return


def have_commit(state: str, commit: str, parent: str, files: Iterable[WalFile]) -> bool:
    """Return whether files certainly have all lines that a commit adds to its parent.

    Args:
        files: The files that are still there, listed before the log's ref was read.
    """
    head, _, rest = (
        local_files.read(os.path.join(state, COMMITTED)).decode("ascii", "replace").partition("\n")
    )
    sizes = {file.name: file.size for file in files if os.path.dirname(file.folder) == state}
    try:
        known = [(name, int(size)) for name, _, size in (row.partition(" ") for row in rest.split("\n")[:-1])]
    except ValueError:
        return False
    is_this = head == f"{commit} {parent} {len(known)}"
    return is_this and all(sizes.get(name, -1) >= size for name, size in known)


def is_private(folder: str) -> bool:
    """Return whether only this user can have put files into a folder: own uid, mode 0700, not a link."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000


def fingerprint(repo: Repo) -> str | None:
    """Describe the state in a text that changes whenever the log's lines or the clone's accepted lines change.

    It contains the names and sizes of the write-ahead log files, the commit of the ref (read after them, because a file
    is removed only after its commit), and the sizes of the ledger and of the ref's reflog, as a ref that was moved back
    has a commit that it had before.

    Returns:
        The text; None without a ledger, and for a ref that is packed or in a reftable.
    """
    state = repo.state
    files = [file for file in list_files(os.path.join(state, "wal")) if file.size]
    tip = plain_tip(repo.common, LOG_REF)
    try:
        known = os.stat(os.path.join(state, "ledger"))
    except OSError:
        return None
    if tip is None:
        return None
    try:
        moves = os.stat(os.path.join(repo.common, "logs", *LOG_REF.split("/"))).st_size
    except OSError:
        moves = 0  # reflogs are off
    sizes = f"{known.st_ino}:{known.st_size}:{moves}"
    return " ".join([tip, sizes, *(f"{file.name}:{file.size}" for file in files)])
