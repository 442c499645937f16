"""Merge the log's small packs into one, in the background and outside the lock of the log."""

from __future__ import annotations

import os

from ..errors import GitmemError
from ..git import packing
from .lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .local_log import LocalLog

OBJECTS_AT_ONCE = 2_000  # take some hundredths of a second, less than starting a process
BACKLOG_FACTOR = 3  # times the number of packs that one run merges


def pack_if_due(log: LocalLog, start: Callable[[], object] | None) -> None:
    """Pack if enough small packs have accumulated. Errors are ignored: packing is never the caller's failure.

    Args:
        start: Starts packing in another process; used when there is too much to do in this one.
    """
    try:
        count = packing.objects_due(log.repo.common)
        if count > OBJECTS_AT_ONCE and start is not None:
            start()
        elif count:
            pack(log)
    except (GitmemError, OSError):
        return


def pack(log: LocalLog) -> int:
    """Merge the log's small packs into one.

    Returns:
        The number of packs that were merged; 0 also if another process is packing.

    Raises:
        StoreError: Packing failed. Nothing was lost or partly done.
    """
    lock = Lock(os.path.join(log.repo.state, "packing.lock"), background=True)
    if not log.make_state() or not lock.take():
        return 0
    with lock:
        return packing.combine(log.repo.common)


def excess_packs(log: LocalLog) -> int:
    """Return the number of the log's packs if it is far too high, else 0."""
    count = len(packing.own_packs(log.repo.common))
    return count if count > BACKLOG_FACTOR * packing.PACKS_MAX else 0
