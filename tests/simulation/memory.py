"""Git in memory: the port on dictionaries, with the object ids that git itself would give."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gitmem.errors import StoreError
from gitmem.git import objects as forms
from gitmem.git import plumbing
from gitmem.git.config import CachedConfig, GitConfig
from gitmem.git.objects import (
    EMPTY_TREE,
    FILE_MODE,
    TREE_MODE,
    Commit,
    Draft,
    PathChanges,
    TreeEntry,
    WorkTree,
)
from gitmem.repo import read_config

if TYPE_CHECKING:
    from gitmem.git.objects import Move

Folder = dict[str, "TreeEntry | Folder"]


class Repository:
    """Objects and refs. The locks on refs are files below the folder `common`, where git has them.

    Objects are immutable, so what was parsed once is shared by all repositories of the process.
    """

    depths: dict[str, int] = {}
    parsed_trees: dict[str, dict[str, TreeEntry]] = {}
    parsed_commits: dict[str, Commit] = {}

    def __init__(self, common: str) -> None:
        self.common = common
        self.objects: dict[str, tuple[bytes, bytes]] = {}
        self.refs: dict[str, str] = {}

    def copy(self, common: str) -> Repository:
        other = Repository(common)
        other.objects, other.refs = dict(self.objects), dict(self.refs)
        return other

    def is_locked(self, ref: str) -> bool:
        return os.path.exists(os.path.join(self.common, ref + ".lock"))

    def put(self, kind: bytes, content: bytes) -> str:
        data = b"%s %d\0%s" % (kind, len(content), content)
        oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        self.objects[oid] = (kind, content)
        return oid

    def get(self, oid: str, kind: bytes) -> bytes:
        found, content = self.objects[oid]
        if found != kind:
            raise KeyError(oid)
        return content

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        if oid == EMPTY_TREE:
            return {}
        content = self.get(oid, b"tree")
        if oid not in self.parsed_trees:
            self.parsed_trees[oid] = forms.parse_tree(content)
        return self.parsed_trees[oid]

    def commit(self, oid: str) -> Commit:
        content = self.get(oid, b"commit")
        if oid not in self.parsed_commits:
            self.parsed_commits[oid] = forms.parse_commit(content)
        return self.parsed_commits[oid]

    def reached(self, tips: Iterable[str]) -> dict[str, None]:
        """The commits that these tips reach, nearest first; what is missing is no tip."""
        found: dict[str, None] = {}
        todo = [oid for oid in tips if oid in self.objects]
        while todo:
            oid = todo.pop()
            if oid not in found:
                found[oid] = None
                todo += self.commit(oid).parents
        return found

    def depth(self, oid: str) -> int:
        """How many commits the longest way to a first commit has."""
        todo = [oid]
        while todo:
            parents = self.commit(todo[-1]).parents
            waiting = [each for each in parents if each not in self.depths]
            if waiting:
                todo += waiting
            else:
                self.depths[todo.pop()] = 1 + max((self.depths[each] for each in parents), default=0)
        return self.depths[oid]

    def reaches(self, tip: str, oid: str) -> bool:
        """Whether `oid` is `tip` or an ancestor of it."""
        if oid not in self.objects or self.objects[oid][0] != b"commit":
            return False
        depth = self.depth(oid)
        todo, seen = [tip], set()
        while todo:
            at = todo.pop()
            if at == oid:
                return True
            if at not in seen and self.depth(at) > depth:
                seen.add(at)
                todo += self.commit(at).parents
        return False

    def take(self, other: Repository, tip: str) -> None:
        """Bring a commit of another repository with all that it needs."""
        todo = [tip]
        while todo:
            oid = todo.pop()
            if oid in self.objects:
                continue  # what is here is here with all that it needs
            kind, _ = self.objects[oid] = other.objects[oid]
            if kind == b"commit":
                commit = other.commit(oid)
                todo += [*commit.parents, *([commit.tree] if commit.tree != EMPTY_TREE else [])]
            elif kind == b"tree":
                todo += [each.oid for each in other.tree(oid).values() if each.oid in other.objects]


class MemoryGit:
    """The port to a repository in memory."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def tip(self, ref: str) -> str | None:
        return self.repository.refs.get(ref)

    def refs(self, prefix: str) -> dict[str, str]:
        return {name: oid for name, oid in sorted(self.repository.refs.items()) if name.startswith(prefix)}

    def has(self, oid: str) -> bool:
        return oid in self.repository.objects

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        return dict(self.repository.tree(oid))

    def raw_tree(self, oid: str) -> bytes:
        return b"" if oid == EMPTY_TREE else self.repository.get(oid, b"tree")

    def heads(self, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
        objects = self.repository.objects
        return {oid: (objects[oid][0].decode(), len(objects[oid][1])) for oid in oids if oid in objects}

    def blob(self, oid: str) -> bytes:
        return self.repository.get(oid, b"blob")

    def commit(self, oid: str) -> Commit:
        return self.repository.commit(oid)

    def history(self, tip: str, without: Iterable[str] = ()) -> list[str]:
        self.commit(tip)
        hidden = self.repository.reached(without)
        order: list[str] = []
        done = set(hidden)
        todo = [tip]
        while todo:  # depth first, a commit when all its parents are done
            oid = todo[-1]
            waiting = [each for each in self.commit(oid).parents if each not in done]
            if oid in done or not waiting:
                todo.pop()
                if oid not in done:
                    done.add(oid)
                    order.append(oid)
            else:
                todo += waiting[::-1]
        return order

    def unread_history(self, tip: str, without: Iterable[str] = (), *, first_parents: int = 0) -> list[str]:
        found = [tip]
        while len(found) < first_parents and (parents := self.commit(found[-1]).parents):
            found.append(parents[0])
        return found[::-1] if first_parents else self.history(tip, without)

    def contains(self, tip: str, oid: str) -> bool:
        self.commit(tip)
        return self.repository.reaches(tip, oid)

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        oids: list[str] = []
        try:
            tree = EMPTY_TREE if onto is None else self.commit(onto).tree
            for draft in drafts:
                tree = self._write_tree(draft, tree)
                parents = [] if onto is None else [onto]
                data = forms.format_commit(tree, parents, draft.author, draft.committer, draft.message)
                onto = self.repository.put(b"commit", data)
                oids.append(onto)
        except KeyError as error:
            raise StoreError(f"The object {error.args[0]} is missing.", code="missing-object") from error
        return oids

    def swap(self, ref: str, old: str | None, new: str, why: str, also: Sequence[Move] = ()) -> bool:
        moves = [(ref, old, new), *also]
        for name, _, target in moves:
            if not self.has(target):
                raise StoreError(
                    f"{name} can't be moved to {target}, which is missing.", code="missing-object"
                )
        if any(self.repository.is_locked(name) or self.tip(name) != before for name, before, _ in moves):
            return False
        self.repository.refs.update((name, target) for name, _, target in moves)
        return True

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        if self.tip(ref) != old:
            return None
        (new,) = self.write([draft], old)
        return new if self.swap(ref, old, new, why) else None

    def break_stale_lock(self, ref: str, age_seconds: float) -> bool:
        return plumbing.break_stale_lock(self.repository.common, ref, age_seconds)

    def close(self) -> None:
        """There is nothing to close."""

    # A clone without a user: what is asked of the user's own history and worktree finds nothing.

    def config(self, pattern: str) -> dict[str, str]:
        with open(os.path.join(self.repository.common, "config"), "rb") as file:
            return {key: value for key, value in read_config(file.read()) if re.search(pattern, key)}

    def version(self) -> str:
        return ""

    def head(self, git_dir: str) -> tuple[str | None, str | None]:
        return self.tip("refs/heads/main"), "main"

    def branch(self, git_dir: str) -> str | None:
        return "main"

    def find_commit(self, git_dir: str, text: str) -> str | None:
        return None

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], PathChanges]:
        return {}

    def commits_since(self, old: str, new: str) -> list[tuple[str, str]]:
        return []

    def files_between(self, old: str, new: str) -> list[str]:
        return []

    def work_tree(self, git_dir: str, folder: str, *, seconds: float = 30.0) -> WorkTree:
        return WorkTree("", 0, 0)

    def _write_tree(self, draft: Draft, parent: str) -> str:
        root: Folder = dict(self.repository.tree(draft.tree or parent))
        for path, change in draft.changes.items():
            names = forms.path_parts(path)
            if isinstance(change, bytes):
                change = TreeEntry(FILE_MODE, self.repository.put(b"blob", change))
            elif change is not None and change.oid == EMPTY_TREE:
                change = None
            elif change is not None:
                if not self.has(change.oid):
                    raise KeyError(change.oid)
                change = TreeEntry(forms.plain_mode(change), change.oid)
            self._change(root, names, change)
        return self._write_folder(root)

    def _change(self, folder: Folder, names: list[str], change: TreeEntry | None) -> None:
        for name in names[:-1]:
            inner = folder.get(name)
            if not isinstance(inner, dict):
                inner = dict(self.repository.tree(inner.oid)) if inner is not None and inner.is_tree else {}
            folder[name] = inner
            folder = inner
        if change is None:
            folder.pop(names[-1], None)
        else:
            folder[names[-1]] = change

    def _write_folder(self, folder: Folder) -> str:
        entries: dict[str, TreeEntry] = {}
        for name, inner in folder.items():
            if isinstance(inner, TreeEntry):
                entries[name] = inner
            elif (oid := self._write_folder(inner)) != EMPTY_TREE:
                entries[name] = TreeEntry(TREE_MODE, oid)
        return self.repository.put(b"tree", forms.format_tree(entries))


class MemoryConfig(CachedConfig):
    """The configuration as the repository's own file has it, without git."""

    def __init__(self, common: str, state: str) -> None:
        super().__init__(common, state)

    def read(self) -> GitConfig:
        with open(os.path.join(self._common, "config"), "rb") as file:
            values = dict(read_config(file.read()))
        return GitConfig(values, any(re.search(r"^remote\..*\.url$", key) for key in values))
