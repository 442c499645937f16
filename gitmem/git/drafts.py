"""Create the objects of a chain of drafted commits: blobs, commits, and a new tree for each changed folder."""

from __future__ import annotations

from .objects import EMPTY_TREES, format_commit, format_tree, is_empty_tree, path_parts, plain_mode
from .packfile import object_id
from .port import FILE_MODE, TREE_MODE, TreeEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .port import Draft, ObjectReads

    Folder = dict[str, "TreeEntry | Folder"]

_LINK = "160000"  # a submodule; its commit is in another repository


class DraftObjects:
    """The objects of commits to be written: kind and content by id.

    Args:
        git: The repository that is read from and written to.
        id_length: Number of hex digits of an object id there.
    """

    def __init__(self, git: ObjectReads, id_length: int) -> None:
        self.objects: dict[str, tuple[bytes, bytes]] = {}
        self._git = git
        self._id_length = id_length
        self._trees: dict[str, dict[str, TreeEntry]] = {}

    def add(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Add a commit for each draft, the first on `onto` (None: a root), and return their ids.

        Raises:
            KeyError: with the id of a missing object.
            ValueError: git would reject a path.
        """
        tree = EMPTY_TREES[self._id_length] if onto is None else self._git.commit(onto).tree
        self._check(drafts)
        oids: list[str] = []
        for draft in drafts:
            tree = self._add_tree(draft, tree)
            parents = [] if onto is None else [onto]
            data = format_commit(tree, parents, draft.author, draft.committer, draft.message)
            onto = self._add(b"commit", data)
            oids.append(onto)
        return oids

    def _check(self, drafts: Sequence[Draft]) -> None:
        """Raise KeyError if an object that a draft refers to is missing."""
        entries = [each for draft in drafts for each in draft.changes.values() if isinstance(each, TreeEntry)]
        wanted = [each.oid for each in entries if each.mode != _LINK and not is_empty_tree(each.oid)]
        found = self._git.heads(wanted) if wanted else {}
        for oid in wanted:
            if oid not in found:
                raise KeyError(oid)

    def _add(self, kind: bytes, content: bytes) -> str:
        oid = object_id(kind, content, self._id_length)
        self.objects[oid] = (kind, content)
        return oid

    def _tree(self, oid: str) -> dict[str, TreeEntry]:
        if is_empty_tree(oid):
            return {}
        known = self._trees.get(oid)
        return dict(self._git.tree(oid) if known is None else known)

    def _add_tree(self, draft: Draft, parent: str) -> str:
        """Add the changed trees and blobs of a draft, and return the id of the root tree."""
        root: Folder = dict(self._tree(draft.tree or parent))
        for path, change in draft.changes.items():
            names = path_parts(path)
            if isinstance(change, bytes):
                change = TreeEntry(FILE_MODE, self._add(b"blob", change))
            elif change is not None:  # git stores no empty folders
                change = None if is_empty_tree(change.oid) else TreeEntry(plain_mode(change), change.oid)
            self._change(root, names, change)
        return self._add_folder(root)

    def _change(self, folder: Folder, names: list[str], change: TreeEntry | None) -> None:
        for name in names[:-1]:
            inner = folder.get(name)
            if isinstance(inner, TreeEntry) and inner.is_tree:
                inner = dict(self._tree(inner.oid))
            elif not isinstance(inner, dict):
                if change is None:
                    return
                inner = {}
            folder[name] = inner
            folder = inner
        if change is None:
            folder.pop(names[-1], None)
        else:
            folder[names[-1]] = change

    def _add_folder(self, folder: Folder) -> str:
        entries: dict[str, TreeEntry] = {}
        for name, inner in folder.items():
            if isinstance(inner, TreeEntry):
                entries[name] = inner
            else:
                oid = self._add_folder(inner)
                if not is_empty_tree(oid):
                    entries[name] = TreeEntry(TREE_MODE, oid)
        oid = self._add(b"tree", format_tree(entries))
        self._trees[oid] = entries
        return oid
