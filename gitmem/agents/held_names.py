"""Display names in use at one time, and the lowest free number for a name that is taken."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ..text.name_matching import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class HeldNames:
    """The names in use at one time, in their folded forms.

    For each taken name, all numbers below `_next` were tried, and those free now are in `_free`. The lowest free number
    is thus found without a scan of all taken names.
    """

    def __init__(self, rows: Iterable[tuple[int, str]]) -> None:
        self._ends = list(rows)
        heapify(self._ends)
        self._count: dict[str, int] = {}
        for _, folded in self._ends:
            self._count[folded] = self._count.get(folded, 0) + 1
        self._next: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}

    def end(self, at: int) -> None:
        """Release the names that are held until this time or less."""
        while self._ends and self._ends[0][0] <= at:
            _, folded = heappop(self._ends)
            self._count[folded] -= 1
            if not self._count[folded]:
                del self._count[folded]
                base, _, number = folded.rpartition("-")
                if base in self._next and number.isascii() and number.isdigit() and number[0] != "0":
                    heappush(self._free[base], int(number))

    def take(self, name: str, until: int) -> str:
        """Hold a name until a time and return it, with the lowest free number after it if it is taken."""
        shown, folded = name, fold(name)
        if folded in self._count:
            number = self._number(folded)
            shown, folded = f"{name}-{number}", f"{folded}-{number}"
        self._count[folded] = self._count.get(folded, 0) + 1
        heappush(self._ends, (until, folded))
        return shown

    def _number(self, base: str) -> int:
        first = self._next.setdefault(base, 2)
        free = self._free.setdefault(base, [])
        while free:
            number = heappop(free)
            if 2 <= number < first and f"{base}-{number}" not in self._count:
                return number
        while f"{base}-{first}" in self._count:
            first += 1
        self._next[base] = first + 1
        return first
