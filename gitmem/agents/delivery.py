"""Delivery of signals to the sessions of this clone: their queues and notices for hooks, and the delivery lock.

Queues are derived from the log, like the index, for hooks that can't wait for Python: a hook only tests a flag. The state
folder contains

- `queue/<session id>/<signal id>`: the signal's line, byte for byte. `queue/<session id>/shown/` has signals that were
  displayed and whose receipts could not be recorded then;
- `flags/<name>`: signals wait. It is not empty if one may interrupt (directed, not advisory). The name is the
  session's id or the client's id that it was started under;
- `beats/<name>`: touched by hooks, see `heartbeats`;
- `claims/notices/<session id>`: sentences about claims, and about tasks that collide, for its next command or hook;
  `claims/told/<session id>`: words for what it was told once, the latest last. The time of `claims/due/<session id>` is when
  its claims are to be renewed.

An event file is written before its flag, and both before the mark of how far the index was read. After a crash in
between, the work is repeated.

A hook, an inbox and a watch may all want to display the same signal. The holder of the delivery lock reads the unread
signals, displays them, and records the receipts before it releases the lock; the next holder finds these receipts. It is
an OS lock: a killed process leaves no lock behind, and signals displayed without a receipt are displayed again.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..errors import GitmemError, StoreError
from ..index import index_file
from ..log.lines import CommitMessage, digest
from ..log.lock import Lock
from ..order.session import HOLD_MICROS
from ..text.digests import sha256
from . import heartbeats, mailbox
from .heartbeats import FLAGS, QUEUE, QUEUES_MARK, flag, flag_names, is_safe, raise_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from types import TracebackType

    from ..records.record_types import ReceiptFields
    from ..store import Store
    from .caller import Caller


class WaitingSession:
    """An open session of this clone: its queue, its reader and the names of its flags."""

    def __init__(self, store: Store, row: Sequence[object]) -> None:
        session_id, identity, workspace, until = row
        self.session_id = str(session_id)
        self.reader = str(identity or session_id)
        self.workspace = str(workspace) if workspace is not None else None
        self.names = heartbeats.flag_names(self.session_id, heartbeats.client_of(store, self.session_id))
        self.alive_until = until if isinstance(until, int) else 0

    def unread(self, store: Store, after: int = 0, *, directed: bool = False) -> set[str]:
        """Return the ids of the signals that it has not read. The index must have caught up."""
        found = mailbox.unread_ids(
            store.index.db,
            self.reader,
            self.session_id,
            self.workspace,
            store.now(),
            after=after,
            directed=directed,
        )
        return {signal_id for _, signal_id in found}


def waiting_sessions(
    store: Store,
    *,
    after: int = 0,
    only: str | None = None,
    readers: tuple[str, str] | None = None,
    begins: bool = False,
) -> list[WaitingSession]:
    """Return this clone's open sessions. The index must have caught up.

    Args:
        after: Only those that a signal indexed after this line is for; 0 for all.
        only: Only this session.
        readers: Only those of this identity or session.
        begins: Whether the only session has no file here yet.
    """
    db = store.index.db
    here = {*heartbeats.all_last_seen(store), *([only] if begins and only is not None else [])}
    rows = mailbox.open_sessions(db, store.log.clone_id(), here, after=after, only=only, readers=readers)
    return [WaitingSession(store, row) for row in rows]


SHOWN = "shown"
SEEN_MICROS = 24 * 3600 * 1_000_000  # a session that was not seen for longer gets no broadcasts
EVENTS_MAX = 100  # event files of a session; readers learn that there are more, and the log has all
LAG_MAX = 16  # lines of the index; a mark for each signal without a reader here would cost a write
AGAIN_SECONDS = 1.0


def queue_folder(state: str, session_id: str) -> str:
    """Return the folder of a session's event files."""
    return os.path.join(state, QUEUE, session_id)


def queued_ids(state: str, session_id: str) -> set[str]:
    """Return the ids of the signals that wait for a session and were not displayed."""
    return _names(queue_folder(state, session_id)) - {SHOWN}


def shown_ids(state: str, session_id: str) -> set[str]:
    """Return the ids of the signals that were displayed and whose receipts could not be recorded."""
    return _names(os.path.join(queue_folder(state, session_id), SHOWN))


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
    fed, newest = marks = index_file.mark(db, *QUEUES_MARK)
    if newest is None or marks == store.fed or time.monotonic() < store.feed_after:
        return
    state = store.repo.state
    after = int(fed) if fed is not None and heartbeats.has_queues(state) else 0
    if after != newest:
        found = waiting_sessions(store, after=after)
        for session in found:
            write_queue(store, session, after)
        if found or not after or newest - after > LAG_MAX:
            for name in (QUEUE, FLAGS):
                local_files.make_dirs(os.path.join(state, name))
            index_file.set_mark(db, QUEUES_MARK[0], str(newest))
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
    where = queue_folder(state, session.session_id)
    is_here = bool(unread) and _was_seen(store, session, oldest)
    shown = os.path.join(where, SHOWN)
    if unread and not os.path.isdir(shown):
        local_files.make_dirs(shown)  # now: the disk may be full when it is needed
    waits, urgent = False, False
    room = EVENTS_MAX - len(queued_ids(state, session.session_id)) if unread else 0
    for signal_id in sorted(unread):
        path = os.path.join(where, signal_id)
        line, broadcast, interrupt = mailbox.queued(store.index.db, signal_id)
        if broadcast and not is_here:
            continue
        if not is_safe(signal_id) or os.path.lexists(os.path.join(shown, signal_id)):
            continue
        if room > 0 and not os.path.lexists(path):
            local_files.replace(path, line)
            room -= 1
        elif not after and local_files.read(path) not in (b"", line):  # it was forgotten meanwhile
            local_files.replace(path, line)
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
    for each in waiting_sessions(store):
        if all(os.path.lexists(flag(state, name)) for name in each.names) or not _was_seen(
            store, each, oldest
        ):
            continue
        unread = each.unread(store) - shown_ids(state, each.session_id)
        of = [mailbox.queued(store.index.db, signal_id) for signal_id in unread]
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
        for session in waiting_sessions(store, only=session_id, begins=begins_as is not None):
            session.names = begins_as or session.names
            write_queue(store, session)
    except Exception:
        return


def begin_queue(store: Store, session_id: str, client_session: tuple[str, str] | None) -> None:
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
            local_files.remove_quietly(flag(store.repo.state, name))
            local_files.remove_quietly(os.path.join(store.repo.state, heartbeats.BEATS, name))


def remove_old_queues(store: Store) -> None:
    """Remove the files of sessions that ended elsewhere or were not seen for a month. Never raises."""
    try:
        state = store.repo.state
        queues, flags = _names(os.path.join(state, QUEUE)), _names(os.path.join(state, FLAGS))
        # Only after listing the queues: their sessions are then all in the index.
        store.caught_up()
        found = waiting_sessions(store)
        oldest = store.now() - heartbeats.INACTIVE_MICROS
        kept = [each for each in found if _was_seen(store, each, oldest)]
        for session_id in sorted(queues - {each.session_id for each in kept}):
            remove_queue(state, session_id, [session_id])
        for name in sorted(flags - {name for each in kept for name in each.names}):
            local_files.remove_quietly(flag(state, name))
        # The file of a session comes after its queue: one that began meanwhile may have lost it.
        before = {each.session_id for each in found}
        for session in waiting_sessions(store):
            if session.session_id not in before:
                write_queue(store, session)
        heartbeats.forget_old(store, oldest)
    except Exception:
        return


def queues_of(store: Store, reader: str, session_id: str | None = None) -> list[WaitingSession]:
    """Return this clone's open sessions that read a reader's messages.

    The index must have caught up.

    Args:
        session_id: The session that reads, if one does.
    """
    ids = (reader, session_id or reader)
    found = waiting_sessions(store, readers=ids)
    return [each for each in found if each.reader == reader or each.session_id in ids]


def remove_queue(state: str, session_id: str, names: Iterable[str]) -> None:
    """Remove the queue of a session that ended, its flags and its heartbeats."""
    for name in names:
        local_files.remove_quietly(flag(state, name))
        local_files.remove_quietly(os.path.join(state, heartbeats.BEATS, name))
    if not is_safe(session_id):
        return  # a client's own id could be any path
    where = queue_folder(state, session_id)
    for inside in (os.path.join(where, SHOWN), where):
        for name in sorted(_names(inside, hidden=True)):  # includes files of a killed process
            local_files.remove_quietly(os.path.join(inside, name))
        try:
            local_files.refuse_link(inside)
            os.rmdir(inside)
        except OSError:
            continue


def _names(where: str, *, hidden: bool = False) -> set[str]:
    return {name for name in local_files.names_in(where) if hidden or not name.startswith(".")}


TURNS = "deliver"
WAIT_SECONDS = 3.0  # for explicit requests: then displaying a signal twice is better than never
PAUSE_SECONDS = 0.01


class delivery_lock:  # noqa: N801 - it is used as a function
    """Take a reader's delivery lock: `with delivery_lock(store, reader) as mine`.

    `mine` is whether this process may display the reader's signals now. If nothing can be locked (a folder that can't
    be written), every process may. Receipts that could not be recorded earlier are recorded first.

    Args:
        reader: The reader identity.
        wait_seconds: How long to wait for another holder; None takes no lock, for callers that mark nothing as read.
    """

    def __init__(self, store: Store, reader: str, *, wait_seconds: float | None = 0.0) -> None:
        self._store = store
        self._reader = reader
        self._wait_seconds = wait_seconds
        self._lock: Lock | None = None

    def __enter__(self) -> bool:
        if self._wait_seconds is None:
            return True
        deadline = time.monotonic() + self._wait_seconds
        while not self._take():
            if time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE_SECONDS)
        try:
            self._store.db()
            _record_pending(self._store, self._reader)
        except BaseException:
            self._release()  # `__exit__` won't run, and a watch that continues must not lock itself out
            raise
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _take(self) -> bool:
        state = self._store.repo.state
        name = sha256(self._reader.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        lock = Lock(os.path.join(state, TURNS, f"{name}.lock"))
        for attempt in range(2):
            try:
                if not lock.take():
                    return False
                self._lock = lock
                break
            except (StoreError, OSError):
                if attempt or not _make(os.path.join(state, TURNS)):
                    break  # a full disk or a foreign folder: continue without a lock
        return True


def _make(folder: str) -> bool:
    """Create a folder in the state folder, if that exists. Another process may create it at the same time."""
    try:
        local_files.refuse_link(os.path.dirname(folder))
        if os.path.islink(folder):
            os.unlink(folder)
        os.mkdir(folder)
        local_files.adjust(folder)
    except OSError:
        return os.path.isdir(folder)
    return True


def was_shown(store: Store, reader: str, session_id: str | None) -> set[str]:
    """Return the signals that a reader was shown and whose receipts could not be recorded yet."""
    state = store.repo.state
    return {
        id for session in queues_of(store, reader, session_id) for id in shown_ids(state, session.session_id)
    }


def _record_pending(store: Store, reader: str) -> None:
    """Record the receipts that could not be recorded. If they still can't be, change nothing."""
    for session in queues_of(store, reader):
        ids = sorted(shown_ids(store.repo.state, session.session_id))
        if not ids:
            continue
        try:
            _record_shown(store, session, ids)
        except (GitmemError, OSError):
            continue
        for id in ids:
            local_files.remove_quietly(
                os.path.join(queue_folder(store.repo.state, session.session_id), SHOWN, id)
            )


def _record_shown(store: Store, session: WaitingSession, ids: Collection[str]) -> None:
    db = store.db()
    unread = mailbox.unread_ids(db, session.reader, session.session_id, session.workspace, store.now())
    to_mark = [
        (address, id, digest(_line_shown(store, session, id) or mailbox.line_of(db, id)))
        for address, id in sorted(unread)
        if id in ids
    ]
    record_receipts(store, session.reader, None, to_mark, session_id=session.session_id)


def _line_shown(store: Store, session: WaitingSession, id: str) -> bytes:
    """Return the queued line of a signal, or "" without it.

    The receipt is for this line alone, even if the signal has got other lines since.
    """
    path = os.path.join(queue_folder(store.repo.state, session.session_id), SHOWN, id)
    return local_files.read(path)


def record_receipts(
    store: Store,
    reader: str,
    caller: Caller | None,
    to_mark: Sequence[tuple[str, str, str]],
    more: Sequence[tuple[str, bytes]] = (),
    *,
    session_id: str | None = None,
) -> None:
    """Record `delivered` receipts, given as (address, signal id, digest). They are deferred to the next commit.

    Args:
        more: Lines to record with them.
        session_id: The session whose reader has read the signals; for a caller, its own.

    Raises:
        StoreError: They could not be recorded.
    """
    lines = []
    for address, signal_id, of in to_mark:
        fields: ReceiptFields = {
            "signal_id": signal_id,
            "reader_identity": address,
            "reader_session": caller.session_id if caller else session_id,
            "delivery_state": "delivered",
            "answers_digest": of,
        }
        lines.append(store.line("receipt", fields))
    lines += more
    if not lines:
        return
    author = caller.author if caller else f"{reader} <{reader}@gitmem>"
    name = (caller.name if caller else None) or reader
    count = len(to_mark)
    subject = f"{name} read {count} signal{'s' if count > 1 else ''}" if count else f"{name} is still active"
    store.record(lines, CommitMessage(author, subject, "", [("Agent", reader)]), deferred=True)


def move_to_shown(store: Store, reader: str, session_id: str | None, ids: Iterable[str]) -> None:
    """Keep hooks from displaying these signals again although their receipts can't be recorded now.

    A rename works on a full disk. Signals without an event file are displayed again.
    """
    wanted = set(ids)
    for session in queues_of(store, reader, session_id):
        where = queue_folder(store.repo.state, session.session_id)
        for id in sorted(wanted & queued_ids(store.repo.state, session.session_id)):
            try:
                local_files.refuse_link(os.path.join(where, SHOWN))
                os.rename(os.path.join(where, id), os.path.join(where, SHOWN, id))
            except OSError:
                continue


def clean_queues(store: Store, reader: str, session_id: str | None) -> None:
    """Remove event files of signals that are no longer unread, and flags without a reason. Never raises an error.

    One signal may wait in several sessions of one reader. Signals that were read elsewhere, or are not for this
    workspace, are removed silently.
    """
    try:
        found = queues_of(store, reader, session_id)
        for session in found:
            _clean_queue(store, session)
        if not found and session_id is not None:  # it ended, or never started: nobody reads its queue
            remove_queue(store.repo.state, session_id, flag_names(session_id, None))
    except Exception:
        return


def _clean_queue(store: Store, session: WaitingSession) -> None:
    state = store.repo.state
    flags = [heartbeats.flag(state, name) for name in session.names]
    if not queued_ids(state, session.session_id) and not any(map(os.path.lexists, flags)):
        return
    for path in flags:
        local_files.remove_quietly(path)
    # Only now: later signals set their flag themselves. Unread signals are queried after that, because an existing
    # event is in the index, or will be at its next catch-up.
    names = queued_ids(state, session.session_id)
    store.db()
    unread = session.unread(store) if names else set()
    for name in sorted(names - unread):
        local_files.remove_quietly(os.path.join(queue_folder(state, session.session_id), name))
    left = names & unread
    if len(names) >= EVENTS_MAX:
        write_queue(store, session)  # the signals beyond the limit
    elif left:
        urgent = bool(left & session.unread(store, directed=True))
        heartbeats.raise_flags(state, session.names, urgent=urgent)


NOTICES, TOLD, DUE = (
    os.path.join("claims", name) for name in ("notices", "told", "due")
)  # below the state folder
NOTICES_MAX = 4_000  # bytes for a session
TOLD_MAX = 5_000  # words for a session
_MORE = "There is more about claims: gitmem claim list"


def has_news(state: str, session: str, now: int) -> bool:
    """Return whether a session has to be told something, or has a claim to renew."""
    if not heartbeats.is_safe(session):
        return False
    return renews(state, session, now) or os.path.exists(os.path.join(state, NOTICES, session))


def renews(state: str, session: str, now: int) -> bool:
    """Return whether a session has a claim to renew."""
    if not heartbeats.is_safe(session):
        return False
    try:
        return os.stat(os.path.join(state, DUE, session)).st_mtime_ns // 1000 <= now
    except OSError:
        return False


def told(state: str, session: str) -> dict[str, None]:
    """Return the words for what a session was told once, the latest last."""
    return _words(local_files.read(os.path.join(state, TOLD, session)))


def _words(content: bytes) -> dict[str, None]:
    return dict.fromkeys(os.fsdecode(content).split())


def note_told(state: str, session: str, words: Iterable[str]) -> None:
    """Note what a session was told, beside what it was told before; of more than `TOLD_MAX` words the latest are kept.

    Raises:
        OSError: It can't be read as a whole, or not be written.
    """
    where = os.path.join(state, TOLD, session)
    local_files.make_dirs(os.path.dirname(where))
    latest = [*_words(local_files.load_whole(where)) | dict.fromkeys(words)][-TOLD_MAX:]
    local_files.replace(where, os.fsencode(" ".join(latest)))


def tell_once(store: Store, news: Callable[[], Iterable[tuple[str, str, str]]]) -> bool:
    """Have sessions told each of these sentences that they were not told before. Never raises: the next call repeats the work.

    Args:
        news: Returns the session, a word for what the sentence is about, and the sentence.

    Returns:
        Whether that was done for all of them.
    """
    state = store.repo.state
    try:
        for session, about, text in news():
            if heartbeats.is_safe(session) and about not in told(state, session):
                tell(store, session, text)
                note_told(state, session, [about])
    except Exception:
        return False
    return True


def tell(store: Store, session: str, text: str) -> None:
    """Have a session of this clone told something at its next command or hook.

    Raises:
        OSError: It can't be read as a whole, or not be written.
    """
    if not heartbeats.is_safe(session):
        return
    where = os.path.join(store.repo.state, NOTICES, session)
    before = local_files.load_whole(where)
    if len(before) + len(text.encode("utf-8", "replace")) > NOTICES_MAX:
        text = _MORE
        if text.encode() in before:
            return
    local_files.make_dirs(os.path.dirname(where))
    local_files.replace(where, before + text.encode("utf-8", "replace") + b"\n")
    names = heartbeats.flag_names(session, heartbeats.client_of(store, session))
    heartbeats.raise_flags(store.repo.state, names, urgent=True)


def forget_others(store: Store) -> None:
    """Remove the files of sessions that this clone has forgotten, or does not have."""
    for folder in (os.path.join(store.repo.state, name) for name in (NOTICES, TOLD)):
        for name in local_files.names_in(folder):
            if not heartbeats.is_here(store, name):
                local_files.remove_quietly(os.path.join(folder, name))


def take_notices(state: str, session: str) -> list[str]:
    """Return what a session has to be told, once; nothing if that can't be read as a whole."""
    where, lines = _notices(state, session)
    if lines:
        local_files.remove_quietly(where)
    return b"".join(lines).decode("utf-8", "replace").splitlines()


def _notices(state: str, session: str) -> tuple[str, list[bytes]]:
    """Return the path and the lines of the file for what a session has to be told; none if they can't be read as a whole."""
    if not heartbeats.is_safe(session):
        return "", []
    where = os.path.join(state, NOTICES, session)
    try:
        return where, local_files.load_whole(where).splitlines(keepends=True)
    except OSError:
        return where, []


def drop_notices(state: str, session: str, beginning: str) -> list[str]:
    """Drop and return the sentences with this beginning, which an answer to the session has. Never raises: it is told twice then."""
    where, lines = _notices(state, session)
    left = [each for each in lines if not each.startswith(beginning.encode())]
    try:
        if left and len(left) < len(lines):
            local_files.replace(where, b"".join(left))
        elif lines and not left:
            local_files.remove_quietly(where)
    except OSError:
        pass
    return [each.decode("utf-8", "replace").rstrip("\n") for each in lines if each not in left]
