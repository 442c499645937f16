"""The port inside this process, for one that lives on: packs through dulwich, the rest on files.

Rare questions (config, long or branched histories, deletion of a ref) go to the git program.
"""

from __future__ import annotations

import os
import zlib

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
from dulwich.object_store import DiskObjectStore
from dulwich.objects import ObjectID

from ..errors import StoreError
from . import durable, loose, loose_ref, queries
from .objects import (
    EMPTY_TREE,
    format_commit,
    format_tree,
    parse_tree,
    path_parts,
    plain_mode,
)
from .port import FILE_MODE, TREE_MODE, Entry
from .repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .port import Draft

    Folder = dict[str, "Entry | Folder"]

TREES_KEPT_MAX = 256
STEPS_BY_HAND_MAX = 32  # a git that starts costs as much as reading that many commits
DRAFTS_BY_HAND_MAX = 64  # beyond that one pack by fast-import, rather than five fsyncs a commit
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_DAMAGED = (
    zlib.error,
    ValueError,
    AssertionError,
    IndexError,
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
)


class DulwichGit(Repository):
    """One repository in this process. Not for several threads at once."""

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._objects = os.path.join(common, "objects")
        self._packs = DiskObjectStore(self._objects)
        self._trees: dict[str, dict[str, Entry]] = {}

    def tip(self, ref: str) -> str | None:
        """The commit that a ref names now, or None."""
        return loose_ref.tip_of(self.common, ref)

    def tree(self, oid: str) -> dict[str, Entry]:
        """One level of a tree. KeyError where the object is missing."""
        return dict(self._tree(oid))

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
        return queries.rev_list(self.common, tip, hidden)

    def contains(self, tip: str, oid: str) -> bool:
        """Whether `oid` is `tip` or an ancestor of it. KeyError where `tip` is missing."""
        line, ended = self._line(tip, {oid})
        if not ended:
            return queries.is_ancestor(self.common, oid, tip)
        return not line or oid in self._parents(line[-1])

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Write a chain of commits, the first on `onto` (None: a root). No ref moves."""
        if len(drafts) > DRAFTS_BY_HAND_MAX:
            from .plumbing import PlumbingGit

            return PlumbingGit(self.common).write(drafts, onto)
        oids: list[str] = []
        try:
            tree = EMPTY_TREE if onto is None else self.commit(onto).tree
            for draft in drafts:
                tree = self._write_tree(draft, tree)
                parents = [] if onto is None else [onto]
                data = format_commit(tree, parents, draft.author, draft.committer, draft.message)
                onto = loose.write(self._objects, b"commit", data)
                oids.append(onto)
        except KeyError as error:
            raise StoreError(
                f"The object {error.args[0]} is missing or damaged; no ref was moved.", code="missing-object"
            ) from error
        except OSError as error:
            raise durable.failed("Objects could not be written", error) from error
        return oids

    def swap(self, ref: str, old: str | None, new: str, why: str) -> bool:
        """Move a ref from `old` (None: it must not exist) to `new`, and say `why` in its reflog."""
        if not self._exists(new):
            raise StoreError(f"{ref} can't be moved to {new}, which is missing.", code="missing-object")
        return loose_ref.swap(self.common, ref, old, new, why)

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        """Write one commit onto `old` and move the ref to it: its oid, or None where the race was lost."""
        if self.tip(ref) != old:
            return None
        (new,) = self.write([draft], old)
        return new if self.swap(ref, old, new, why) else None

    def close(self) -> None:
        """Close the packs. A later read opens them again."""
        self._packs.close()
        self._packs = DiskObjectStore(self._objects)

    def _object(self, oid: str) -> tuple[bytes, bytes]:
        if len(oid) != 40 or not oid.isalnum():
            raise KeyError(oid)
        try:
            found = loose.read(self._objects, oid)
            if found is not None:
                return found
            number, content = self._packs.get_raw(ObjectID(oid.encode("ascii")))
        except _DAMAGED:
            raise KeyError(oid) from None
        except KeyError:
            raise KeyError(oid) from None
        except OSError as error:
            raise durable.failed(f"The object {oid} could not be read", error) from error
        return _KINDS[number], content

    def _exists(self, oid: str) -> bool:
        if os.path.isfile(os.path.join(self._objects, oid[:2], oid[2:])):
            return True
        return self._packs.contains_packed(ObjectID(oid.encode("ascii")))

    def _tree(self, oid: str) -> dict[str, Entry]:
        """As `tree`, but shared: an append touches the same few trees as the one before."""
        entries = self._trees.get(oid)
        if entries is None:
            entries = {} if oid == EMPTY_TREE else parse_tree(self._typed(oid, b"tree"))
            self._keep(oid, entries)
        return entries

    def _keep(self, oid: str, entries: dict[str, Entry]) -> None:
        if len(self._trees) >= TREES_KEPT_MAX:
            del self._trees[next(iter(self._trees))]
        self._trees[oid] = entries

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

    def _write_tree(self, draft: Draft, parent: str) -> str:
        """Write what the draft changes of its tree, and return the new tree's id."""
        root: Folder = dict(self._tree(draft.tree or parent))
        for path, change in draft.changes.items():
            names = path_parts(path)
            if isinstance(change, bytes):
                change = Entry(FILE_MODE, loose.write(self._objects, b"blob", change))
            elif change is not None and change.oid == EMPTY_TREE:
                change = None  # git keeps no empty folders
            elif change is not None:
                if not self._exists(change.oid):
                    raise KeyError(change.oid)
                change = Entry(plain_mode(change), change.oid)
            self._change(root, names, change)
        return self._write_folder(root)

    def _change(self, folder: Folder, names: list[str], change: Entry | None) -> None:
        for name in names[:-1]:
            inner = folder.get(name)
            if isinstance(inner, Entry) and inner.is_tree:
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

    def _write_folder(self, folder: Folder) -> str:
        entries: dict[str, Entry] = {}
        for name, inner in folder.items():
            if isinstance(inner, Entry):
                entries[name] = inner
            else:
                oid = self._write_folder(inner)
                if oid != EMPTY_TREE:
                    entries[name] = Entry(TREE_MODE, oid)
        oid = loose.write(self._objects, b"tree", format_tree(entries))
        self._keep(oid, entries)
        return oid
