"""Check the index against one that is rebuilt from the log."""

from __future__ import annotations

import os

from ...errors import StoreError
from ...index import catch_up, compare, index_file
from ...index.engine import sqlite3
from ...index.step_limit import StepLimit
from ...mailbox import mailbox_view, session_queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...index.index_file import Index
    from ...store import Store
    from ..findings import Findings

UNREAD_STEPS = 2_000_000  # SQLite steps for the unread signals in one of the two indexes
ARRIVAL = ("cursor",)  # columns that depend on the order of arrival; results derived from them don't


def check_index(store: Store, found: Findings, anew: Index, failure: sqlite3.Error | None) -> None:
    """Report differences between the index and a rebuilt one, and lines that neither could read in full.

    Args:
        anew: The rebuilt index, as of the check of the lines.
        failure: Why it could not be filled, or None.
    """
    where = index_file.path(store.place, store.machine)
    lacks = has = 0
    try:
        if failure is not None:
            raise failure
        for _ in range(3):  # another process may write in between
            index = store.caught_up()
            catch_up.catch_up(anew, store.log)
            differs = _differing(index, anew, store)
            if not differs:
                break
        if differs:
            lacks, has = _lacking(index, anew), _lacking(anew, index)
        skipped = anew.skipped()
    except (sqlite3.Error, StoreError) as error:
        found.problem(
            "index",
            f"The index can't be read or built: {error}.",
            where,
            "It is built again once what is said of objects is mended.",
            mends=True,
        )
        return
    if differs:
        what = f"The index lacks {lacks} lines of the log, and has {has} that it does not have."
        if not lacks and not has:
            what = f"The index has every line, and answers otherwise than one that is built anew: {', '.join(differs)}."
        found.problem(
            "index",
            what,
            where,
            "It is derived from the log, and built again.",
            mends=True,
        )
    if skipped:
        found.problem(
            "skipped-lines",
            f"{skipped} line{'s' if skipped > 1 else ''} of the log can't be taken in whole: "
            "they are kept, and some answers are without them.",
            where,
            "A newer gitmem may read them; report it with `gitmem doctor --json` where it does not.",
            "pip install --upgrade gitmem-coord",
        )


def check_queue(store: Store, found: Findings) -> None:
    """Report sessions with unread signals that no flag announces to their hooks."""
    try:
        silent = session_queue.missing_flags(store)
    except (sqlite3.Error, StoreError):  # reported by `check_index`
        return
    for session_id, count in silent.items():
        found.problem(
            "queue",
            f"{count} signal{'s wait' if count > 1 else ' waits'} for a session, and no flag tells its hooks.",
            os.path.join(store.place.state, session_queue.FLAGS, session_id),
            "The queue is derived from the log, and filled again.",
            mends=True,
        )


def _differing(ours: Index, theirs: Index, store: Store) -> list[str]:
    """Return the names of tables that differ, and "unread" if unread signals differ."""
    found = compare.differing(ours, theirs, but=ARRIVAL)
    if not found and _unread_differs(ours, theirs, store):
        found.append("unread")
    return found


def _unread_differs(ours: Index, theirs: Index, store: Store) -> bool:
    """Return whether a reader's unread signals differ: these depend on its cursor.

    The readers of this clone come first; if there are very many readers, some of the others are not compared.
    """
    rows = ours.db.execute(
        "SELECT r.reader FROM reader r ORDER BY r.reader NOT IN (SELECT coalesce(agent_identity, session_id)"
        " FROM session WHERE clone_id = ?), r.reader",
        (store.log.clone_id(),),
    ).fetchall()
    steps, now = StepLimit(ours.db, UNREAD_STEPS), store.now()
    for (reader,) in rows:
        unread = steps.ask(mailbox_view.unread_ids, ours.db, reader, None, None, now)
        if unread is None:
            return False
        if sorted(unread) != sorted(mailbox_view.unread_ids(theirs.db, reader, None, None, now)):
            return True
    return False


def _lacking(index: Index, other: Index) -> int:
    """Return how many lines of another index it lacks."""
    ask = index.db.execute
    keys = other.db.execute("SELECT key FROM line")
    return sum(ask("SELECT 1 FROM line WHERE key = ?", row).fetchone() is None for row in keys)
