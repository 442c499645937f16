"""Catch up with the log in a hook. An agent waits for the hook, so the hook does not wait for other processes."""

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


def update_index(store: Store, busy_milliseconds: int) -> bool:
    """Update the index, and return False if another process keeps it locked for longer than the timeout.

    A damaged or unwritable index file does not stop the hook: the store can do without it.

    Raises:
        StoreError: The log can't be read.
    """
    try:
        store.index.db.execute(f"PRAGMA busy_timeout = {int(busy_milliseconds)}")
        catch_up.catch_up(store.index, store.log)
    except sqlite3.DatabaseError as error:
        if engine.is_busy(error):
            return False
    return True


def has_waiting_entries(store: Store) -> bool:
    """Return whether entries outside the repository still wait for a commit, or belong to another repository."""
    try:
        outside = {wal.folder for wal in (*store.log.elsewhere, *store.log.others)}
        if any(file.folder in outside for file in store.log.waiting()):
            return True
        return any(wal.is_strange() for wal in store.log.wals)
    except (GitmemError, OSError):
        return False


def remove_flag(store: Store, harness: str) -> None:
    """Remove the flag of a client's session that has no session of ours: nobody would ever read the signals."""
    if is_safe(harness):
        atomic_write.remove_quietly(session_queue.flag(store.place.state, harness))
