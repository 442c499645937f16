"""Beginnings of lines: found among all lines of a log without keeping these."""

from __future__ import annotations

from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def torn(suspects: Iterable[bytes], lines: Iterable[bytes], is_whole: Callable[[bytes], bool]) -> set[bytes]:
    """Return those of the suspects that are the beginning of a whole line.

    If there is such a line, the first whole line that sorts after the suspect is one. So of the lines that sort between
    two suspects only the first is kept.

    Args:
        suspects: None of them is whole.
        lines: All lines, in any order.
        is_whole: Asked of few lines.
    """
    every = sorted(suspects)
    first: dict[int, bytes] = {}  # of the lines between the suspect with this number and the one before
    for line in lines:
        at = bisect_left(every, line)
        known = first.get(at)
        if at and (known is None or line < known) and is_whole(line):
            first[at] = line
    found: set[bytes] = set()
    following: bytes | None = None
    for number in range(len(every), 0, -1):
        following = first.get(number, following)
        if following is not None and following.startswith(every[number - 1]):
            found.add(every[number - 1])
    return found
