"""Answer that nothing is unread: from a stamp, or from the index alone.

A stamp says in which state the log was when a reader's inbox was empty. It is one file for each name by which a session
is found. While the log is in that state nothing is read; without a stamp that holds the index is asked as it is.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..repo import Repo

    # Session, reader, and until when the session needs no new record of its name.
    Known = tuple[str, str, int]

DAY_MICROS = 24 * 3600 * 1_000_000
STAMPS = "empty"  # below the state folder
STAMP_MAX = 256 * 1024  # characters
NAME_MAX = 128
NAME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
OVERDUE_SECONDS = 11.0  # the usual window, and what a reader gives a committer beyond it
FILES_MAX = 32  # files of sessions: with more the usual way answers


def reader(
    place: Repo, machine: str, *, session: str | None, client_id: str | None, elsewhere: Sequence[str]
) -> str | None:
    """Return whose inbox is empty; None where that is not plain, and the usual way must look.

    Only for a session that is plainly there.

    Args:
        machine: As for the index.
        session: The id of the session that asks, where that is known.
        client_id: Else the id that its client has for it.
        elsewhere: Write-ahead logs outside the repository.
    """
    name = session or client_id
    if not name or place.by_folder or _is_overdue(place):
        return None  # the usual way asks git whether to trust the folder, and commits what no committer has come for
    now = time.time_ns() // 1000
    stamp = _Stamp(place, name, is_session=bool(session)) if not elsewhere else None
    known = stamp.holds(now) if stamp is not None else None
    if known is None:
        known = _look(place, machine, elsewhere, name, bool(session), now)
        if known is None:
            return None
        if stamp is not None:
            stamp.write(known)
    try:
        os.utime(os.path.join(place.state, "sessions", known[0]))  # the heartbeat, see `agents.heartbeats`
    except OSError:
        pass
    return known[1]


def _is_overdue(place: Repo) -> bool:
    """Return whether something may have waited too long for its commit."""
    from ..log import wal_files

    oldest = time.time() - OVERDUE_SECONDS
    return any(
        file.size and not file.is_deferred and wal_files.changed(file) < oldest
        for file in wal_files.listed(os.path.join(place.state, "wal"))
    )


def _look(
    place: Repo, machine: str, elsewhere: Sequence[str], name: str, is_session: bool, now: int
) -> Known | None:
    """Ask the index as it is. None where it is not plain that nothing is unread."""
    from .. import store_index
    from ..index import query
    from ..log import ledger
    from ..mailbox import mailbox_view

    snapshot = query.take(place, machine, store_index.SHAPE, elsewhere)
    if snapshot is None:
        return None
    db = snapshot.db
    try:
        ids = [name] if is_session else _of_client(place.state, name)
        found = _session(db, ids, now) if snapshot.is_complete else None
        if found is None:
            return None
        session_id, identity, workspace, held = found
        reader = identity or session_id
        if mailbox_view.unread_ids(db, reader, session_id, workspace, now):
            return None
        if not query.has_all(db, ledger.last_commit(place.state)):
            return None
        return session_id, reader, held - DAY_MICROS
    finally:
        db.close()


class _Stamp:
    """The file that says in which state of the log an inbox was empty.

    Args:
        place: Where the log is.
        name: The id that a session is found by.
        is_session: Whether that is its own id, and not its client's.
    """

    def __init__(self, place: Repo, name: str, *, is_session: bool) -> None:
        self._place = place
        self._path = os.path.join(place.state, STAMPS, f"{'s' if is_session else 'h'}-{name}")
        self._is_name = len(name) <= NAME_MAX and NAME_SIGNS.issuperset(name)
        self._log = self._moment() if self._is_name else None
        self._key = os.path.join(place.state, "key")

    def _moment(self) -> str | None:
        from ..log import log_state

        return log_state.of(self._place)

    def _head(self) -> list[str]:
        """What must be as it was: this program, the log, and the key that tells which lines of it are our own."""
        from .. import __version__

        try:
            key = os.stat(self._key)
        except OSError:
            return [__version__, str(self._log), ""]
        return [__version__, str(self._log), f"{key.st_ino}:{key.st_mtime_ns}"]

    def holds(self, now: int) -> Known | None:
        """Return whose inbox is empty, where it plainly still is."""
        if self._log is None:
            return None
        try:
            with open(self._path, encoding="utf-8") as file:
                *head, session_id, reader, until, _ = file.read(STAMP_MAX).split("\n")
            is_held = now < int(until)
        except (OSError, ValueError):
            return None
        return (session_id, reader, int(until)) if is_held and head == self._head() else None

    def write(self, known: Known) -> None:
        """Note that an inbox was empty, unless the log has gone on meanwhile. Never an error: then others look, too."""
        if self._log is None or self._moment() != self._log:
            return
        from .. import atomic_write, shared_mode

        text = "\n".join([*self._head(), *map(str, known), ""])
        try:
            shared_mode.make_dir(os.path.dirname(self._path))
            atomic_write.replace(self._path, text.encode())
        except (OSError, ValueError):
            return


def _session(
    db: sqlite3.Connection, ids: Sequence[str], now: int
) -> tuple[str, str | None, str | None, int] | None:
    """Id, identity, workspace and the end of the name's hold of the one session that is meant, was started here and has not ended.

    None where the log has forged lines, and also for one whose last record is a day old: the usual way writes another, which keeps its name.
    """
    found = []
    for id in ids:
        found += db.execute(
            "SELECT session_id, agent_identity, workspace_id,"
            " (SELECT max(until) FROM tenure t WHERE t.session_id = s.session_id) AS held"
            " FROM session s WHERE ended IS NULL AND held > ? AND session_id = ?",
            (now + DAY_MICROS, id),  # a name is held for two days after the last record
        ).fetchall()
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
