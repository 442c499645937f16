"""Find torn lines, which are beginnings of whole lines, without keeping all lines of a log."""

from __future__ import annotations

from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def torn(suspects: Iterable[bytes], lines: Iterable[bytes], is_whole: Callable[[bytes], bool]) -> set[bytes]:
    """Return the suspects that are the beginning of a whole line.

    If such a line exists, the first whole line that sorts after the suspect is one. So only the first of the lines
    between two suspects is kept.

    Args:
        suspects: Lines that are not whole.
        lines: All lines, in any order.
        is_whole: Returns whether a line is whole; called for few lines.
    """
    every = sorted(suspects)
    first: dict[int, bytes] = {}  # n: the first whole line between the suspects n and n + 1
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
