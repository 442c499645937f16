"""What is derived from the log is made anew: the index, and the queues with it."""

from __future__ import annotations

import os

from ...errors import StoreError
from ...index import schema
from ...index.engine import sqlite3
from ...mailbox import session_queue
from .. import put_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from .fix_result import Done

CODES = ("index", "queue")


def rebuild(store: Store, done: Done) -> None:
    """Read the whole log again, in one transaction: others have the old answers until it is done.

    Raises: StoreError or OSError where that can't be.
    """
    where = schema.path(store.place, store.machine)
    if os.path.isdir(where):
        done.say("index", where, f"What stood there is {put_aside.put_aside(store, where)} now.")
    try:
        store.index.db.execute("PRAGMA user_version = 0")
        store.caught_up()
    except sqlite3.Error:
        store.leave_index()
        schema.discard(where)
        try:
            store.caught_up()
        except sqlite3.Error as error:
            raise StoreError(f"The index can't be built: {error}.", code="index") from error
    done.say("index", where, "It was built anew.")


def fill(store: Store, done: Done) -> None:
    """Event files and flags for what nobody was told of."""
    store.caught_up()
    for session_id in session_queue.silent(store):
        session_queue.fill(store, session_id)
        done.say(
            "queue",
            os.path.join(store.place.state, session_queue.FLAGS, session_id),
            "Its queue was filled again.",
        )
