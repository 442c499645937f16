"""The delivery lock: one process at a time displays a reader's signals, and then cleans up the reader's queues.

A hook, an inbox and a watch may all want to display the same signal. The lock holder reads the unread signals,
displays them, and records the receipts before it releases the lock; the next holder finds these receipts. It is an OS
lock: a killed process leaves no lock behind, and signals displayed without a receipt are displayed again.
"""

from __future__ import annotations

import os
import time

from .. import atomic_write, state_files
from ..agents import heartbeats
from ..agents.heartbeats import flag_names
from ..digests import sha256
from ..errors import GitmemError, StoreError
from ..log.entry import CommitMessage
from ..log.lines import digest
from ..log.lock import Lock
from . import mailbox_view, session_queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from types import TracebackType

    from ..agents.caller import Caller
    from ..records.record_types import ReceiptFields
    from ..store import Store
    from .waiting_sessions import WaitingSession

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
        state_files.refuse_link(os.path.dirname(folder))
        if os.path.islink(folder):
            os.unlink(folder)
        os.mkdir(folder)
        state_files.adjust(folder)
    except OSError:
        return os.path.isdir(folder)
    return True


def was_shown(store: Store, reader: str, session_id: str | None) -> set[str]:
    """Return the signals that a reader was shown and whose receipts could not be recorded yet."""
    state = store.repo.state
    return {
        id
        for session in session_queue.of_reader(store, reader, session_id)
        for id in session_queue.shown(state, session.session_id)
    }


def _record_pending(store: Store, reader: str) -> None:
    """Record the receipts that could not be recorded. If they still can't be, change nothing."""
    for session in session_queue.of_reader(store, reader):
        ids = sorted(session_queue.shown(store.repo.state, session.session_id))
        if not ids:
            continue
        try:
            _record_shown(store, session, ids)
        except (GitmemError, OSError):
            continue
        for id in ids:
            atomic_write.remove_quietly(
                os.path.join(
                    session_queue.folder(store.repo.state, session.session_id), session_queue.SHOWN, id
                )
            )


def _record_shown(store: Store, session: WaitingSession, ids: Collection[str]) -> None:
    db = store.db()
    unread = mailbox_view.unread_ids(db, session.reader, session.session_id, session.workspace, store.now())
    to_mark = [
        (address, id, digest(_line_shown(store, session, id) or mailbox_view.line_of(db, id)))
        for address, id in sorted(unread)
        if id in ids
    ]
    record(store, session.reader, None, to_mark, session_id=session.session_id)


def _line_shown(store: Store, session: WaitingSession, id: str) -> bytes:
    """Return the queued line of a signal, or "" without it.

    The receipt is for this line alone, even if the signal has got other lines since.
    """
    path = os.path.join(session_queue.folder(store.repo.state, session.session_id), session_queue.SHOWN, id)
    return state_files.read(path)


def record(
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
        session_id: The session that has read, if there is no caller.

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
    for session in session_queue.of_reader(store, reader, session_id):
        where = session_queue.folder(store.repo.state, session.session_id)
        for id in sorted(wanted & session_queue.events(store.repo.state, session.session_id)):
            try:
                state_files.refuse_link(os.path.join(where, session_queue.SHOWN))
                os.rename(os.path.join(where, id), os.path.join(where, session_queue.SHOWN, id))
            except OSError:
                continue


def clean_queues(store: Store, reader: str, session_id: str | None) -> None:
    """Remove event files of signals that are no longer unread, and flags without a reason. Never raises an error.

    One signal may wait in several sessions of one reader. Signals that were read elsewhere, or are not for this
    workspace, are removed silently.
    """
    try:
        found = session_queue.of_reader(store, reader, session_id)
        for session in found:
            _clean_queue(store, session)
        if not found and session_id is not None:  # it ended, or never started: nobody reads its queue
            session_queue.remove(store.repo.state, session_id, flag_names(session_id, None))
    except Exception:
        return


def _clean_queue(store: Store, session: WaitingSession) -> None:
    state = store.repo.state
    flags = [heartbeats.flag(state, name) for name in session.names]
    if not session_queue.events(state, session.session_id) and not any(map(os.path.lexists, flags)):
        return
    for path in flags:
        atomic_write.remove_quietly(path)
    # Only now: later signals set their flag themselves. Unread signals are queried after that, because an existing
    # event is in the index, or will be at its next catch-up.
    names = session_queue.events(state, session.session_id)
    store.db()
    unread = session.unread(store) if names else set()
    for name in sorted(names - unread):
        atomic_write.remove_quietly(os.path.join(session_queue.folder(state, session.session_id), name))
    left = names & unread
    if len(names) >= session_queue.EVENTS_MAX:
        session_queue.write_queue(store, session)  # the signals beyond the limit
    elif left:
        urgent = bool(left & session.unread(store, directed=True))
        heartbeats.raise_flags(state, session.names, urgent=urgent)
