"""The floor of writing: the objects and the ref update of an append, made with dulwich alone."""

from __future__ import annotations

import os
import random
import stat
import time

from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.refs import DiskRefsContainer, Ref

from gitmem.log import ref
from gitmem.log.union import union

from . import workbench

REF = Ref(b"refs/gitmem/log")
AUTHOR = b"A Person <person@example.org>"


class DulwichRepository:
    """One repository. Objects are fsynced and compressed as git does it; trees written here are cached."""

    def __init__(self, common: str) -> None:
        objects = os.path.join(common, "objects")
        self.store = DiskObjectStore(objects, loose_compression_level=1, fsync_object_files=True)
        self.refs = DiskRefsContainer(common)
        self._trees: dict[ObjectID, Tree] = {}
        self._root: tuple[ObjectID, ObjectID] | None = None  # the last commit, and its tree

    def tip(self) -> ObjectID:
        """Return the commit of the log's ref."""
        return self.refs[REF]

    def commit(self, oid: ObjectID) -> Commit:
        """Return a commit by its id."""
        found = self.store[oid]
        assert isinstance(found, Commit)
        return found

    def read(self, tip: ObjectID, path: str) -> bytes:
        """Return the content of a file in a commit; empty if it does not exist."""
        oid = self._root_of(tip)
        for name in path.encode().split(b"/"):
            tree = self.store[oid]
            assert isinstance(tree, Tree)
            if name not in tree:
                return b""
            oid = tree[name][1]
        return self.store[oid].as_raw_string()

    def append(self, tip: ObjectID, path: str, content: bytes, author: bytes, message: bytes) -> ObjectID:
        """Commit a file's new content onto the tip, and move the ref. Return the commit."""
        blob = Blob.from_string(content)
        self.store.add_object(blob)
        commit = Commit()
        commit.tree = self._tree(self._root_of(tip), path.encode().split(b"/"), blob)
        commit.parents = [tip]
        commit.author = commit.committer = author
        commit.message = message
        commit.author_time = commit.commit_time = int(time.time())
        commit.author_timezone = commit.commit_timezone = 0
        self.store.add_object(commit)
        if not self.refs.set_if_equals(REF, tip, commit.id, message=b"append"):
            raise RuntimeError("somebody else moved the ref")
        self._root = (commit.id, commit.tree)
        return commit.id

    def _root_of(self, tip: ObjectID) -> ObjectID:
        if self._root is not None and self._root[0] == tip:
            return self._root[1]
        tree: ObjectID = self.commit(tip).tree
        return tree

    def _tree(self, oid: ObjectID | None, names: list[bytes], blob: Blob) -> ObjectID:
        tree = self._own(oid)
        name, *below = names
        if below:
            inner = tree[name][1] if name in tree else None
            tree[name] = (stat.S_IFDIR, self._tree(inner, below, blob))
        else:
            tree[name] = (0o100644, blob.id)
        self.store.add_object(tree)
        written: ObjectID = tree.id
        self._trees[written] = tree
        return written

    def _own(self, oid: ObjectID | None) -> Tree:
        """Return a tree to change: a new one, a cached one, or one read from the disk."""
        if oid is None:
            return Tree()
        found = self._trees.pop(oid, None) or self.store[oid]
        assert isinstance(found, Tree)
        return found


class SegmentWriter:
    """Signals of one writer, appended to its open segment by hand."""

    def __init__(self, repository: DulwichRepository, dice: random.Random) -> None:
        self.repository = repository
        self.dice = dice
        self.token = workbench.token(dice)
        self._last: tuple[ObjectID, str, bytes] | None = None  # commit, path and content of the last segment

    def signal(self, line: bytes, message: str) -> None:
        """Commit one signal's line. The content that this object wrote last is cached."""
        tip = self.repository.tip()
        path = ref.segment_path("signals", line, self.token)
        known = self._last is not None and self._last[:2] == (tip, path)
        before = self._last[2] if self._last is not None and known else self.repository.read(tip, path)
        content = union(before, line)
        new = self.repository.append(tip, path, content, AUTHOR, message.encode())
        self._last = (new, path, content)
        if len(content) >= ref.SEGMENT_MAX_BYTES:
            self.token = workbench.token(self.dice)


def message(sender: str, to: str, text: str, signal: str) -> str:
    """Return a commit message in gitmem's form."""
    trailers = (
        f"Signal: {signal}\nThread: thread-{signal[4:]}\nWU: WU-1\nAgent: {workbench.identity(sender)}\n"
    )
    return f"{sender} → {to}: {text}\n\n{text}\n\n{trailers}"
