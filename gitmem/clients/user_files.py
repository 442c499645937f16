"""Read the user's files, and replace them: all of several files or none, with links and modes kept.

Links in the home folder are the user's own (many users keep these files in a separate repository), and are followed.
Links in a work tree come with the repository, and may not lead out of it.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from .. import state_files
from ..errors import GitmemError, StoreError, UsageError
from ..outcome import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE_MAX = 1 << 20  # bytes; a repository may have a larger file in a client's place


class FileChange(NamedTuple):
    """The change of one file.

    Attributes:
        path: The file.
        before, after: Its content; None for no file.
        runs: Whether the file is executable afterwards.
        top: The work tree that the file must be in once links are resolved; None for a file that may be anywhere.
        mode: The mode of a new file; None for that of `runs` and the umask.
    """

    path: str
    before: bytes | None
    after: bytes | None
    runs: bool = False
    top: str | None = None
    mode: int | None = None

    @property
    def needed(self) -> bool:
        """Whether the change has any effect."""
        return self.before != self.after or (
            self.runs and self.after is not None and not os.access(self.path, os.X_OK)
        )


def resolve_inside(path: str, top: str) -> str:
    """Return a path of a work tree with all links resolved.

    Args:
        path: A file or folder, which need not exist.
        top: The top of the work tree.

    Raises:
        UsageError: `outside` if a link leads out of the work tree, or into a git folder.
    """
    above, real = os.path.realpath(top), os.path.realpath(path)
    parts = os.path.relpath(real, above).split(os.sep)
    if parts[0] != os.pardir and ".git" not in map(str.lower, parts):
        return real
    where = "into a git folder" if parts[0] != os.pardir else "outside of the work tree"
    raise UsageError(
        f"{path} is a link to {real}, {where}. Nothing was written.",
        hint="The link is part of the repository. Replace the link, or run the command in the folder of its target.",
        code="outside",
        next=[command("ls", "-ld", os.path.dirname(path), path)],
    )


def read(path: str, top: str | None = None) -> bytes | None:
    """Return the content of a file, or None if it does not exist.

    Args:
        path: The file.
        top: The work tree that the file must be in once links are resolved.

    Raises:
        UsageError: `outside`, see `resolve_inside`.
        StoreError: The file can't be read.
    """
    if top is not None:
        path = resolve_inside(path, top)
    try:
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode) and found.st_size <= SIZE_MAX:
            with open(path, "rb") as file:
                return file.read(SIZE_MAX)
        reason, code = ("it is not a file", "unreadable-file")
        if stat.S_ISREG(found.st_mode):
            reason, code = (f"it has {found.st_size} bytes; at most {SIZE_MAX} are read", "too-large")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason, code = (str(error.strerror), "unreadable-file")
    raise StoreError(
        f"Cannot read {path} ({reason}). Nothing was written.",
        hint="Check the file and its permissions.",
        code=code,
        next=[command("ls", "-ld", os.path.dirname(path), path)],
    )


class Written:
    """Changes that are written together: an error within its `with` block undoes those before it.

    Attributes:
        files: The files that were changed, in order.
        folders: The folders that were created for them, the outermost first.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.folders: list[str] = []
        self._undo: list[FileChange] = []

    def apply(self, change: FileChange, *, note: bool = False) -> None:
        """Write a change if it has any effect.

        Args:
            note: Whether the file is a note of ours: it is not reported, and an error with it is ignored.

        Raises:
            UsageError: `outside`, see `resolve_inside`; the file is unchanged.
            StoreError: The file can't be written, or it was changed since it was read; it is unchanged.
        """
        if not change.needed:
            return
        try:
            mode = _apply(change, self.folders)
        except GitmemError:
            if note:
                return
            raise
        self._undo.append(FileChange(change.path, change.after, change.before, top=change.top, mode=mode))
        if not note:
            self.files.append(change.path)

    def __enter__(self) -> Written:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        left = []
        for change in reversed(self._undo):
            try:
                _apply(change, [])
            except GitmemError:
                left.append(change.path)
        remove_folders(self.folders)
        if left and isinstance(error, GitmemError):
            error.message += f" Files already written by this run could not be restored: {', '.join(left)}."


def write(changes: Sequence[FileChange]) -> list[str]:
    """Write changes, all or none, and return the files that were changed.

    Raises:
        UsageError, StoreError: As in `Written.apply`; every file is unchanged.
    """
    with Written() as written:
        for change in changes:
            written.apply(change)
    return written.files


def _apply(change: FileChange, made: list[str]) -> int | None:
    """Write a change; return the mode that the file had, or None if there was none.

    Args:
        made: Receives the folders that were created for it, the outermost first.

    Raises:
        UsageError: `outside`, see `resolve_inside`; the file is unchanged.
        StoreError: The file can't be written, or it was changed since it was read; it is unchanged.
    """
    target = os.path.realpath(change.path) if change.top is None else resolve_inside(change.path, change.top)
    try:
        if read(target) != change.before:
            raise StoreError(
                f"Another process has just changed {change.path}. gitmem did not change it.",
                hint="Run the command again.",
                code="changed-meanwhile",
            )
        old = os.stat(target) if change.before is not None else None
        mode = stat.S_IMODE(old.st_mode) if old is not None else None
        if change.after is None:
            os.unlink(target)
        else:
            _make_folders(os.path.dirname(target), made)
            _replace(target, change.after, change.runs, mode if mode is not None else change.mode, old)
    except OSError as error:
        raise StoreError(
            f"Cannot write {change.path} ({error.strerror}). The file is unchanged.",
            hint="Check the permissions of that file and its folder, whether it is immutable (lsattr), and the free disk space; then run the command again.",
            code="unwritable-file",
            next=[command("ls", "-ld", os.path.dirname(change.path), change.path)],
        ) from None
    return mode


def _replace(
    target: str, content: bytes, runs: bool, mode: int | None, old: os.stat_result | None = None
) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.gitmem-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        if mode is None:
            descriptor = state_files.open_file(temporary, flags, 0o777 if runs else 0o666)
        else:  # nobody else may read it before it has the mode of the file, which may hold secrets
            descriptor = state_files.open_file(temporary, flags, 0o600, private=True)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if old is not None and os.geteuid() == 0:  # as root: the file stays its owner's
            os.chown(temporary, old.st_uid, old.st_gid)
        if mode is not None:
            os.chmod(temporary, mode | (mode & 0o444) >> 2 if runs else mode)
        os.replace(temporary, target)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def _make_folders(folder: str, made: list[str]) -> None:
    """Create a folder and its parents; append the new ones to `made`, the outermost first."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        os.mkdir(each)
        state_files.adjust(each)
        made.append(each)


def remove_folders(folders: Sequence[str]) -> None:
    """Remove the empty ones of these folders, the innermost first."""
    for folder in sorted(folders, key=len, reverse=True):
        try:
            os.rmdir(folder)
        except OSError:
            continue
