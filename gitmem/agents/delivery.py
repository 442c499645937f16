"""Delivery of signals to the sessions of this clone: their flags and notices for hooks, and the delivery lock.

Flags are derived from the log, like the index, for hooks that can't wait for Python: a hook only tests a flag. The state
folder contains

- `flags/<name>`: signals wait. It is not empty if one may interrupt (directed, not advisory). The name is the
  session's id or the client's id that it was started under;
- `beats/<name>`: touched by hooks, see `heartbeats`;
- `claims/notices/<session id>`: sentences about claims, and about tasks that collide, for its next command or hook;
  `claims/told/<session id>`: words for what it was told once, the latest last. The time of `claims/due/<session id>` is when
  its claims are to be renewed.

Flags are raised before the mark of how far the index was read. After a crash in between, the work is repeated.

A hook, an inbox and a watch may all want to display the same signal. The holder of the delivery lock reads the unread
signals, displays them, and records the receipts before it releases the lock; the next holder finds these receipts. It is
an OS lock: a killed process leaves no lock behind, and signals displayed without a receipt are displayed again.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..errors import StoreError
from ..index import index_file
from ..log.lines import CommitMessage
from ..log.lock import Lock
from ..order.session import HOLD_MICROS
from ..text.digests import sha256
from . import heartbeats, mailbox
from .heartbeats import FLAGS, FLAGS_MARK, flag, flag_names, raise_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from ..records.record_types import ReceiptFields
    from ..store import Store
    from .caller import Caller


class WaitingSession:
    """An open session of this clone: its reader and the names of its flags."""

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

    def was_sent(self, store: Store, ids: set[str]) -> bool:
        """Return whether one of these unread signals was sent to it in particular, also if it is advisory."""
        query = mailbox.directed_to(store.index.db, self.reader, self.session_id, self.workspace, unread=True)
        return any(signal_id in ids for _, signal_id in store.index.db.execute(*query))


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


SEEN_MICROS = 24 * 3600 * 1_000_000  # a session that was not seen for longer gets no broadcasts
LAG_MAX = 16  # lines of the index; a mark for each signal without a reader here would cost a write
AGAIN_SECONDS = 1.0


def raise_new(store: Store) -> None:
    """Raise the flags of every session of this clone for which a signal is new in the index.

    Flags are derived: an error here does not undo a write or a read, and the next call repeats the work.
    """
    try:
        _raise_new(store)
    except Exception:
        store.feed_after = time.monotonic() + AGAIN_SECONDS


def _raise_new(store: Store) -> None:
    db = store.index.db
    fed, newest = marks = index_file.mark(db, *FLAGS_MARK)
    if newest is None or marks == store.fed or time.monotonic() < store.feed_after:
        return
    state = store.repo.state
    after = int(fed) if fed is not None and heartbeats.has_flags(state) else 0
    if after != newest:
        found = waiting_sessions(store, after=after)
        for session in found:
            raise_for(store, session, after)
        if found or not after or newest - after > LAG_MAX:
            local_files.make_dirs(os.path.join(state, FLAGS))
            index_file.set_mark(db, FLAGS_MARK[0], str(newest))
            marks = (str(newest), newest)
    store.fed = marks


def raise_for(store: Store, session: WaitingSession, after: int = 0) -> None:
    """Raise the flags of a session that has not read something.

    Args:
        after: Only for signals that were indexed after this line.

    Raises:
        OSError: A file can't be written.
    """
    urgent = bool(session.unread(store, after, directed=True))
    found = set() if urgent else session.unread(store, after)
    is_here = bool(found) and _was_seen(store, session, store.now() - SEEN_MICROS)
    if urgent or is_here or (found and session.was_sent(store, found)):
        raise_flags(store.repo.state, session.names, urgent=urgent)


def _was_seen(store: Store, session: WaitingSession, since: int) -> bool:
    if session.alive_until - HOLD_MICROS >= since:
        return True
    return heartbeats.last_seen(store, session.session_id) >= since


def raise_all(store: Store, session_id: str, *, begins_as: list[str] | None = None) -> None:
    """Raise the flags of a session of this clone if anything is unread. Never raises an error, see `raise_new`.

    Args:
        begins_as: The names of its flags, if it has no file here yet.
    """
    try:
        store.caught_up()
        for session in waiting_sessions(store, only=session_id, begins=begins_as is not None):
            session.names = begins_as or session.names
            raise_for(store, session)
    except Exception:
        return


def begin(store: Store, session_id: str, client_session: tuple[str, str] | None) -> None:
    """Record that a session starts in this worktree, after its flags: nobody who is killed leaves one without them for its hooks.

    Flags of one that did not begin are removed by the next start. What arrives before the session is here needs `raise_all`.
    """
    names = flag_names(session_id, client_session[1] if client_session else None)
    if store.collecting is None:
        raise_all(store, session_id, begins_as=names)
    heartbeats.start(store, session_id, client_session)


def forget_names(store: Store, session_id: str, names: Iterable[str]) -> None:
    """Remove flags and heartbeats under names that a session has had and has no more: its client has another id for it."""
    kept = flag_names(session_id, heartbeats.client_of(store, session_id))
    remove_flags(store.repo.state, [name for name in names if name not in kept])


def remove_old_flags(store: Store) -> None:
    """Remove the files of sessions that ended elsewhere or were not seen for a month. Never raises."""
    try:
        state = store.repo.state
        flags = local_files.names_in(os.path.join(state, FLAGS))
        # Only after listing the flags: their sessions are then all in the index.
        store.caught_up()
        found = waiting_sessions(store)
        oldest = store.now() - heartbeats.INACTIVE_MICROS
        kept = {name for each in found if _was_seen(store, each, oldest) for name in each.names}
        for name in sorted(set(flags) - kept):
            local_files.remove_quietly(flag(state, name))
        # The file of a session comes after its flags: one that began meanwhile may have lost them.
        before = {each.session_id for each in found}
        for session in waiting_sessions(store):
            if session.session_id not in before:
                raise_for(store, session)
        heartbeats.forget_old(store, oldest)
    except Exception:
        return


def remove_flags(state: str, names: Iterable[str]) -> None:
    """Remove flags and heartbeats."""
    for name in names:
        local_files.remove_quietly(flag(state, name))
        local_files.remove_quietly(os.path.join(state, heartbeats.BEATS, name))


def correct_flags(store: Store, reader: str, session_id: str | None, *, lower: bool = False) -> None:
    """Lower the flags of a reader's sessions unless something is unread. Never raises an error.

    Args:
        session_id: The session that reads, if one does.
        lower: Lower them in any case, until the next signal: hooks would show again what can't be marked as read.
    """
    try:
        ids, state = (reader, session_id or reader), store.repo.state
        found = waiting_sessions(store, readers=ids)
        for session in found:
            if any(os.path.lexists(flag(state, name)) for name in session.names):
                for name in session.names:
                    local_files.remove_quietly(flag(state, name))
                # Only now: later signals raise the flag themselves, and earlier ones are in the index at its next catch-up.
                store.db()
                if not lower:
                    raise_for(store, session)
        if not found and session_id is not None:  # it ended, or never started: nobody reads its signals
            remove_flags(state, flag_names(session_id, None))
    except Exception:
        return


TURNS = "deliver"
WAIT_SECONDS = 3.0  # for explicit requests: then displaying a signal twice is better than never
PAUSE_SECONDS = 0.01


class delivery_lock:  # noqa: N801 - it is used as a function
    """Take a reader's delivery lock: `with delivery_lock(store, reader) as mine`.

    `mine` is whether this process may display the reader's signals now. If nothing can be locked (a folder that can't
    be written), every process may.

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
            with self._store.lock:  # a watch has taken only the delivery lock
                self._store.db()
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


def record_receipts(
    store: Store,
    reader: str,
    caller: Caller | None,
    to_mark: Sequence[tuple[str, str, str]],
    more: Sequence[tuple[str, bytes]] = (),
) -> None:
    """Record `delivered` receipts, given as (address, signal id, digest). They are deferred to the next commit.

    Args:
        more: Lines to record with them.

    Raises:
        StoreError: They could not be recorded.
    """
    lines = []
    for address, signal_id, of in to_mark:
        fields: ReceiptFields = {
            "signal_id": signal_id,
            "reader_identity": address,
            "reader_session": caller.session_id if caller else None,
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


NOTICES, TOLD, DUE = (
    os.path.join("claims", name) for name in ("notices", "told", "due")
)  # below the state folder
NOTICES_MAX = 4_000  # bytes for a session
TOLD_MAX = 5_000  # words for a session
_MORE = "There is more about claims: gitmem claim list"


def has_news(state: str, session: str, now: int) -> bool:
    """Return whether a session has to be told something, or has a claim to renew."""
    told = os.path.join(state, NOTICES, session)
    return renews(state, session, now) or (heartbeats.is_safe(session) and os.path.exists(told))


def renews(state: str, session: str, now: int) -> bool:
    """Return whether a session has a claim to renew."""
    due = local_files.modified_ns(os.path.join(state, DUE, session)) if heartbeats.is_safe(session) else 0
    return 0 < due // 1000 <= now


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
