"""The queue: for each session of this clone, a file for each unread signal, and a flag that some wait.

It is derived from the log, like the index, for hooks that can't wait for Python: a hook only tests a flag. The state
folder contains

- `queue/<session id>/<signal id>`: the signal's line, byte for byte. `queue/<session id>/shown/` has signals that were
  displayed and whose receipts could not be recorded then;
- `flags/<name>`: signals wait. It is not empty if one may interrupt (directed, not advisory). The name is the
  session's id or the client's id that it was started under;
- `beats/<name>`: touched by hooks, see `heartbeats`.

An event file is written before its flag, and both before the mark of how far the index was read. After a crash in
between, the work is repeated.
"""

from __future__ import annotations

import os
import time

from .. import atomic_write, state_files
from ..agents import heartbeats
from ..agents.heartbeats import FED, FLAGS, QUEUE, flag, flag_names, is_safe, raise_flags
from ..agents.presence import HOLD_MICROS
from .waiting_sessions import FORGED, NEW, WaitingSession, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..store import Store

SHOWN = "shown"
SEEN_MICROS = 24 * 3600 * 1_000_000  # a session that was not seen for longer gets no broadcasts
EVENTS_MAX = 100  # event files of a session; readers learn that there are more, and the log has all
LAG_MAX = 16  # lines of the index; a mark for each signal without a reader here would cost a write
AGAIN_SECONDS = 1.0

_SIGNAL = (
    "SELECT l.body, s.broadcast, s.interrupt FROM signal s JOIN line l ON l.id = s.line"
    " WHERE s.signal_id = ? ORDER BY l.body LIMIT 1"
)


def folder(state: str, session_id: str) -> str:
    """Return the folder of a session's event files."""
    return os.path.join(state, QUEUE, session_id)


def events(state: str, session_id: str) -> set[str]:
    """Return the ids of the signals that wait for a session and were not displayed."""
    return _names(folder(state, session_id)) - {SHOWN}


def shown(state: str, session_id: str) -> set[str]:
    """Return the ids of the signals that were displayed and whose receipts could not be recorded."""
    return _names(os.path.join(folder(state, session_id), SHOWN))


def queue_new(store: Store) -> None:
    """Queue the signals that are new in the index, for every session of this clone that they are for.

    The queue is derived: an error here does not undo a write or a read, and the next call repeats the work.
    """
    try:
        _queue_new(store)
    except Exception:
        store.feed_after = time.monotonic() + AGAIN_SECONDS


def _queue_new(store: Store) -> None:
    db = store.index.db
    fed, newest = marks = heartbeats.queued_until(db)
    if newest is None or marks == store.fed or time.monotonic() < store.feed_after:
        return
    state = store.repo.state
    after = int(fed) if fed is not None and heartbeats.has_queues(state) else 0
    if after != newest:
        found = sessions(store, NEW if after else "", after=after)
        for session in found:
            write_queue(store, session, after)
        if found or not after or newest - after > LAG_MAX:
            for name in (QUEUE, FLAGS):
                state_files.make_dirs(os.path.join(state, name))
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (FED, str(newest)))
            marks = (str(newest), newest)
    store.fed = marks


def write_queue(store: Store, session: WaitingSession, after: int = 0) -> None:
    """Write event files for the signals that a session has not read, and then the flag.

    Args:
        after: Only for signals that were indexed after this line.

    Raises:
        OSError: A file can't be written.
    """
    unread = session.unread(store, after)
    state, oldest = store.repo.state, store.now() - SEEN_MICROS
    where = folder(state, session.session_id)
    is_here = bool(unread) and _was_seen(store, session, oldest)
    shown = os.path.join(where, SHOWN)
    if unread and not os.path.isdir(shown):
        state_files.make_dirs(shown)  # now: the disk may be full when it is needed
    waits, urgent = False, False
    room = EVENTS_MAX - len(events(state, session.session_id)) if unread else 0
    for signal_id in sorted(unread):
        path = os.path.join(where, signal_id)
        body, broadcast, interrupt = store.index.db.execute(_SIGNAL, (signal_id,)).fetchone()
        if broadcast and not is_here:
            continue
        if not is_safe(signal_id) or os.path.lexists(os.path.join(shown, signal_id)):
            continue
        if room > 0 and not os.path.lexists(path):
            atomic_write.replace(path, body.encode())
            room -= 1
        waits, urgent = True, urgent or not (broadcast or interrupt == "advisory")
    if waits:
        raise_flags(state, session.names, urgent=urgent)


def _was_seen(store: Store, session: WaitingSession, since: int) -> bool:
    if session.alive_until - HOLD_MICROS >= since:
        return True
    return heartbeats.last_seen(store, session.session_id) >= since


def missing_flags(store: Store) -> dict[str, int]:
    """Return this clone's sessions with unread directed signals and a missing flag, each with their number.

    The index must have caught up.
    """
    state, oldest = store.repo.state, store.now() - SEEN_MICROS
    found = {}
    for each in sessions(store):
        if all(os.path.lexists(flag(state, name)) for name in each.names) or not _was_seen(
            store, each, oldest
        ):
            continue
        unread = each.unread(store) - shown(state, each.session_id)
        of = [store.index.db.execute(_SIGNAL, (signal_id,)).fetchone() for signal_id in unread]
        count = sum(not broadcast for _, broadcast, _ in of)
        if count:
            found[each.session_id] = count
    return found


def queue_all(store: Store, session_id: str, *, begins_as: list[str] | None = None) -> None:
    """Queue everything that a session of this clone has not read. Never raises, see `queue_new`.

    Args:
        begins_as: The names of its flags, if it has no file here yet.
    """
    try:
        store.caught_up()
        begins = session_id if begins_as is not None else None
        for session in sessions(store, " AND n.session_id = :id", begins=begins, id=session_id):
            session.names = begins_as or session.names
            write_queue(store, session)
    except Exception:
        return


def begin(store: Store, session_id: str, client_session: tuple[str, str] | None) -> None:
    """Record that a session starts in this worktree, after its queue: nobody who is killed leaves one without the flags for its hooks.

    A queue whose session did not begin is removed by the next start. What arrives before the session is here needs `queue_all`.
    """
    names = heartbeats.flag_names(session_id, client_session[1] if client_session else None)
    if store.collecting is None:
        queue_all(store, session_id, begins_as=names)
    heartbeats.start(store, session_id, client_session)


def forget_names(store: Store, session_id: str, names: Iterable[str]) -> None:
    """Remove flags and heartbeats under names that a session has had and has no more: its client has another id for it."""
    kept = flag_names(session_id, heartbeats.client_of(store, session_id))
    for name in names:
        if name not in kept:
            atomic_write.remove_quietly(flag(store.repo.state, name))
            atomic_write.remove_quietly(os.path.join(store.repo.state, heartbeats.BEATS, name))


def remove_old_queues(store: Store) -> None:
    """Remove the files of sessions that ended elsewhere or were not seen for a month. Never raises."""
    try:
        state = store.repo.state
        queues, flags = _names(os.path.join(state, QUEUE)), _names(os.path.join(state, FLAGS))
        # Only after listing the queues: their sessions are then all in the index.
        store.caught_up()
        found = sessions(store)
        oldest = store.now() - heartbeats.INACTIVE_MICROS
        kept = [each for each in found if _was_seen(store, each, oldest)]
        for session_id in sorted(queues - {each.session_id for each in kept}):
            remove(state, session_id, [session_id])
        for name in sorted(flags - {name for each in kept for name in each.names}):
            atomic_write.remove_quietly(flag(state, name))
        # The file of a session comes after its queue: one that began meanwhile may have lost it.
        before = {each.session_id for each in found}
        for session in sessions(store):
            if session.session_id not in before:
                write_queue(store, session)
        heartbeats.forget_old(store, oldest)
    except Exception:
        return


def of_reader(store: Store, reader: str, session_id: str | None = None) -> list[WaitingSession]:
    """Return this clone's open sessions that read a reader's messages.

    The index must have caught up.

    Args:
        session_id: The session that reads, if one does.
    """
    ids = (reader, session_id or reader)
    where = f" AND (n.agent_identity = :reader OR n.session_id IN (:reader, :id) OR {FORGED})"
    found = sessions(store, where, reader=reader, id=ids[1])
    return [each for each in found if each.reader == reader or each.session_id in ids]


def remove(state: str, session_id: str, names: Iterable[str]) -> None:
    """Remove the queue of a session that ended, its flags and its heartbeats."""
    for name in names:
        atomic_write.remove_quietly(flag(state, name))
        atomic_write.remove_quietly(os.path.join(state, heartbeats.BEATS, name))
    if not is_safe(session_id):
        return  # a client's own id could be any path
    where = folder(state, session_id)
    for inside in (os.path.join(where, SHOWN), where):
        for name in sorted(_names(inside, hidden=True)):  # includes files of a killed process
            atomic_write.remove_quietly(os.path.join(inside, name))
        try:
            state_files.refuse_link(inside)
            os.rmdir(inside)
        except OSError:
            continue


def _names(where: str, *, hidden: bool = False) -> set[str]:
    return {name for name in atomic_write.names_in(where) if hidden or not name.startswith(".")}
