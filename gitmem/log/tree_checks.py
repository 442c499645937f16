"""Check the content of a peer's tree before reading it: sizes, then names and modes, then counts.

A union of trees that passed passes too. Therefore names have no upper case: two of them never collide on a file system
that ignores case. New files, bytes, lines, commits and trees are counted for each ref: one that is left out returns its share, so
it uses up nothing of the limits of other refs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..git.objects import FILE_MODE, TREE_MODE, TreeEntry, is_empty_tree
from ..outcome import Struct
from . import ref
from .tree_union import is_segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from ..git.objects import Commit
    from ..git.port import Git

    File = tuple[str, str]  # path and id
    # New files (path and id) and new trees, with their sizes.
    New = tuple[dict[tuple[str, str], int], dict[str, int]]


ANCESTORS_MAX = 256  # of a log without project ids, that are searched for them


class Rejected(Exception):  # noqa: N818  (a finding, not an error)
    """A tree of a peer is not accepted; the text is the reason."""


class LimitExceeded(Rejected):
    """The tree has more than one sync accepts; later syncs accept the rest."""


class Limits(NamedTuple):
    """Limits of one check of the refs of a remote.

    Attributes:
        counted_bytes: Of files that are read to count their lines, even of refs that are left out.
        read_bytes: Of the commits and trees of all refs, even of those that are left out.
        object_bytes: Of one file, tree or commit.
        depth: Of nested folders.
        rows: Entries of a tree and of the trees in it.
        listed: Commits that are listed in other processes, twice what one ref may bring.
        share: Bytes of trees of one ancestor; 256 ancestors cost 8 s of CPU.
        ancestors: Of a log without project ids, that are searched for them.
    """

    files: int = 20_000
    lines: int = 200_000
    bytes: int = 24 * 1024 * 1024
    history_bytes: int = 24 * 1024 * 1024
    counted_bytes: int = 72 * 1024 * 1024
    read_bytes: int = 72 * 1024 * 1024
    object_bytes: int = 32 * 1024 * 1024
    depth: int = ref.FOLDERS_MAX
    rows: int = 1_000_000
    listed: int = 300_000
    share: int = 256 * 1024
    ancestors: int = ANCESTORS_MAX


LIMITS = Limits()
HISTORY = "bytes of commits and folders"


class Allowance(Struct):
    """An amount that may be spent: a total, and shares beside it that nobody else can use up."""

    _left: int
    _share: int = 0

    def grant(self, share: int) -> None:
        """Replace what is left of the last share."""
        self._share = share

    def spend(self, amount: int) -> bool:
        """Return whether an amount is allowed, and count it."""
        own = min(amount, self._share)
        if amount - own > self._left:
            return False
        self._share -= own
        self._left -= amount - own
        return True


class CountedObjects(Struct):
    """Objects with their sizes, and the refs that have them. An object of several refs counts once.

    Attributes:
        sizes: Files by path and id; commits and trees by id alone.
        bytes: The sum of all sizes.
    """

    _refs: dict[str, set[File]] = {}
    _holders: dict[File, int] = {}  # the number of refs that have an object
    sizes: dict[File, int] = {}
    bytes: int = 0

    def new(self, found: Mapping[File, int]) -> dict[File, int]:
        """Return the objects that do not count yet, with their sizes."""
        return {key: size for key, size in found.items() if key not in self.sizes}

    def add(self, ref_name: str, found: Mapping[File, int]) -> None:
        """Count the objects of a ref."""
        new = self.new(found)
        mine = self._refs.setdefault(ref_name, set())
        for key in found.keys() - mine:
            self._holders[key] = self._holders.get(key, 0) + 1
        mine.update(found)
        self.sizes.update(new)
        self.bytes += sum(new.values())

    def remove(self, ref_name: str) -> Iterable[File]:
        """Stop counting the objects of a ref; return those that no other ref has."""
        gone = []
        for key in self._refs.pop(ref_name, ()):
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self.bytes -= self.sizes.pop(key)
                gone.append(key)
        return gone


class IntakeBudget:
    """The new files, commits and trees of all refs that were read so far."""

    def __init__(self, git: Git, limits: Limits = LIMITS) -> None:
        self.git = git
        self.limits = limits
        self._files = CountedObjects()
        self._history = CountedObjects()
        self._lines: dict[File, int] = {}  # of the files whose lines were counted
        self._known: dict[str, int] = {}  # number of lines of every blob that was ever counted
        self.counting = Allowance(limits.counted_bytes)

    @property
    def bytes(self) -> int:
        """The sum of the sizes of the files."""
        return self._files.bytes

    def take(self, ref_name: str, found: Mapping[File, int]) -> None:
        """Count new files of a ref.

        Args:
            found: Their sizes, by path and id.

        Raises:
            LimitExceeded: They would exceed a limit. They are not counted.
        """
        new = self._files.new(found)
        size = self.bytes + sum(new.values())
        limit("files", len(self._files.sizes) + len(new), self.limits.files)
        limit("bytes", size, self.limits.bytes)
        if size > self.limits.lines:  # a line has at least one byte
            self._count_lines(new)
        self._files.add(ref_name, found)

    def count_history(self, ref_name: str, found: Mapping[str, int], *, shared: bool = True) -> None:
        """Count new commits and trees of a ref that have to be read.

        Args:
            found: Their sizes, by id.
            shared: Whether an object of several refs counts once. Commits are listed again for each ref.

        Raises:
            LimitExceeded: They would exceed the limit. They are not counted.
        """
        keyed = {("" if shared else ref_name, oid): size for oid, size in found.items()}
        size = self._history.bytes + sum(self._history.new(keyed).values())
        limit(HISTORY, size, self.limits.history_bytes)
        self._history.add(ref_name, keyed)

    def uncount(self, ref_name: str) -> None:
        """Stop counting the objects of a ref, except objects that other refs have too."""
        self._history.remove(ref_name)
        for key in self._files.remove(ref_name):
            self._lines.pop(key, None)

    def _count_lines(self, new: Mapping[File, int]) -> None:
        """Count the lines of the counted files and of new ones.

        Raises:
            LimitExceeded: There are more than `limits.lines`, or the files of other refs used up the allowance for counting.
        """
        for key in self._files.sizes.keys() - self._lines.keys():
            self._lines[key] = self._lines_of(*key, self._files.sizes[key])
        total, found = sum(self._lines.values()), {}
        for key, size in new.items():
            found[key] = self._lines_of(*key, size)
            total += found[key]
            limit("lines", total, self.limits.lines)
        self._lines.update(found)

    def _lines_of(self, path: str, oid: str, size: int) -> int:
        """Return the number of lines of a segment; 0 for other files."""
        if not is_segment(path):
            return 0
        if oid not in self._known:
            if not self.counting.spend(size):
                raise LimitExceeded(
                    f"the number of its new lines is unknown: {self.limits.counted_bytes:,} bytes were read to count those of others"
                )
            data = self.git.blob(oid)
            self._known[oid] = data.count(b"\n") + (not data.endswith(b"\n"))
        return self._known[oid]


def limit(what: str, count: int, most: int) -> None:
    """Raise LimitExceeded if a count exceeds the limit of one sync."""
    if count > most:
        raise LimitExceeded(f"with it there are more than {most:,} new {what}, the limit of one sync")


HEADS_AT_ONCE = 10_000
_NAME = re.compile(rb"[a-z0-9_-]([a-z0-9._-]{0,253}[a-z0-9_-])?")
_TOP_NAMES = (b"README.md", b".gitattributes")
_MODES = {b"40000": TREE_MODE, b"100644": FILE_MODE, b"100664": FILE_MODE, b"100755": "100755"}


class TreeCheck:
    """Checks of the trees of one remote; trees that passed are not checked again.

    Args:
        passed: Ids of trees that passed; the caller keeps it while its process lives.
        allow_large: Whether sizes and counts are unlimited.
        limits: The limits otherwise.
    """

    def __init__(
        self, git: Git, passed: set[str], *, allow_large: bool = False, limits: Limits = LIMITS
    ) -> None:
        self.git = git
        self.limits = limits
        self.passed = passed
        self.allow_large = allow_large
        self.budget = IntakeBudget(git, limits)
        self._passed_by: dict[str, set[str]] = {}  # trees that passed, by ref
        self._measured: dict[tuple[str, ...], New | Exception] = {}
        self._reading = Allowance(limits.read_bytes)

    def commits(self, oids: Iterable[str], ref_name: str = "") -> None:
        """Check the sizes of commits, and count them. Errors are those of `trees`."""
        wanted = list(dict.fromkeys(oids))
        sizes = self._heads("commit", [("", oid) for oid in wanted])
        if not self.allow_large:
            self.budget.count_history(ref_name, sizes, shared=False)

    def trees(self, oids: Iterable[str], known: Sequence[str], ref_name: str = "") -> None:
        """Check trees, except files that a tree of `known` has at the same path.

        All checks of one object count together: the refs of a remote share the limits of a sync.

        Args:
            known: Trees that passed or are this clone's own.
            ref_name: The ref that the trees belong to.

        Raises:
            Rejected: A name, a mode, a size or the number of entries is invalid.
            LimitExceeded: The limits of one sync are exceeded.
            KeyError: An object is missing.
        """
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in self.passed]
        found = self._measured.pop((*wanted, "", *known), None)
        if found is None:
            steps = self._new_files(wanted, known)
            try:
                while True:
                    next(steps)
            except StopIteration as done:
                found = done.value
        if isinstance(found, Exception):
            raise found
        if not self.allow_large:
            files, folders = found
            self.budget.count_history(ref_name, folders)
            self.budget.take(ref_name, files)
        self.passed.update(wanted)
        self._passed_by.setdefault(ref_name, set()).update(wanted)

    def measure_commit(self, oid: str) -> Generator[int, None, Commit]:
        """Yield the size of a commit before it is read, then return the commit. Errors are those of `trees`."""
        (size,) = self._heads("commit", [("", oid)]).values()
        yield size
        self._spend(size)
        return self.git.commit(oid)

    def measure(self, oid: str, known: Sequence[str]) -> Generator[int, None, int]:
        """Yield the number of bytes of trees to read next, level by level; return that of new files.

        `trees` uses the result again. Errors are those of `trees`.
        """
        key = (oid, "", *known)
        if oid in self.passed or key in self._measured:
            return 0
        try:
            found = self._measured[key] = yield from self._new_files([oid], known)
        except (Rejected, KeyError) as error:
            self._measured[key] = error.with_traceback(None)
            raise
        return sum(found[0].values())

    def forget(self, ref_name: str) -> None:
        """Stop counting the content of a ref that is left out."""
        self.budget.uncount(ref_name)
        self.passed -= self._passed_by.pop(ref_name, set())

    def grant_share(self) -> None:
        """Allow reading the share of one ancestor of trees, and more of files to be counted, beside the limits for all refs."""
        size = self.limits.share
        self._reading.grant(size)
        self.budget.counting.grant(16 * size)  # at the price of `size` bytes of trees

    def _spend(self, size: int, *, of: int = 0) -> None:
        """Count `size` bytes, part of a total `of`, that are read now; raise LimitExceeded over the limits of one sync."""
        if not self.allow_large:
            limit(HISTORY, max(size, of), self.limits.history_bytes)
            if not self._reading.spend(size):
                raise LimitExceeded(
                    f"this remote's refs have more than {self.limits.read_bytes:,} {HISTORY}, which is what one sync reads"
                )

    def _new_files(self, wanted: Sequence[str], known: Sequence[str]) -> Generator[int, None, New]:  # noqa: C901  (one loop over the levels of a tree)
        """Check all but the counts. Yield the number of bytes of trees to read next; return new files and trees."""
        fresh: dict[tuple[str, str], None] = {}
        folders: dict[str, int] = {}
        level = [("", oid, [each for each in known if each != oid]) for oid in wanted]
        rows = 0

        def counted(entries: Iterable[tuple[str, TreeEntry]]) -> Iterable[tuple[str, TreeEntry]]:
            nonlocal rows
            for each in entries:
                rows += 1
                if rows > self.limits.rows:
                    raise Rejected(f"it has more than {self.limits.rows:,} entries")
                yield each

        for depth in range(self.limits.depth + 1):
            sizes = self._heads("tree", [(path, tree) for path, tree, _ in level])
            folders.update(sizes)
            yield (size := sum(sizes.values()))
            self._spend(size, of=sum(folders.values()))
            below: dict[tuple[str, str], list[str]] = {}
            for path, tree, olds in level:
                for name, entry, inner in _differing(self.git, counted(self._entries(path, tree)), olds):
                    if entry.is_tree:
                        below[f"{path}{name}/", entry.oid] = inner
                    else:
                        fresh[path + name, entry.oid] = None
            if not self.allow_large:
                limit("files", len(fresh), self.limits.files)
            if not below:
                break
            level = [(path, tree, inner) for (path, tree), inner in below.items()]
            if depth == self.limits.depth:
                raise Rejected(f"its folders are nested more than {self.limits.depth} deep")
        sizes = self._heads("blob", list(fresh))
        return {key: sizes[key[1]] for key in fresh}, folders

    def _heads(self, kind: str, wanted: Sequence[tuple[str, str]]) -> dict[str, int]:
        """Return the sizes of objects, unread; check that they exist, are of one kind and not too large."""
        sizes: dict[str, int] = {}
        for start in range(0, len(wanted), HEADS_AT_ONCE):
            some = wanted[start : start + HEADS_AT_ONCE]
            found = self.git.heads([oid for _, oid in some])
            for path, oid in some:
                if is_empty_tree(oid) and kind == "tree":
                    continue
                if oid not in found or found[oid][0] != kind:
                    raise KeyError(oid)
                size = sizes[oid] = found[oid][1]
                if size > self.limits.object_bytes and not self.allow_large:
                    what = f"`{path}`" if path else f"its {kind} {oid[:12]}"
                    raise Rejected(
                        f"{what} has {size:,} bytes; {self.limits.object_bytes:,} are allowed (--allow-large takes it in)"
                    )
        return sizes

    def _entries(self, path: str, oid: str) -> Iterable[tuple[str, TreeEntry]]:
        """Yield the entries of one level of a tree, checked."""
        seen: set[bytes] = set()
        rows = raw_entries(self.git.raw_tree(oid), len(oid))
        if not path and not any(name == b"format" for _, name, _ in rows):
            raise Rejected("its tree has no file `format`")
        for mode, name, target in rows:
            where = f"{path}{name.decode('utf-8', 'backslashreplace')}"
            if name in seen:
                raise Rejected(f"it has the name {where!r} twice")
            seen.add(name)
            if not (_NAME.fullmatch(name) or (not path and name in _TOP_NAMES)):
                raise Rejected(f"the name {where!r} is not allowed")
            if mode not in _MODES:
                raise Rejected(
                    f"{where!r} has the mode {mode.decode('ascii', 'backslashreplace')}; only files and folders are allowed"
                )
            yield name.decode("ascii"), TreeEntry(_MODES[mode], target)


def _differing(
    git: Git, entries: Iterable[tuple[str, TreeEntry]], olds: Sequence[str]
) -> Iterable[tuple[str, TreeEntry, list[str]]]:
    """Yield the entries that no tree of `olds` has: name, entry, and the trees of `olds` under that name."""
    folders = [git.tree(old) for old in olds]
    for name, entry in entries:
        there = [folder[name] for folder in folders if name in folder]
        if entry not in there:
            yield name, entry, [old.oid for old in there if old.is_tree]


def raw_entries(data: bytes, id_length: int) -> list[tuple[bytes, bytes, str]]:
    """Split a tree object into mode, name and id; raise Rejected if it is truncated or malformed."""
    found, at, size = [], 0, id_length // 2
    while at < len(data):
        space = data.find(b" ", at)
        end = data.find(b"\0", space + 1)
        if space < 0 or end < 0 or end + 1 + size > len(data):
            raise Rejected("one of its folders is damaged")
        found.append(
            (data[at:space].lstrip(b"0"), data[space + 1 : end], data[end + 1 : end + 1 + size].hex())
        )
        at = end + 1 + size
    return found
