"""The files that two branches both change, for all pairs of branches at once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .branches import Branch


class Shared:
    """The files that two branches both change.

    Attributes:
        one, other: The places of the branches in their list.
        count: The number of files.
        paths: The first of them.
        uncommitted: Those of `paths` that at least one side has not committed.
        committed: The number of files that both have committed.
    """

    def __init__(self, one: int, other: int) -> None:
        self.one = one
        self.other = other
        self.count = 0
        self.committed = 0
        self.paths: list[str] = []
        self.uncommitted: list[str] = []


class SharedFiles:
    """The pairs of branches that change the same files.

    Files that the same branches change are one step, however many they are; so branches with many files in common, such
    as copies of one branch, cost little.

    Args:
        branches: The branches.
        paths_max: The greatest number of paths of a pair; all are counted.
        remaining: Returns the seconds that are left; without any, `is_cut` is set and later files are left out.
    """

    def __init__(self, branches: Sequence[Branch], paths_max: int, remaining: Callable[[], float]) -> None:
        self.pairs: dict[tuple[int, int], Shared] = {}
        self.is_cut = False
        groups: dict[tuple[int, int], list[str]] = {}  # branches that change a file, that commit it -> files
        for path, masks in sorted(_masks(branches).items()):
            if masks[0] & (masks[0] - 1):
                groups.setdefault(masks, []).append(path)
        for (changed, committed), paths in groups.items():
            if remaining() <= 0:
                self.is_cut = True
                break
            for one, other in _pairs(changed):
                self._add(one, other, paths, committed >> one & committed >> other & 1, paths_max)

    def _add(self, one: int, other: int, paths: Sequence[str], committed: int, paths_max: int) -> None:
        found = self.pairs.get((one, other))
        if found is None:
            found = self.pairs[one, other] = Shared(one, other)
        found.count += len(paths)
        found.committed += len(paths) if committed else 0
        shown = paths[: paths_max - len(found.paths)]
        found.paths += shown
        if not committed:
            found.uncommitted += shown

    def committed(self) -> list[Shared]:
        """Return the pairs that have committed changes of the same files: the fewest files first, which merge fastest."""
        return sorted(
            (each for each in self.pairs.values() if each.committed), key=lambda each: each.committed
        )


def _masks(branches: Sequence[Branch]) -> dict[str, tuple[int, int]]:
    """Return for each file which branches change it, and which of them have committed that: bits by place."""
    changed: dict[str, int] = {}
    committed: dict[str, int] = {}
    for place, branch in enumerate(branches):
        bit = 1 << place
        for path in branch.changed:
            committed[path] = committed.get(path, 0) | bit
            changed[path] = changed.get(path, 0) | bit
        for path in branch.uncommitted:
            changed[path] = changed.get(path, 0) | bit
    return {path: (mask, committed.get(path, 0)) for path, mask in changed.items()}


def _pairs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield each two places whose bits are set."""
    places = [place for place in range(mask.bit_length()) if mask >> place & 1]
    for at, one in enumerate(places):
        for other in places[at + 1 :]:
            yield one, other
