"""The port for a process that lives on: it reads objects in the process, through dulwich, and remembers what it read.

What dulwich does not find or can't read goes to the git program.
"""

from __future__ import annotations

import os
import zlib

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
from dulwich.object_format import get_object_format
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID

from . import formats
from .objects import is_empty_tree
from .plumbing import Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .port import Commit, TreeEntry

TREES_KEPT_MAX = 1_024
COMMITS_KEPT_MAX = 4_096
MESSAGE_CHARS_KEPT_MAX = 16 * 1024 * 1024  # of all commits that are kept
OBJECT_BYTES_KEPT_MAX = 8 * 1024 * 1024
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_UNREADABLE = (
    KeyError,
    OSError,
    zlib.error,
    ValueError,
    AssertionError,
    IndexError,
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
)


class _Store(DiskObjectStore):
    """The objects of one folder. Dulwich takes what it borrows from for sha1, and never ends where two lend each other."""

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return []


class DulwichGit(Git):
    """One repository in this process. Not for several threads at once."""

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._store: _Store | None = None
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._commits: dict[str, Commit] = {}
        self._kept_chars = 0
        self._objects: dict[str, tuple[bytes, bytes]] = {}
        self._kept_bytes = 0

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """A commit touches the same few trees as the one before."""
        entries = self._trees.get(oid)
        if entries is None:
            entries = {} if is_empty_tree(oid) else super().tree(oid)
            if len(self._trees) >= TREES_KEPT_MAX:
                del self._trees[next(iter(self._trees))]
            self._trees[oid] = entries
        return dict(entries)

    def commit(self, oid: str) -> Commit:
        """What was read once is kept: a sync asks for the same few hundred again and again."""
        found = self._commits.get(oid)
        if found is None:
            found = super().commit(oid)
            if found.parents:  # else a shallow clone may be cut there, for now
                self._commits[oid] = found
                self._kept_chars += len(found.message)
            while len(self._commits) > COMMITS_KEPT_MAX or self._kept_chars > MESSAGE_CHARS_KEPT_MAX:
                self._kept_chars -= len(self._commits.pop(next(iter(self._commits))).message)
        return found

    def close(self) -> None:
        """Close the packs, too. A later read opens them again."""
        self._objects, self._kept_bytes = {}, 0
        store, self._store = self._store, None
        if store is not None:
            store.close()
        super().close()

    def read(self, oid: str) -> tuple[bytes, bytes]:
        """An object's kind and content. KeyError where it is missing or damaged. A sync compares the same ones again and again."""
        found = self._objects.get(oid)
        if found is None:
            found = self._objects[oid] = self._read(oid)
            self._kept_bytes += len(found[1])
            while self._kept_bytes > OBJECT_BYTES_KEPT_MAX:
                self._kept_bytes -= len(self._objects.pop(next(iter(self._objects)))[1])
        return found

    def has(self, oid: str) -> bool:
        """Whether it is here now: what is remembered does not count."""
        try:
            self._read(oid)
        except KeyError:
            return False
        return True

    def _read(self, oid: str) -> tuple[bytes, bytes]:
        if not self._is_id(oid):
            raise KeyError(oid)
        if self._store is None:
            form = get_object_format(formats.ALGORITHMS[self.id_length])
            self._store = _Store(os.path.join(self.common, "objects"), object_format=form)
        try:
            number, content = self._store.get_raw(ObjectID(oid.encode("ascii")))
            return _KINDS[number], content
        except _UNREADABLE:  # damaged, perhaps whole elsewhere; borrowed; or missing
            return super().read(oid)
