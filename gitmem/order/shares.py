"""Which lines of an entity are read if there are too many: a fair share of each sender.

A peer may write any number of lines, in any name and with any time. The choice depends on the lines alone, so every clone
folds the same ones; the rest is counted, as `left_out`. An entity with too many lines in too many names keeps those of the
senders that it names itself, such as the parties of a thread.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Sender = tuple[str | None, str | None]  # identity and session
    L = TypeVar("L")

LINES_MAX = 10_000  # signals of a thread, patches of a node, records of a session


def fair_share(
    lines: Iterable[L], most: int, sender: Callable[[L], Sender], is_first: Callable[[L], bool] | None = None
) -> list[L]:
    """Return the lines that are read.

    Args:
        lines: All lines, by `(at, bytes)`.
        most: How many are read.
        sender: Returns the sender of a line.
        is_first: Returns whether a line comes before others.
    """
    every = list(lines)
    if len(every) <= most:
        return every
    turns = in_turn(every, sender)
    return (turns if is_first is None else first_ones(turns, is_first))[:most]


def in_turn(lines: Iterable[L], sender: Callable[[L], Sender]) -> list[L]:
    """Return the first line of each identity, then the second of each; so of an identity its sessions."""
    by_session = rounds(lines, sender)
    return rounds(by_session, lambda each: sender(each)[0])


def first_ones(lines: Iterable[L], is_first: Callable[[L], bool]) -> list[L]:
    """Return lines, some of them first, else in the same order."""
    return sorted(lines, key=lambda each: not is_first(each))


def rounds(lines: Iterable[L], of: Callable[[L], object]) -> list[L]:
    """Return the first line of each of whatever it is of, then the second of each."""
    counts: dict[object, int] = {}
    placed = []
    for each in lines:
        who = of(each)
        counts[who] = count = counts.get(who, 0) + 1
        placed.append((count, each))
    placed.sort(key=lambda pair: pair[0])  # stable
    return [each for _, each in placed]
