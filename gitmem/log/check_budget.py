"""What one sync takes in of a remote: new files, bytes and lines, and commits and folders, counted by place.

A place that is left out gives back what it took, so that it costs the other places nothing.
"""

from __future__ import annotations

from .rejected import TooMuch
from .tree_union import is_segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..git.plumbing import Git

    File = tuple[str, str]  # path and id

FILES_MAX = 20_000
LINES_MAX = 200_000
BYTES_MAX = 24 * 1024 * 1024
HISTORY_BYTES_MAX = 24 * 1024 * 1024
HISTORY = "bytes of commits and folders"


class Taken:
    """Objects with their sizes, and which places have them. What several places have counts once.

    Attributes:
        sizes: By path and id; of commits and folders by id alone.
        bytes: All of them together.
    """

    def __init__(self) -> None:
        self._places: dict[str, set[File]] = {}
        self._holders: dict[File, int] = {}  # how many places have an object
        self.sizes: dict[File, int] = {}
        self.bytes = 0

    def new(self, found: Mapping[File, int]) -> dict[File, int]:
        """Return those objects that do not count yet, with their sizes."""
        return {key: size for key, size in found.items() if key not in self.sizes}

    def add(self, place: str, found: Mapping[File, int]) -> None:
        """Count the objects of a place."""
        new = self.new(found)
        mine = self._places.setdefault(place, set())
        for key in found.keys() - mine:
            self._holders[key] = self._holders.get(key, 0) + 1
        mine.update(found)
        self.sizes.update(new)
        self.bytes += sum(new.values())

    def remove(self, place: str) -> Iterable[File]:
        """Count the objects of a place no longer; return those that no other place has."""
        gone = []
        for key in self._places.pop(place, ()):
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self.bytes -= self.sizes.pop(key)
                gone.append(key)
        return gone


class IntakeBudget:
    """The new files, commits and folders of the places that were read so far."""

    def __init__(self, git: Git) -> None:
        self.git = git
        self._files = Taken()
        self._history = Taken()
        self._lines: dict[File, int] = {}  # of the files that were read for it
        self._known: dict[str, int] = {}  # lines of contents that were ever read

    @property
    def bytes(self) -> int:
        """The sizes of the files together."""
        return self._files.bytes

    def take(self, place: str, found: Mapping[File, int]) -> None:
        """Add new files of a place.

        Args:
            found: Their sizes.

        Raises: TooMuch: with them a limit does not hold; then they do not count.
        """
        new = self._files.new(found)
        size = self.bytes + sum(new.values())
        limit("files", len(self._files.sizes) + len(new), FILES_MAX)
        limit("bytes", size, BYTES_MAX)
        if size > LINES_MAX:  # a line has one byte or more
            self._count_lines(new)
        self._files.add(place, found)

    def take_history(self, place: str, found: Mapping[str, int]) -> None:
        """Add new commits and folders of a place, which have to be read.

        Args:
            found: Their sizes.

        Raises: TooMuch: with them the limit does not hold; then they do not count.
        """
        keyed = {("", oid): size for oid, size in found.items()}
        size = self._history.bytes + sum(self._history.new(keyed).values())
        limit(HISTORY, size, HISTORY_BYTES_MAX)
        self._history.add(place, keyed)

    def give_back(self, place: str) -> None:
        """Count nothing of a place any longer, but for what other places have too."""
        self._history.remove(place)
        for key in self._files.remove(place):
            self._lines.pop(key, None)

    def _count_lines(self, new: Mapping[File, int]) -> None:
        """Count the lines of files that count already and of new ones. Raises: TooMuch."""
        for key in self._files.sizes.keys() - self._lines.keys():
            self._lines[key] = self._lines_of(*key)
        total, found = sum(self._lines.values()), {}
        for key in new:
            found[key] = self._lines_of(*key)
            total += found[key]
            limit("lines", total, LINES_MAX)
        self._lines.update(found)

    def _lines_of(self, path: str, oid: str) -> int:
        """Return how many lines a segment has; other files have none."""
        if not is_segment(path):
            return 0
        if oid not in self._known:
            data = self.git.blob(oid)
            self._known[oid] = data.count(b"\n") + (not data.endswith(b"\n"))
        return self._known[oid]


def limit(what: str, count: int, most: int) -> None:
    """Raise TooMuch where there is more of something than one sync takes in."""
    if count > most:
        raise TooMuch(f"with it there are more than {most:,} new {what}, which is what one sync takes in")
