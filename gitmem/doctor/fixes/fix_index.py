"""Rebuild the data derived from the log: the index and the queues."""

from __future__ import annotations

import os

from ...errors import StoreError
from ...index import index_file
from ...index.engine import sqlite3
from ...mailbox import session_queue
from .. import put_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from .fix_result import FixResult

CODES = ("index", "queue")


def rebuild(store: Store, done: FixResult) -> None:
    """Rebuild the index from the log, in one transaction: other processes use the old index until then.

    Raises:
        StoreError: The index can't be built.
        OSError: A file can't be moved or removed.
    """
    where = index_file.path(store.place, store.machine)
    if os.path.isdir(where):
        done.say("index", where, f"What stood there is {put_aside.put_aside(store, where)} now.")
    try:
        store.index.db.execute("PRAGMA user_version = 0")
        store.caught_up()
    except sqlite3.Error:
        store.leave_index()
        index_file.remove(where)
        try:
            store.caught_up()
        except sqlite3.Error as error:
            raise StoreError(f"The index can't be built: {error}.", code="index") from error
    done.say("index", where, "It was built anew.")


def fill(store: Store, done: FixResult) -> None:
    """Write the missing event files and flags for unread signals."""
    store.caught_up()
    for session_id in session_queue.missing_flags(store):
        session_queue.queue_all(store, session_id)
        done.say(
            "queue",
            os.path.join(store.place.state, session_queue.FLAGS, session_id),
            "Its queue was filled again.",
        )
