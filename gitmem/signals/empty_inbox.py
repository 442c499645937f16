"""Answer that nothing is unread, and no task or claim waits: from a stamp, or from the index alone; or how many signals are unread.

A stamp records the state of the log in which a reader's inbox was empty. There is one file for each name by which a
session is found. While the log is in that state, nothing is read. Without a valid stamp, the index is queried as it is.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..git.files import READ, fetched_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..repo import Repo

    # Session, reader, and the time until which the session needs no new record of its name.
    Known = tuple[str, str, int]

DAY_MICROS = 24 * 3600 * 1_000_000
STAMPS = "empty"  # below the state folder
STAMP_MAX = 256 * 1024  # characters
NAME_MAX = 128
NAME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
OVERDUE_SECONDS = 11.0  # the usual commit window, and the time that a reader allows a committer beyond it
FILES_MAX = 32  # session files; with more of them the regular path answers


def reader(
    repo: Repo,
    machine: str,
    *,
    session: str | None,
    client_id: str | None,
    elsewhere: Sequence[str],
    quiet: bool = False,
) -> str | None:
    """Return the reader whose inbox is empty, or None if that is uncertain and the regular path must answer.

    Args:
        machine: The name of this machine, as for the index.
        session: The id of the calling session, if known.
        client_id: The client's own id of its session.
        elsewhere: Write-ahead logs outside the repository.
        quiet: Whether nothing is said of mail to the same words under another key.
    """
    name = session or client_id
    if not name or repo.by_folder or _is_overdue(repo):
        return None  # the regular path asks git whether to trust the folder, and commits overdue entries
    if fetched_since(repo.common, os.path.join(repo.state, READ)):
        return None  # the regular path reports them
    now = time.time_ns() // 1000
    if session and client_id and _client_of(repo.state, session) not in ("", client_id):
        return None  # one agent has started another, and passed GITMEM_SESSION on
    stamp = _Stamp(repo, name, is_session=bool(session)) if not elsewhere else None
    known = stamp.holds(now) if stamp is not None else None
    if known is None:
        known, has_namesake = _query_index(repo, machine, elsewhere, name, bool(session), now)
        if known is None or (has_namesake and not quiet):
            return None
        if stamp is not None and not has_namesake:
            stamp.write(known)
    # The heartbeat, see `agents.heartbeats`.
    local_files.try_utime(os.path.join(repo.state, "sessions", known[0]))
    return known[1]


def _is_overdue(repo: Repo) -> bool:
    """Return whether an entry may have waited too long for its commit."""
    from ..log import write_ahead

    oldest = time.time() - OVERDUE_SECONDS
    return any(
        file.size and not file.is_deferred and write_ahead.modified_at(file) < oldest
        for file in write_ahead.list_files(os.path.join(repo.state, "wal"))
    )


def _query_index(
    repo: Repo, machine: str, elsewhere: Sequence[str], name: str, is_session: bool, now: int
) -> tuple[Known | None, bool]:
    """Query the index as it is; return None unless it is certain that nothing is unread, and whether the same words under another key have mail."""
    from ..agents import mailbox, waiting_work
    from ..index import index_file
    from ..log import ledger
    from ..text.addresses import words_of

    snapshots = index_file.Snapshots(repo, machine, index_file.SHAPE, elsewhere)
    snapshot = snapshots.take()
    if snapshot is None:
        return None, False
    db = snapshot.db
    try:
        ids = [name] if is_session else _of_client(repo.state, name)
        # A name is held for two days after the last record. After one day the regular path writes another record, which keeps it.
        found = waiting_work.held_session(db, ids, now + DAY_MICROS) if snapshot.is_complete else None
        if found is None:
            return None, False
        session_id, identity, workspace, held, lifecycle, specialty = found
        reader = identity or session_id
        if mailbox.unread_ids(db, reader, session_id, workspace, now):
            return None, False
        if waiting_work.is_any(db, waiting_work.values_of(reader, session_id, lifecycle, specialty, now)):
            return None, False
        if not index_file.has_accepted(db, ledger.last_commit(repo.state)):
            return None, False
        has_namesake = bool({*mailbox.recipients_with(db, words_of(reader))} - {reader})
        return (session_id, reader, held - DAY_MICROS), has_namesake
    finally:
        snapshots.close()


class _Stamp:
    """The file that records in which state of the log an inbox was empty.

    Args:
        repo: The repository.
        name: The id by which a session is found.
        is_session: Whether that is the session's own id, not its client's.
    """

    def __init__(self, repo: Repo, name: str, *, is_session: bool) -> None:
        self._repo = repo
        self._path = os.path.join(repo.state, STAMPS, f"{'s' if is_session else 'h'}-{name}")
        self._is_name = len(name) <= NAME_MAX and NAME_SIGNS.issuperset(name)
        self._log = self._moment() if self._is_name else None

    def _moment(self) -> str | None:
        from ..log import write_ahead

        return write_ahead.fingerprint(self._repo)

    def _head(self) -> list[str]:
        """Return what must be unchanged: the program version, the log, and the notes of who this user is."""
        from .. import __version__

        state, user = self._repo.state, os.geteuid()
        notes = [name for name in os.listdir(state) if name.startswith((f"writer-{user}-", f"given-{user}-"))]
        found = [(name, os.stat(os.path.join(state, name))) for name in sorted(notes)]
        marks = [f"{name}:{each.st_ino}:{each.st_mtime_ns}" for name, each in found]
        return [__version__, str(self._log), " ".join(marks)]

    def holds(self, now: int) -> Known | None:
        """Return the session and reader whose inbox is certainly still empty, or None."""
        if self._log is None:
            return None
        try:
            text = local_files.load(self._path, STAMP_MAX).decode()
            *head, session_id, reader, until, _ = text.split("\n")
            is_held = now < int(until) and head == self._head()
        except (OSError, ValueError):
            return None
        return (session_id, reader, int(until)) if is_held else None

    def write(self, known: Known) -> None:
        """Record that an inbox was empty, unless the log has changed since. Ignore errors: the stamp is a cache."""
        if self._log is None or self._moment() != self._log:
            return
        try:
            text = "\n".join([*self._head(), *map(str, known), ""])
            local_files.make_dir(os.path.dirname(self._path))
            local_files.replace(self._path, text.encode())
        except (OSError, ValueError):
            return


def _client_of(state: str, session_id: str) -> str:
    """Return the client's own id of a session, by its file, or ""."""
    content = local_files.read(os.path.join(state, "sessions", os.path.basename(session_id)))
    return content.partition(b"\0")[2].decode("utf-8", "replace")


def _of_client(state: str, client_id: str) -> list[str]:
    """Return the sessions of this clone with a client's own id, by their files; empty if there are too many files.

    Records have a hash of that id under the clone key instead; computing it loads more modules than all else here.
    """
    folder = os.path.join(state, "sessions")
    ending = b"\0" + client_id.encode("utf-8", "replace")
    names = local_files.names_in(folder)
    names = names if len(names) <= FILES_MAX else []
    return [name for name in names if local_files.read(os.path.join(folder, name)).endswith(ending)]


FOLD_MAX_BYTES = 4 * 1024 * 1024  # of the lines of threads; beyond that, what asked counts


def unread_counts(
    db: sqlite3.Connection,
    reader: str,
    session: str | None,
    workspace: str | None,
    now: int,
    *,
    directed: bool = False,
) -> tuple[int, int]:
    """Return how many signals a reader has not read, and how many of these want an answer from it, as its inbox shows.

    Args:
        now: Microseconds.
        directed: Only signals that were sent to it in particular.
    """
    from ..agents import mailbox

    if directed:
        rows = db.execute(*mailbox.directed_to(db, reader, session, workspace, unread=True)).fetchall()
    else:
        rows = mailbox.unread_ids(db, reader, session, workspace, now)
    unread: dict[str, list[str]] = {}
    for address, id in rows:
        unread.setdefault(id, []).append(address)
    if not unread:
        return 0, 0
    asked = {id for _, id in db.execute(*mailbox.directed_to(db, reader, session, workspace, unread=False))}
    cache, count = None, 0
    for id, thread, contents, rejects in mailbox.may_want_answer(db, unread):
        if contents > 1 or not (rejects or id in asked):
            continue
        if mailbox.is_only_signal(db, thread, id):
            count += id in asked
            continue
        if cache is None:
            from .threads import ThreadCache

            cache = ThreadCache(db, FOLD_MAX_BYTES)
        found = cache.of(thread)
        names = dict.fromkeys(filter(None, (reader, session, *unread[id])))
        count += bool(found.asks_about(list(names), id)) if found is not None else id in asked
    return len(unread), count
