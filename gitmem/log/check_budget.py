"""Limits of one sync for content of a remote: new files, bytes, lines, commits and trees, counted for each ref.

A ref that is left out returns its share, so it uses up nothing of the limits of other refs.
"""

from __future__ import annotations

from typing import NamedTuple

from .tree_union import is_segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..git.plumbing import Git

    File = tuple[str, str]  # path and id


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
        ahead_rows: Entries that are prefetched.
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
    depth: int = 16
    rows: int = 1_000_000
    ahead_rows: int = 20_000
    listed: int = 300_000
    share: int = 256 * 1024
    ancestors: int = ANCESTORS_MAX


LIMITS = Limits()
HISTORY = "bytes of commits and folders"


class Allowance:
    """An amount that may be spent: a total, and shares beside it that nobody else can use up."""

    def __init__(self, total: int) -> None:
        self._left = total
        self._share = 0

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


class CountedObjects:
    """Objects with their sizes, and the refs that have them. An object of several refs counts once.

    Attributes:
        sizes: Files by path and id; commits and trees by id alone.
        bytes: The sum of all sizes.
    """

    def __init__(self) -> None:
        self._refs: dict[str, set[File]] = {}
        self._holders: dict[File, int] = {}  # the number of refs that have an object
        self.sizes: dict[File, int] = {}
        self.bytes = 0

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
