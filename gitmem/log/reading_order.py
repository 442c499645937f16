"""The order in which refs are read: fewest new bytes first, so that small refs fit into the limits of a sync.

The size of a ref is known only after reading its commits and trees. Therefore all refs are measured together, always
one step of the smallest: a large ref is not read while a smaller one is left.
"""

from __future__ import annotations

import heapq
import math

from ..git.fork_point import STEPS_MIN
from . import ref
from .check_budget import Rejected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from .tree_checks import TreeCheck


def sizes(
    check: TreeCheck, tips: Iterable[str], known: Sequence[str], is_known: Callable[[str], bool]
) -> dict[str, float]:
    """Return the number of new bytes that each commit leads to; infinite if a check fails.

    Args:
        known: Trees whose files are not new.
        is_known: Returns whether a commit is in a history that passed.
    """
    found: dict[str, float] = {}
    waiting: list[tuple[int, int, str, Generator[int, None, int]]] = [
        (0, at, oid, _measure(check, oid, known, is_known)) for at, oid in enumerate(tips)
    ]
    while waiting:
        size, at, oid, steps = heapq.heappop(waiting)
        try:
            heapq.heappush(waiting, (size + next(steps), at, oid, steps))
        except StopIteration as done:
            found[oid] = size + done.value
        except (Rejected, KeyError):
            found[oid] = math.inf
    return found


def _measure(
    check: TreeCheck, tip: str, known: Sequence[str], is_known: Callable[[str], bool]
) -> Generator[int, None, int]:
    """Yield the size of each commit and tree before it is read; return the size of the new files.

    The files of the commit's base count too, because an outbox is compared with it. A history whose end is not reached
    counts as the largest that is read, so that a long one comes after all that are known to be short.
    """
    trees: list[str] = []
    at, ended, unread = tip, False, check.limits.history_bytes
    for _ in range(STEPS_MIN):
        commit = yield from check.measure_commit(at)
        trees = trees or [commit.tree]
        if ended or len(commit.parents) != 1:
            trees.append(commit.tree)
            unread = 0 if ended or not commit.parents else unread
            break
        (at,) = commit.parents
        if at == ref.genesis(at):
            unread = 0
            break
        ended = is_known(at)
    files = unread
    for tree in dict.fromkeys(trees):
        files += yield from check.measure(tree, known)
    return files
