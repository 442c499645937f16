"""The floor of writing: the objects and the ref of an append, written with dulwich and nothing else."""

from __future__ import annotations

import os
import stat
import time

from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.refs import DiskRefsContainer, Ref

REF = Ref(b"refs/gitmem/log")


class Hand:
    """One repository, its objects fsynced and compressed as git does."""

    def __init__(self, common: str) -> None:
        self.store = DiskObjectStore(
            os.path.join(common, "objects"), loose_compression_level=1, fsync_object_files=True
        )
        self.refs = DiskRefsContainer(common)

    def tip(self) -> ObjectID:
        return self.refs[REF]

    def append(self, tip: ObjectID, path: str, content: bytes, like: Commit) -> ObjectID:
        """Commit a file's content with the words and people of another commit, and move the ref."""
        parent = self.store[tip]
        assert isinstance(parent, Commit)
        blob = Blob.from_string(content)
        self.store.add_object(blob)
        commit = Commit()
        commit.tree = self._tree(parent.tree, path.encode().split(b"/"), blob)
        commit.parents = [tip]
        commit.author, commit.committer, commit.message = like.author, like.committer, like.message
        commit.author_time = commit.commit_time = int(time.time())
        commit.author_timezone = commit.commit_timezone = 0
        self.store.add_object(commit)
        if not self.refs.set_if_equals(REF, tip, commit.id, message=b"append"):
            raise RuntimeError("the ref was moved by somebody else")
        return commit.id

    def read(self, tip: ObjectID, path: str) -> bytes:
        """The content of a file; empty where there is none."""
        commit = self.store[tip]
        assert isinstance(commit, Commit)
        oid = commit.tree
        for name in path.encode().split(b"/"):
            tree = self.store[oid]
            assert isinstance(tree, Tree)
            if name not in tree:
                return b""
            oid = tree[name][1]
        return self.store[oid].as_raw_string()

    def _tree(self, oid: ObjectID | None, names: list[bytes], blob: Blob) -> ObjectID:
        tree = Tree() if oid is None else self.store[oid]
        assert isinstance(tree, Tree)
        name, *below = names
        if below:
            inner = tree[name][1] if name in tree else None
            tree[name] = (stat.S_IFDIR, self._tree(inner, below, blob))
        else:
            tree[name] = (0o100644, blob.id)
        self.store.add_object(tree)
        return tree.id
