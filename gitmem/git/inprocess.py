"""The port inside this process, for one that lives on: packs through dulwich, the rest on files.

Rare questions (config, long or branched histories, deletion of a ref) go to the git program.
"""

from __future__ import annotations

import os
import zlib

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
from dulwich.object_format import get_object_format
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID
from dulwich.pack import PackFileDisappeared

from ..errors import StoreError
from . import alternates, durable, formats, held, loose, loose_ref, packed, queries
from .objects import EMPTY_TREES, format_commit, format_tree, is_empty_tree, is_oid, path_parts, plain_mode
from .port import FILE_MODE, TREE_MODE, Entry
from .repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .plumbing import PlumbingGit
    from .port import Commit, Draft

    Folder = dict[str, "Entry | Folder"]

TREES_KEPT_MAX = 1_024
COMMITS_KEPT_MAX = 4_096
STEPS_BY_HAND_MAX = 128  # a git that starts costs as much as reading that many commits
PACKS_OPEN_MAX = 100  # made here: each that is read from keeps files open
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


class _Packs(DiskObjectStore):
    """The packs of one folder. Dulwich takes what it borrows from for sha1, and never ends where two lend each other."""

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return []


class DulwichGit(Repository):
    """One repository in this process. Not for several threads at once."""

    def __init__(self, common: str) -> None:
        super().__init__(common)
        self._objects = os.path.join(common, "objects")
        self._algorithm = formats.ALGORITHMS[self.id_length]
        self._packs: dict[str, _Packs] = {}
        self._made = 0
        self._trees: dict[str, dict[str, Entry]] = {}
        self._commits: dict[str, Commit] = {}

    def tip(self, ref: str) -> str | None:
        """The commit that a ref names now, or None."""
        return loose_ref.tip_of(self.common, ref)

    def refs(self, prefix: str) -> dict[str, str]:
        """Every ref whose full name starts with `prefix` (which ends in `/`), with its target."""
        found = loose_ref.refs_below(self.common, prefix)
        return super().refs(prefix) if found is None else found

    def tree(self, oid: str) -> dict[str, Entry]:
        """One level of a tree. KeyError where the object is missing."""
        return dict(self._tree(oid))

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
        return queries.rev_list(self.common, tip, hidden)

    def contains(self, tip: str, oid: str) -> bool:
        """Whether `oid` is `tip` or an ancestor of it. KeyError where `tip` is missing."""
        line, ended = self._line(tip, {oid})
        if not ended:
            return queries.is_ancestor(self.common, oid, tip)
        return not line or oid in self._parents(line[-1])

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Write a chain of commits, the first on `onto` (None: a root). No ref moves."""
        if len(drafts) > DRAFTS_BY_HAND_MAX or held.gc_runs(self._objects):
            return self._program().write(drafts, onto)
        oids: list[str] = []
        try:
            tree = EMPTY_TREES[self.id_length] if onto is None else self.commit(onto).tree
            for draft in drafts:
                tree = self._write_tree(draft, tree)
                parents = [] if onto is None else [onto]
                data = format_commit(tree, parents, draft.author, draft.committer, draft.message)
                onto = self._put(b"commit", data)
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
        moved = loose_ref.swap(self.common, ref, old, new, why)
        held.look_after(self._objects)
        return moved

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        """Write one commit onto `old` and move the ref to it: its oid, or None where the race was lost."""
        if self.tip(ref) != old:
            return None
        if not held.gc_runs(self._objects):
            (new,) = self.write([draft], old)
            if not held.gc_runs(self._objects):
                return new if self.swap(ref, old, new, why) else None
        return self._program().advance(ref, old, draft, why)

    def close(self) -> None:
        """Close the packs. A later read opens them again."""
        for store in self._packs.values():
            store.close()
        self._packs = {}

    def _program(self) -> PlumbingGit:
        """What makes a pack."""
        from .plumbing import PlumbingGit

        self._made += 1
        if self._made % PACKS_OPEN_MAX == 0:
            self.close()
        return PlumbingGit(self.common)

    def _object(self, oid: str) -> tuple[bytes, bytes]:
        if len(oid) != self.id_length or not is_oid(oid):
            raise KeyError(oid)
        try:
            found = self._read(self._objects, oid)
            for folder in alternates.folders(self._objects) if found is None else ():
                found = found or self._read(folder, oid)
            if found is None and held.give_back(self._objects, oid):
                found = self._read(self._objects, oid)
        except _DAMAGED:
            found = None
        except OSError as error:
            raise durable.failed(f"The object {oid} could not be read", error) from error
        if found is None:
            raise KeyError(oid)
        return found

    def _read(self, folder: str, oid: str) -> tuple[bytes, bytes] | None:
        """An object of one object folder, or None where it is not there. What it raises means damage."""
        found = loose.read(folder, oid)
        if found is not None:
            return found
        try:
            number, content = self._packs_in(folder).get_raw(ObjectID(oid.encode("ascii")))
        except KeyError:
            return None
        return _KINDS[number], content

    def _packs_in(self, folder: str) -> _Packs:
        store = self._packs.get(folder)
        if store is None:
            store = _Packs(folder, object_format=get_object_format(self._algorithm))
            self._packs[folder] = store
        return store

    def _packed_heads(self, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Kind and size of those objects that are found in packs here."""
        try:
            return packed.heads(self._packs_in(self._objects).packs, oids) if oids else {}
        except (*_DAMAGED, OSError, PackFileDisappeared):
            return {}

    def _exists(self, oid: str) -> bool:
        """Whether the object is here, perhaps damaged."""
        name = ObjectID(oid.encode("ascii"))
        return any(
            os.path.isfile(os.path.join(folder, oid[:2], oid[2:]))
            or self._packs_in(folder).contains_packed(name)
            for folder in (self._objects, *alternates.folders(self._objects))
        ) or held.give_back(self._objects, oid)

    def _put(self, kind: bytes, content: bytes) -> str:
        return loose.write(self._objects, kind, content, self._algorithm)

    def _tree(self, oid: str) -> dict[str, Entry]:
        """As `tree`, but shared: an append touches the same few trees as the one before."""
        entries = self._trees.get(oid)
        if entries is None:
            entries = {} if is_empty_tree(oid) else self._parsed_tree(oid)
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
                change = Entry(FILE_MODE, self._put(b"blob", change))
            elif change is not None and is_empty_tree(change.oid):
                change = None  # git keeps no empty folders
            elif change is not None:
                # A submodule's commit is in another repository.
                if change.mode != "160000" and not self._exists(change.oid):
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
                if not is_empty_tree(oid):
                    entries[name] = Entry(TREE_MODE, oid)
        oid = self._put(b"tree", format_tree(entries))
        self._keep(oid, entries)
        return oid
