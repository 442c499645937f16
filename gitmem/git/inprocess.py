"""The git port for long-lived processes: it reads objects in process, through dulwich, and caches them.

Objects that dulwich does not find or cannot read are read by the git program.
"""

from __future__ import annotations

import os
import zlib

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
from dulwich.object_format import get_object_format
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID

from . import files
from .objects import is_empty_tree
from .port import Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .objects import Commit, TreeEntry

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
    """The objects of one folder, without its alternates.

    Dulwich reads alternates as sha1, and loops forever if two folders are alternates of each other.
    """

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return []


class DulwichGit(Git):
    """One repository, read in process. Not thread-safe."""

    trees_kept_max = 1_024
    commits_kept_max = 4_096
    message_chars_kept_max = 16 * 1024 * 1024  # of all cached commits
    object_bytes_kept_max = 8 * 1024 * 1024

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._store: _Store | None = None
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._commits: dict[str, Commit] = {}
        self._kept_chars = 0
        self._objects: dict[str, tuple[bytes, bytes]] = {}
        self._kept_bytes = 0

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """Return one level of a tree, cached: consecutive commits touch the same few trees."""
        entries = self._trees.get(oid)
        if entries is None:
            entries = {} if is_empty_tree(oid) else super().tree(oid)
            if len(self._trees) >= self.trees_kept_max:
                del self._trees[next(iter(self._trees))]
            self._trees[oid] = entries
        return dict(entries)

    def commit(self, oid: str) -> Commit:
        """Return a commit, cached: a sync reads the same few hundred commits repeatedly."""
        found = self._commits.get(oid)
        if found is None:
            found = super().commit(oid)
            if found.parents:  # else it may be the boundary of a shallow clone, which can move
                self._commits[oid] = found
                self._kept_chars += len(found.message)
            while (
                len(self._commits) > self.commits_kept_max or self._kept_chars > self.message_chars_kept_max
            ):
                self._kept_chars -= len(self._commits.pop(next(iter(self._commits))).message)
        return found

    def close(self) -> None:
        """Close the packs too. A later read opens them again."""
        self._objects, self._kept_bytes = {}, 0
        store, self._store = self._store, None
        if store is not None:
            store.close()
        super().close()

    def read(self, oid: str) -> tuple[bytes, bytes]:
        """Return an object's kind and content, cached: a sync compares the same objects repeatedly.

        Raises:
            KeyError: the object is missing or damaged.
        """
        found = self._objects.get(oid)
        if found is None:
            found = self._objects[oid] = self._read(oid)
            self._kept_bytes += len(found[1])
            while self._kept_bytes > self.object_bytes_kept_max:
                self._kept_bytes -= len(self._objects.pop(next(iter(self._objects)))[1])
        return found

    def has(self, oid: str) -> bool:
        """Return whether the object exists now; the cache is not used."""
        try:
            self._read(oid)
        except KeyError:
            return False
        return True

    def _read(self, oid: str) -> tuple[bytes, bytes]:
        if not self._is_id(oid):
            raise KeyError(oid)
        if self._store is None:
            form = get_object_format(files.ALGORITHMS[self.id_length])
            self._store = _Store(os.path.join(self.common, "objects"), object_format=form)
        try:
            number, content = self._store.get_raw(ObjectID(oid.encode("ascii")))
            return _KINDS[number], content
        except _UNREADABLE:  # damaged, with perhaps an intact copy elsewhere; in an alternate; or missing
            return super().read(oid)
