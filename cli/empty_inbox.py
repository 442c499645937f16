"""`gitmem inbox` with nothing new: the answer of most calls, from the index alone."""

from __future__ import annotations

import os
import time

from .surroundings import Surroundings, machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

DAY_MICROS = 24 * 3600 * 1_000_000
FILES_MAX = 32  # files of sessions: with more the usual way answers


def answer(at: Surroundings, *, count: bool) -> bool:
    """Answer where nothing is unread. False where the usual way must look; nothing was said.

    Only for a session that is plainly there: named by GITMEM_SESSION, or by its harness.

    Args:
        count: Whether only the number is wanted.
    """
    if at.as_ is not None or not (at.session or at.harness):
        return False
    from gitmem.index import query
    from gitmem.log import ledger
    from gitmem.operations import mail, store_index

    from .wal_folders import wals_elsewhere

    place = at.place
    if place.by_folder:  # the usual way asks git whether such a repository may be used
        return False
    written, read = wals_elsewhere(place)
    snapshot = query.take(place, machine(), store_index.SHAPE, [*written, *read])
    if snapshot is None:
        return False
    at.index = db = snapshot.db
    if not snapshot.is_complete:
        return False
    now = time.time_ns() // 1000
    session = _session(place.state, db, at, now)
    if session is None:
        return False
    session_id, identity, workspace = session
    reader = identity or session_id
    if mail.unread_ids(db, reader, session_id, workspace, now):
        return False
    if not query.has_all(db, ledger.last_commit(place.state)):
        return False
    _seen(place.state, session_id)
    at.looks = True
    from .render import out

    if count:
        out.say(out.no_count(reader) if at.json else "0")
    else:
        out.say(out.nothing_as_json(reader) if at.json else out.nothing_new(reader))
    return True


def _session(
    state: str, db: sqlite3.Connection, at: Surroundings, now: int
) -> tuple[str, str | None, str | None] | None:
    """Id, identity and workspace of the one session that is meant, was started here and has not ended.

    None where the log has forged lines, and also for one whose last record is a day old: the usual way writes another, which keeps its name.
    """
    columns = (
        "SELECT session_id, agent_identity, workspace_id FROM session s WHERE ended IS NULL"
        " AND (SELECT max(until) FROM tenure t WHERE t.session_id = s.session_id) > ? AND "
    )
    held = now + DAY_MICROS  # a name is held for two days after the last record
    if at.session:
        found = db.execute(columns + "session_id = ?", (held, at.session)).fetchall()
    else:
        found = []
        for name in _of_client(state, at.harness[1]) if at.harness else ():
            found += db.execute(columns + "session_id = ?", (held, name)).fetchall()
    if len(found) != 1:
        return None
    is_own = db.execute("SELECT 1 FROM own WHERE name = ?", (found[0][0],)).fetchone()
    unclear = db.execute("SELECT EXISTS (SELECT 1 FROM forged), EXISTS (SELECT 1 FROM unchecked)").fetchone()
    return found[0] if is_own and unclear == (0, 0) else None


def _of_client(state: str, client_id: str) -> list[str]:
    """The sessions that were started here under a client's own id, by their files; empty where these are many.

    What is published instead of that id is a hash under the clone key, which loads more than the rest of this.
    """
    folder = os.path.join(state, "sessions")
    ending = b"\0" + client_id.encode("utf-8", "replace")
    found = []
    try:
        names = os.listdir(folder)
        for name in names if len(names) <= FILES_MAX else ():
            with open(os.path.join(folder, name), "rb") as file:
                if file.read().endswith(ending):
                    found.append(name)
    except OSError:
        return []
    return found


def _seen(state: str, session_id: str) -> None:
    """The heartbeat, as `operations.local` has it: a touched file."""
    try:
        os.utime(os.path.join(state, "sessions", session_id))
    except OSError:
        return
