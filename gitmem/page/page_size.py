"""Keep the data of the page below a size, whatever a log has: of the largest lists the oldest entries are left out, and counted."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .contract import PageData, ThreadState

# The lists that can be shortened, and whether the entries that go first are at the beginning. Those of "signals" take threads along.
_LISTS = {"sessions": True, "signals": True, "tasks": True, "claims": True, "commits": True, "nodes": True, "branches": False, "relations": False}  # fmt: skip
_OF_BOARD = {"gates": False, "passed": True, "owed": True, "contested": False, "mismatches": False, "overlaps": False}  # fmt: skip


def shorten(data: PageData, size: int, most: int) -> bool:
    """Leave out what is too much; return whether that was anything.

    Each list may have an equal part of the size; what smaller ones do not need is for the others. The rest, such as the lanes, stays.

    Args:
        data: It is changed.
        size: Its size, bytes of JSON.
        most: What it may be; what is no list counts, too.
    """
    threads = {each["id"]: each for each in data["threads"]}
    lists: dict[str, tuple[Any, bool]] = {name: (data[name], first) for name, first in _LISTS.items()}  # type: ignore[literal-required]
    lists |= {name: (data["board"][name], first) for name, first in _OF_BOARD.items()}  # type: ignore[literal-required]
    sizes = {
        name: _sizes(
            rows[::-1] if oldest_first else rows, _with_thread(threads) if name == "signals" else _size
        )
        for name, (rows, oldest_first) in lists.items()
    }
    of_lists = {name: sum(found) for name, found in sizes.items()}
    most_of_one = _equal_part(of_lists, max(0, most - size + sum(of_lists.values())))
    is_shorter = False
    for name, (rows, oldest_first) in lists.items():
        kept = _fitting(sizes[name], most_of_one)
        if left := len(rows) - kept:
            is_shorter = True
            data["omitted"][name] = data["omitted"].get(name, 0) + left
            del rows[slice(0, left) if oldest_first else slice(kept, None)]
    if is_shorter:
        _drop_what_lost_its_end(data)
    return is_shorter


def _size(row: object) -> int:
    return len(json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def _with_thread(threads: Mapping[str, ThreadState]) -> Callable[[Any], int]:
    """Return what measures a signal, the newest of a thread with the thread."""
    left = dict(threads)
    return lambda row: _size(row) + _size(left.pop(row["thread"], None))


def _sizes(rows: Sequence[object], size: Callable[[Any], int]) -> list[int]:
    return [size(each) + 1 for each in rows]


def _equal_part(sizes: Mapping[str, int], most: int) -> int:
    """Return how much of each list there is room for."""
    left = most
    for place, size in enumerate(sorted(sizes.values())):
        part = left // (len(sizes) - place)
        if size > part:
            return part
        left -= size
    return most


def _fitting(sizes: Sequence[int], most: int) -> int:
    """Return how many of the first entries fit."""
    for place, size in enumerate(sizes):
        most -= size
        if most < 0:
            return place
    return len(sizes)


def _drop_what_lost_its_end(data: PageData) -> None:
    """Leave out threads without a signal and relations without a node; count the signals that threads have lost."""
    shown: dict[str, int] = {}
    for signal in data["signals"]:
        shown[signal["thread"]] = shown.get(signal["thread"], 0) + 1
    data["threads"] = [each for each in data["threads"] if each["id"] in shown]
    for thread in data["threads"]:
        if thread["signals"] > shown[thread["id"]]:
            thread["more"] = thread["signals"] - shown[thread["id"]]
    nodes = {each["id"] for each in data["nodes"]}
    data["relations"] = [each for each in data["relations"] if each["from"] in nodes and each["to"] in nodes]
    tasks = {each["id"] for each in data["tasks"]}
    data["board"]["open_tasks"] = [each for each in data["board"]["open_tasks"] if each in tasks]
