"""Upkeep: the log's loose objects become packs, outside the lock, where nobody waits for it."""

from __future__ import annotations

import os

from ..errors import GitmemError
from ..git import packing
from . import ref
from .lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .log import Log

PILED_UP = 3  # times as many as are packed at once


def keep_up(log: Log, start: Callable[[], object] | None) -> None:
    """Do it where there is enough to be packed. Nothing that goes wrong with it is the caller's failure.

    Args:
        start: Has another process do it.
    """
    try:
        if packing.is_due(log.place.common):
            start() if start is not None else upkeep(log)
    except (GitmemError, OSError):
        return


def upkeep(log: Log, *, least: int | None = None) -> int:
    """Pack the log's loose objects where there are so many: how many, 0 also where another process is at it.

    Args:
        least: Half of what makes it due where it is not given: something of that may be of commands that failed.

    Raises: StoreError; nothing is lost or half done then.
    """
    tip = log.git.tip(ref.LOG_REF)
    if tip is None or not log.make_state():
        return 0
    lock = _lock(log)
    if not lock.take():
        return 0
    with lock:
        return packing.pack(log.place.common, tip, least=packing.OBJECTS_MAX // 2 if least is None else least)


def piled_up(log: Log) -> int:
    """How many loose objects of the log there are, where they are far too many; else 0."""
    count = packing.waiting(log.place.common)
    return count if count > PILED_UP * packing.OBJECTS_MAX else 0


def left_half(log: Log) -> list[str]:
    """Files of packs that were not finished, while nobody is at it."""
    lock = _lock(log)
    if (
        not os.access(log.place.state, os.W_OK) or not lock.take()
    ):  # who may not write can't know whether one is at it
        return []
    with lock:
        return packing.left_half(log.place.common)


def _lock(log: Log) -> Lock:
    return Lock(os.path.join(log.place.state, "packing.lock"))
