"""Users' files with something of ours: one interface for all kinds; written all or none, and given back byte for byte.

Files with something of ours in them: one interface for all kinds, and the kind of file that is entirely ours.

A kind recognizes what is ours in a content, adds it and removes it. Reading, refusing and writing are the same for all.

Read the user's files, and replace them: all of several files or none, with links and modes kept.

Links in the home folder are the user's own (many users keep these files in a separate repository), and are followed.
Links in a work tree come with the repository, and may not lead out of it.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from typing import NamedTuple

from .. import local_files
from ..errors import GitmemError, StoreError, UsageError
from ..outcome import Struct, command
from ..text.digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


SIZE_MAX = 1 << 20  # bytes; a repository may have a larger file in a client's place


def bare_message(error: GitmemError) -> str:
    """Return an error's message without "nothing was written", for a report on several files."""
    return error.message.replace(". Nothing was written.", ".")


def problem_of(error: GitmemError) -> str:
    """Return an error and its remedy for a report on several files."""
    return f"{bare_message(error)} {error.hint}".strip()


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


def read_file(path: str, top: str | None = None) -> bytes | None:
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


class Written(Struct):
    """Changes that are written together: an error within its `with` block undoes those before it.

    Attributes:
        files: The files that were changed, in order.
        folders: The folders that were created for them, the outermost first.
    """

    files: list[str] = []
    folders: list[str] = []
    _undo: list[FileChange] = []

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


def write_files(changes: Sequence[FileChange]) -> list[str]:
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
        if read_file(target) != change.before:
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
            descriptor = local_files.open_file(temporary, flags, 0o777 if runs else 0o666)
        else:  # nobody else may read it before it has the mode of the file, which may hold secrets
            descriptor = local_files.open_file(temporary, flags, 0o600, private=True)
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
        local_files.adjust(each)
        made.append(each)


def remove_folders(folders: Sequence[str]) -> None:
    """Remove the empty ones of these folders, the innermost first."""
    for folder in sorted(folders, key=len, reverse=True):
        try:
            os.rmdir(folder)
        except OSError:
            continue


WORDS = "gitmem: written by gitmem setup"  # in each file that is entirely ours
_MARK = b"gitmem: written by gitmem"  # in those of every version
_WITHIN = 400  # bytes


def installed_content(name: str) -> str:
    """Return what install writes, from a file of this package; see `files/`."""
    with open(os.path.join(os.path.dirname(__file__), "files", name), encoding="utf-8", newline="") as file:
        return file.read()


class ManagedFile(ABC):
    """A file that has something of ours, or shall have it.

    Attributes:
        path: The file.
        top: The work tree that it must be in once links are resolved; None for a file that may be anywhere.
        runs: Whether a new file is executable.
    """

    def __init__(self, path: str, *, top: str | None = None, runs: bool = False) -> None:
        self.path = path
        self.top = top
        self.runs = runs

    @abstractmethod
    def has_ours(self, content: bytes | None) -> bool:
        """Return whether a content has anything of ours."""

    @abstractmethod
    def is_current(self, content: bytes) -> bool:
        """Return whether a content, which has something of ours, is as install would write it."""

    @abstractmethod
    def with_ours(self, content: bytes | None) -> bytes:
        """Return a content with what is ours added, or updated."""

    @abstractmethod
    def without_ours(self, content: bytes) -> bytes | None:
        """Return a content, which has something of ours, as it was before; None for no file."""

    def read(self) -> bytes | None:
        """Return the content, or None if there is no file.

        Raises:
            UsageError: `outside`, see `resolve_inside`.
            StoreError: The file can't be read.
        """
        return read_file(self.path, self.top)

    def install(self) -> FileChange:
        """Return the change that adds what is ours, or updates it.

        Raises:
            UsageError, StoreError: The file is not ours, broken or not readable.
        """
        before = self.read()
        is_current = before is not None and self.has_ours(before) and self.is_current(before)
        after = before if is_current else self.with_ours(before)
        return FileChange(self.path, before, after, self.runs, top=self.top)

    def remove(self) -> FileChange:
        """Return the change that removes what is ours.

        Raises:
            UsageError, StoreError: The file is broken or not readable.
        """
        before = self.read()
        after = self.without_ours(before) if before is not None and self.has_ours(before) else before
        return FileChange(self.path, before, after, top=self.top)


class OwnFile(ManagedFile):
    """A file that we write whole. It contains our mark; a file without the mark is not ours. Lines that the user has added stay when it is removed."""

    def __init__(self, path: str, content: str, *, top: str | None = None, runs: bool = False) -> None:
        super().__init__(path, top=top, runs=runs)
        self.content = content.encode()

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether a file has our mark."""
        return content is not None and _MARK in content[:_WITHIN]

    def is_current(self, content: bytes) -> bool:
        """Return whether it is this version's file. A file that no shell runs may have CRLF, as git may check it out."""
        return self._as_written(content) == self.content

    def _as_written(self, content: bytes) -> bytes:
        return content if self.runs else content.replace(b"\r\n", b"\n")

    def added(self, content: bytes) -> bytes | None:
        """Return the lines of a file beside ours; None if it does not have all of this version's."""
        ours, others = self.content.splitlines(keepends=True), []
        for line in self._as_written(content).splitlines(keepends=True):
            if ours and line == ours[0]:
                del ours[0]
            else:
                others.append(line)
        return None if ours else b"".join(others)

    def with_ours(self, content: bytes | None) -> bytes:
        """Return this version's file; see `ManagedFile.with_ours`."""
        if content is not None and not self.has_ours(content):
            raise UsageError(
                f"{self.path} was not created by gitmem. Nothing was written.",
                hint="gitmem needs that name: move the file, or leave this client out.",
                code="foreign-file",
            )
        return self.content

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the lines that the user has added; None if there are none, or it is another version's file."""
        return self.added(content) or None

    def read(self) -> bytes | None:
        """Return the content; "" for a file that is too large to be ours."""
        try:
            return super().read()
        except StoreError as error:
            if error.code != "too-large":
                raise
            return b""


class InstallRecord(NamedTuple):
    """The record of an installation, kept until uninstall, which restores the user's files byte for byte with it.

    It is optional: without it, as in another clone, uninstall removes what it recognizes.

    Attributes:
        is_new: Whether install created the settings file.
        after: The digest of the settings as it left them; "" if it did not change them.
        ranges: The spans in that text that it added. They are exact even where a part occurs more than once.
        inserted: The texts in these spans; they are found again where the user has edited the file around them.
        made: The members that it added: `hooks` and `hooks.EVENT`.
        folders: The folders that it created.
    """

    is_new: bool = False
    after: str = ""
    ranges: Sequence[tuple[int, int]] = ()
    inserted: Sequence[str] = ()
    made: Sequence[str] = ()
    folders: Sequence[str] = ()

    def encode(self) -> bytes:
        """Return the record as a line of JSON."""
        return (json.dumps(self._asdict()) + "\n").encode()

    def insert(self, text: str, parts: Sequence[tuple[int, str]]) -> tuple[str, InstallRecord]:
        """Return a text with parts inserted at ascending offsets of it, and this record with these parts."""
        ranges: list[tuple[int, int]] = []
        added = 0
        for at, part in parts:
            start, added = at + added, added + len(part)
            text = text[:start] + part + text[start:]
            ranges.append((start, start + len(part)))
        inserted = [part for _, part in parts]
        return text, self._replace(after=_digest(text), ranges=ranges, inserted=inserted)

    def cut(self, text: str) -> str | None:
        """Return a text without what install inserted; None if the text is not as install left it."""
        if self.after != _digest(text):
            return None
        for start, end in reversed(self.ranges):
            text = text[:start] + text[end:]
        return text


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def read_record(path: str) -> InstallRecord | None:
    """Return the record in a file, or None if there is no usable one."""
    try:
        values = json.loads(local_files.load(path))
        return InstallRecord(
            is_new=bool(values["is_new"]),
            after=str(values["after"]),
            ranges=[(int(start), int(end)) for start, end in values["ranges"]],
            inserted=[str(each) for each in values["inserted"]],
            made=[str(each) for each in values["made"]],
            folders=[str(each) for each in values["folders"]],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
