"""Looking at the log in a hurry: an agent waits for the hook, so a hook does not wait for others."""

from __future__ import annotations

from ... import atomic_write
from ...agents.heartbeats import is_safe
from ...errors import GitmemError
from ...index import catch_up, engine
from ...index.engine import sqlite3
from ...mailbox import session_queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store


def ready(store: Store, busy_milliseconds: int) -> bool:
    """Bring the index up to date. False where another process keeps it busy for longer than that.

    A file that is damaged or can't be written is no reason to stop: the store knows what to do without.

    Raises: StoreError where the log can't be read.
    """
    try:
        store.index.db.execute(f"PRAGMA busy_timeout = {int(busy_milliseconds)}")
        catch_up.catch_up(store.index, store.log)
    except sqlite3.DatabaseError as error:
        if engine.is_busy(error):
            return False
    return True


def is_left(store: Store) -> bool:
    """Return whether something outside the repository still waits for its commit, or is of another repository."""
    try:
        outside = {wal.folder for wal in (*store.log.elsewhere, *store.log.others)}
        if any(file.folder in outside for file in store.log.waiting()):
            return True
        return any(wal.is_strange() for wal in store.log.wals)
    except (GitmemError, OSError):
        return False


def forget(store: Store, harness: str) -> None:
    """Take away the flag of a harness's session that has none of ours: nobody would ever read what it says."""
    if is_safe(harness):
        atomic_write.drop(session_queue.flag(store.place.state, harness))
