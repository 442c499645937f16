"""What one sync takes in of a remote: new files, bytes and lines, counted by place.

A place that is left out gives back what it took, so that it costs the other places nothing.
"""

from __future__ import annotations

from ..log.trees import is_segment
from .rejected import TooMuch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..git.plumbing import Git

    File = tuple[str, str]  # path and id

FILES_MAX = 20_000
LINES_MAX = 200_000
BYTES_MAX = 24 * 1024 * 1024


class Budget:
    """The new files of the places that were read so far. What several places have counts once.

    Attributes:
        bytes: Their sizes together.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self._places: dict[str, set[File]] = {}
        self._holders: dict[File, int] = {}  # how many places have a file
        self._sizes: dict[File, int] = {}
        self.bytes = 0
        self._lines: dict[File, int] = {}  # of the files that were read for it
        self._known: dict[str, int] = {}  # lines of contents that were ever read

    def take(self, place: str, found: Mapping[File, int]) -> None:
        """Add new files of a place.

        Args:
            found: Their sizes.

        Raises: TooMuch: with them a limit does not hold; then they do not count.
        """
        new = {key: size for key, size in found.items() if key not in self._sizes}
        size = sum(new.values())
        _limit("files", len(self._sizes) + len(new), FILES_MAX)
        _limit("bytes", self.bytes + size, BYTES_MAX)
        if self.bytes + size > LINES_MAX:  # a line has one byte or more
            self._count_lines(new)
        mine = self._places.setdefault(place, set())
        for key in found.keys() - mine:
            self._holders[key] = self._holders.get(key, 0) + 1
        mine.update(found)
        self._sizes.update(new)
        self.bytes += size

    def give_back(self, place: str) -> None:
        """Count the files of a place no longer, but for those that other places have too."""
        for key in self._places.pop(place, ()):
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self.bytes -= self._sizes.pop(key)
                self._lines.pop(key, None)

    def _count_lines(self, new: Mapping[File, int]) -> None:
        """Count the lines of files that count already and of new ones. Raises: TooMuch."""
        for key in self._sizes.keys() - self._lines.keys():
            self._lines[key] = self._lines_of(*key)
        total, found = sum(self._lines.values()), {}
        for key in new:
            found[key] = self._lines_of(*key)
            total += found[key]
            _limit("lines", total, LINES_MAX)
        self._lines.update(found)

    def _lines_of(self, path: str, oid: str) -> int:
        """Return how many lines a segment has; other files have none."""
        if not is_segment(path):
            return 0
        if oid not in self._known:
            data = self.git.blob(oid)
            self._known[oid] = data.count(b"\n") + (not data.endswith(b"\n"))
        return self._known[oid]


def _limit(what: str, count: int, most: int) -> None:
    if count > most:
        raise TooMuch(f"with it there are more than {most:,} new {what}, which is what one sync takes in")
