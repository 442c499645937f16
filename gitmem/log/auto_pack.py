"""Upkeep: small packs of the log become one, outside the log's lock, where nobody waits for it."""

from __future__ import annotations

import os

from ..errors import GitmemError
from ..git import packing
from .lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .local_log import LocalLog

OBJECTS_AT_ONCE = 2_000  # take some hundredths of a second: less than a process of its own
PILED_UP = 3  # times as many packs as are united at once


def keep_up(log: LocalLog, start: Callable[[], object] | None) -> None:
    """Do it where there is enough to unite. Nothing that goes wrong with it is the caller's failure.

    Args:
        start: Has another process do it, where it takes long.
    """
    try:
        count = packing.due(log.place.common)
        if count > OBJECTS_AT_ONCE and start is not None:
            start()
        elif count:
            upkeep(log)
    except (GitmemError, OSError):
        return


def upkeep(log: LocalLog) -> int:
    """Make one pack of the log's small ones: of how many, 0 also where another process is at it.

    Raises: StoreError; nothing is lost or half done then.
    """
    lock = Lock(os.path.join(log.place.state, "packing.lock"))
    if not log.make_state() or not lock.take():
        return 0
    with lock:
        return packing.unite(log.place.common)


def piled_up(log: LocalLog) -> int:
    """Return how many packs of ours there are, where they are far too many; else 0."""
    count = len(packing.own(log.place.common))
    return count if count > PILED_UP * packing.PACKS_MAX else 0
