"""The port for a process that lives on: it reads objects in the process, through dulwich, and remembers what it read.

What dulwich does not find or can't read goes to the git program, and so do long or branched histories.
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
    from collections.abc import Iterable

    from .port import Commit, Entry

TREES_KEPT_MAX = 1_024
COMMITS_KEPT_MAX = 4_096
OBJECT_BYTES_KEPT_MAX = 8 * 1024 * 1024
STEPS_BY_HAND_MAX = 128  # a git that starts costs as much as reading that many commits
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
        self._trees: dict[str, dict[str, Entry]] = {}
        self._commits: dict[str, Commit] = {}
        self._objects: dict[str, tuple[bytes, bytes]] = {}
        self._kept_bytes = 0

    def tree(self, oid: str) -> dict[str, Entry]:
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
            if len(self._commits) >= COMMITS_KEPT_MAX:
                del self._commits[next(iter(self._commits))]
            if found.parents:  # else a shallow clone may be cut there, for now
                self._commits[oid] = found
        return found

    def history(self, tip: str, without: Iterable[str] = ()) -> list[str]:
        """Commits that `tip` reaches and none of `without` does, parents before children.

        KeyError where `tip` is missing; what is missing of `without` excludes nothing.
        """
        hidden = set(without)
        line, ended = self._line(tip, hidden)
        # A line down to the only hidden commit, or to the root, has nothing that is hidden in between.
        if ended and (
            not hidden or (len(hidden) == 1 and (not line or hidden & set(self._parents(line[-1]))))
        ):
            return line[::-1]
        return super().history(tip, hidden)

    def contains(self, tip: str, oid: str) -> bool:
        """Whether `oid` is `tip` or an ancestor of it. KeyError where `tip` is missing."""
        line, ended = self._line(tip, {oid})
        if not ended:
            return super().contains(tip, oid)
        return not line or oid in self._parents(line[-1])

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

    def _parents(self, oid: str) -> list[str]:
        return self.commit(oid).parents

    def _line(self, tip: str, stops: set[str]) -> tuple[list[str], bool]:
        """The commits from `tip` down to one of `stops` (exclusive) or to the root; whether it got there."""
        line: list[str] = []
        at = tip
        while at not in stops:
            parents = self._parents(at)
            line.append(at)
            if not parents:
                return line, True
            if len(parents) > 1 or len(line) >= STEPS_BY_HAND_MAX:
                return line, False
            at = parents[0]
        if not line:
            self._parents(tip)  # KeyError where it is missing
        return line, True
