"""What both implementations of the port do alike: ask git itself, and read objects by their kind."""

from __future__ import annotations

import os
import time

from . import durable, formats, loose, queries, run
from .objects import is_empty_tree, parse_commit, parse_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .port import Behind, Commit, Entry, WorkTree

CUT_SECONDS = 1.0
HEADS_BY_HAND_MAX = 128  # a git that starts costs as much as looking for that many objects in packs


class Repository:
    """A repository by its common git folder. A subclass says how an object is found."""

    def __init__(self, common: str) -> None:
        self.common = common
        self._id_length = 0
        self._cut: frozenset[str] = frozenset()
        self._cut_until = 0.0

    @property
    def id_length(self) -> int:
        """How many hex digits an object id has here: 40 with sha1, 64 with sha256."""
        if not self._id_length:
            self._id_length = formats.id_length(self.common)
        return self._id_length

    def refs(self, prefix: str) -> dict[str, str]:
        """Every ref whose full name starts with `prefix` (which ends in `/`), with its target."""
        return queries.refs_below(self.common, prefix)

    def has(self, oid: str) -> bool:
        """Whether the object is in this repository, and whole enough to be read."""
        try:
            self._object(oid)
        except KeyError:
            return False
        return True

    def raw_tree(self, oid: str) -> bytes:
        """One level of a tree as git stores it. KeyError where the object is missing."""
        return b"" if is_empty_tree(oid) else self._typed(oid, b"tree")

    def heads(self, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Kind and size of objects, without reading them: from the heads of loose and of few packed ones, else from git."""
        objects = os.path.join(self.common, "objects")
        found: dict[str, tuple[str, int]] = {}
        rest = []
        for oid in dict.fromkeys(oids):
            head = loose.head(objects, oid)
            if head is None:
                rest.append(oid)
            else:
                found[oid] = head
        if len(rest) <= HEADS_BY_HAND_MAX:
            found |= self._packed_heads(rest)
            rest = [oid for oid in rest if oid not in found]
        if rest:
            given = "".join(f"{oid}\n" for oid in rest).encode("ascii")
            done = run.run(self.common, ["cat-file", "--batch-check"], input=given)
            for line in done.out.decode("ascii", "replace").splitlines():
                oid, _, rest_of_line = line.partition(" ")
                kind, _, size = rest_of_line.partition(" ")
                if size.isdecimal():
                    found[oid] = (kind, int(size))
        return found

    def blob(self, oid: str) -> bytes:
        """The content of a file. KeyError where the object is missing."""
        return self._typed(oid, b"blob")

    def commit(self, oid: str) -> Commit:
        """KeyError where the object is missing or is no commit. Where a shallow clone is cut it has no parents."""
        try:
            found = parse_commit(self._typed(oid, b"commit"))
        except ValueError:
            raise KeyError(oid) from None
        if found.parents and self._is_cut(oid):
            found.parents = []
        return found

    def config(self, pattern: str) -> dict[str, str]:
        """The last value of every config key that matches the extended regular expression."""
        return queries.read_config(self.common, pattern)

    def version(self) -> str:
        """The version of the git program."""
        return queries.version(self.common)

    def head(self, git_dir: str) -> tuple[str | None, str | None]:
        """The commit that a worktree's HEAD is at, and its branch; None for what there is not."""
        from . import project

        return project.head(self.common, git_dir)

    def branch(self, git_dir: str) -> str | None:
        """The branch that a worktree is on, from its HEAD file alone."""
        from . import project

        return project.branch(git_dir)

    def find_commit(self, git_dir: str, text: str) -> str | None:
        """The commit that a text such as `HEAD~3` names in a worktree, or None."""
        from . import project

        return project.find_commit(self.common, git_dir, text)

    def last_at(self, tip: str, seconds: int) -> str | None:
        """Of the commits that `tip` reaches, the newest one that is not dated later; None where all are later."""
        from . import project

        return project.last_at(self.common, tip, seconds)

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Behind]:
        """Of pairs of commit and path, those whose path moved on by commits that the pair's commit lacks."""
        from .behind import behind

        return behind(self.common, tip, pairs)

    def commits_since(self, old: str, new: str) -> list[tuple[str, str]]:
        """Id and subject of the commits that `new` reaches and `old` does not, newest first."""
        from . import project

        return project.commits_since(self.common, old, new)

    def files_between(self, old: str, new: str) -> list[str]:
        """The files that are not the same in two commits."""
        from . import project

        return project.files_between(self.common, old, new)

    def work_tree(self, git_dir: str, folder: str) -> WorkTree:
        """What is in a worktree and not in its HEAD."""
        from . import project

        return project.work_tree(self.common, git_dir, folder)

    def break_stale_lock(self, ref: str, age_seconds: float) -> bool:
        """Remove the ref's `.lock` if it is older than that. Only the holder of our own lock may ask."""
        return durable.break_stale_lock(self.common, ref, age_seconds)

    def _packed_heads(self, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Kind and size of those objects that are found in packs here; git is asked for the others."""
        return {}

    def _parsed_tree(self, oid: str) -> dict[str, Entry]:
        return parse_tree(self._typed(oid, b"tree"), self.id_length)

    def _is_cut(self, oid: str) -> bool:
        """Whether a shallow clone ends at this commit. Only the user's own fetch changes that: it is looked at now and then."""
        now = time.monotonic()
        if now >= self._cut_until:
            self._cut = formats.cut_commits(self.common)
            self._cut_until = now + CUT_SECONDS
        return oid in self._cut

    def _typed(self, oid: str, kind: bytes) -> bytes:
        found, data = self._object(oid)
        if found != kind:
            raise KeyError(oid)
        return data

    def _object(self, oid: str) -> tuple[bytes, bytes]:
        """An object's kind and content. KeyError where it is missing or damaged."""
        raise NotImplementedError
