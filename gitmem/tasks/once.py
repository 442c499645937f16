"""Tasks that may begin only once: their fence, and what becomes of those whose worker is lost.

The fence is created before the take is recorded. So a task with a fence and without a take was not begun, or its take is not here yet; nobody
begins it then. Once it has a take nobody else takes it, whatever its lease: its caller gives it up.
"""

from __future__ import annotations

from contextlib import contextmanager

from ..errors import GitmemError
from ..store_apart import apart
from ..sync import fences
from . import load, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..order.task import FoldedTask
    from ..store import Store

LOST_MICROS = 60 * 1_000_000  # after the end of a lease: a renewal may be on its way from another clone


@contextmanager
def begun_once(store: Store, task_id: str) -> Iterator[None]:
    """Take a task that may begin only once, in the block: of all clones of the usual remote; without remotes, of this clone.

    The log may have changed: look at the task again in the block. If that records nothing, the fence is deleted. While this waits for the remote,
    other threads may use the store.

    Raises:
        GateError: `fence-taken`: somebody else has begun it, or was about to. Nothing was written.
        RemoteError: The remote can't be reached, or refuses the ref. Nothing was written, and another try may succeed.
        UsageError: `consent-needed`. Nothing was written.
        StoreError: This clone can't be written.
    """
    from ..sync import sync_remotes

    delete_fences(store)
    with apart(store) as own:
        fences.create(own, task_id, lambda: sync_remotes.sync(own, timeout=fences.TIMEOUT_SECONDS))
    try:
        yield
    except GitmemError as error:
        if error.code != "wal-unknown":  # else it may be recorded all the same
            with apart(store) as own:
                fences.abandon(own, task_id)
        raise


def delete_fences(store: Store) -> None:
    """Delete the fences of tasks that are over, in a clone without remotes: sync does it elsewhere. One that stays does no harm."""
    try:
        fences.delete_here(store, store.domain.finished_fences(store))
    except (GitmemError, OSError):
        return


def is_over(store: Store, task_id: str) -> bool:
    """Return whether a task has an end that nothing changes, so that nobody takes it any more."""
    task = load.load(store.db(), task_id)
    return task is not None and task.decided_by in ("seal", "close")


def is_lost(task: FoldedTask, now: int) -> bool:
    """Return whether the worker of a task that begins only once has died, as far as the caller's clock tells."""
    return (
        rules.is_once(task)
        and not task.is_finished
        and bool(task.takes)
        and all(task.lease(each) + LOST_MICROS <= now or task.is_released(each) for each in task.takes)
    )
