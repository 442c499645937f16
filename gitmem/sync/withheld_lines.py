"""Records that a remote lacks and that are not sent without consent to publish there.

Apart from `remote` and `sync_result`: `noop_check` uses it before it is known whether these are needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NEWEST_MAX = 20  # lines that are kept of each kind


class WithheldLines:
    """The number of such records by kind, and the newest lines of each kind.

    Attributes:
        counts: The number of records of each kind.
        newest: At most `NEWEST_MAX` lines of each kind, oldest first.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.newest: dict[str, list[bytes]] = {}

    @property
    def total(self) -> int:
        """The number of all records."""
        return sum(self.counts.values())

    def add(self, lines: Iterable[bytes], kind_of: Callable[[bytes], str]) -> None:
        """Count lines.

        Args:
            lines: Lines of the log, none of them counted before.
            kind_of: Returns the kind of record in a line.
        """
        fresh: dict[str, list[bytes]] = {}
        for line in lines:
            fresh.setdefault(kind_of(line), []).append(line)
        for kind, found in fresh.items():
            self.counts[kind] = self.counts.get(kind, 0) + len(found)
            self.newest[kind] = sorted([*self.newest.get(kind, []), *found])[-NEWEST_MAX:]
