"""Files with something of ours in them: one interface for all kinds, and the kind of file that is entirely ours.

A kind recognizes what is ours in a content, adds it and removes it. Reading, refusing and writing are the same for all.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from typing import NamedTuple

from .. import state_files
from ..digests import sha256
from ..errors import StoreError, UsageError
from ..outcome import command
from . import user_files
from .user_files import FileChange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = "gitmem: written by gitmem hooks install"  # in each file that is entirely ours
_WITHIN = 400  # bytes


def content(name: str) -> str:
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
        """Return the content, or None if there is no file; see `user_files.read` for errors."""
        return user_files.read(self.path, self.top)

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
    """A file that is entirely ours. It contains our mark; a file without the mark is not ours."""

    def __init__(self, path: str, content: str, *, top: str | None = None, runs: bool = False) -> None:
        super().__init__(path, top=top, runs=runs)
        self.content = content.encode()

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether a file has our mark."""
        return content is not None and WORDS.encode() in content[:_WITHIN]

    def is_current(self, content: bytes) -> bool:
        """Return whether it is this version's file."""
        return content == self.content

    def with_ours(self, content: bytes | None) -> bytes:
        """Return this version's file; see `ManagedFile.with_ours`."""
        if content is not None and not self.has_ours(content):
            raise UsageError(
                f"{self.path} was not created by gitmem. Nothing was written.",
                hint="gitmem needs that name: move the file, or leave this client out.",
                code="foreign-file",
                next=[command("gitmem", "hooks", "status")],
            )
        return self.content

    def without_ours(self, content: bytes) -> None:
        """Return None: nothing in the file is anybody else's."""
        return

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
        values = json.loads(state_files.load(path))
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
