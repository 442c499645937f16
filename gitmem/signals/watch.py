"""Wait for changes of a clone, and watch a reader's signals: display each new one once, across restarts."""

from __future__ import annotations

import os
import time

from .. import local_files
from ..agents import caller as callers
from ..agents import delivery, mailbox, presence
from ..errors import GitmemError, StoreError
from ..index.index_file import sqlite3
from ..log.ref import LOG_REF
from ..order.content import has_conflict
from ..outcome import Struct, command
from ..repo import read_small
from . import inbox, message_frame
from .inbox import resolve_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    from watchfiles._rust_notify import RustNotify

    from ..agents.caller import Caller, CallerClaims
    from ..records.record_types import ShownSignal
    from ..store import Store
    from .inbox import InboxOwner, InboxResult

    class StopWatching(Protocol):
        """A flag that ends the wait, such as `threading.Event`."""

        def is_set(self) -> bool:
            """Return whether to end the wait."""
            ...


BESIDE_SECONDS = 2.0  # polling interval with events
ALONE_SECONDS = 0.25
AGAIN_SECONDS = 30.0  # before the watcher is started again after an error
# `watchfiles` polls for events at this interval and reports them after two polls. A poll costs 50 µs, so a longer
# interval pays while nothing happens.
IDLE_MILLISECONDS, BUSY_MILLISECONDS = 40, 20
BUSY_SECONDS = 10.0  # after a change: more changes are likely
BURST_MILLISECONDS = 50  # an append makes several events; a longer burst is reported before it ends


class NeverSet:
    """A stop that is never set."""

    def is_set(self) -> bool:
        """Return False."""
        return False


class ChangeWatcher(Struct):
    """Detects changes of a clone's log.

    Attributes:
        stop: Ends a wait.
        events: Whether to use file-system events; without them the files are polled more often.
        poll_seconds: The polling interval without events.
    """

    store: Store
    stop: StopWatching
    events: bool = True
    poll_seconds: float = ALONE_SECONDS
    _watcher: RustNotify | None = None
    _watched: list[tuple[str, int, int]] = []
    _again: float = 0.0
    _busy_until: float = 0.0

    def stamp(self) -> object:
        """Return a value that changes whenever the ref moves or a record is written."""
        common = self.store.repo.common
        # Content and size instead of time and inode: two changes may have one mtime, and a new file an old inode.
        sizes = [(file.path, file.size) for wal in self.store.log.wals for file in wal.files() if file.size]
        return (
            read_small(os.path.join(common, LOG_REF), 100),
            local_files.stamp(os.path.join(common, "packed-refs")),
            sizes,
        )

    def wait(self, seen: object, seconds: float) -> bool:
        """Wait until the stamp differs from `seen`, at most this many seconds; return whether it does."""
        deadline = time.monotonic() + seconds
        while not self.stop.is_set():
            if self.stamp() != seen:
                self._busy_until = time.monotonic() + BUSY_SECONDS
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if not self._begins():
                self._pause(left)
        return False

    def close(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def _begins(self) -> bool:
        """Start the watcher if needed; return whether it was started.

        The caller then compares the stamp again, as earlier changes made no event.
        """
        folders = self._folders()
        if self._watcher is not None and folders != self._watched:
            self.close()
        if self._watcher is not None or not self.events or time.monotonic() < self._again:
            return False
        try:
            from watchfiles._rust_notify import RustNotify

            self._watched = folders
            self._watcher = RustNotify([path for path, *_ in folders], False, False, 0, False, True)
        except ImportError:
            self.events = False
        except Exception:  # polling works without events, whatever the error
            self._again = time.monotonic() + AGAIN_SECONDS
        return self._watcher is not None

    def _pause(self, left: float) -> None:
        """Wait for an event, at most until the next poll."""
        if self._watcher is None:
            time.sleep(min(left, self.poll_seconds))
            return
        step = BUSY_MILLISECONDS if time.monotonic() < self._busy_until else IDLE_MILLISECONDS
        seconds = max(min(left, BESIDE_SECONDS), 0.001)
        try:
            found = self._watcher.watch(BURST_MILLISECONDS, step, int(seconds * 1000), self.stop)
        except Exception:
            self.close()
            self._again = time.monotonic() + AGAIN_SECONDS
            return
        if found == "signal":  # a signal handler raised, and the watcher swallowed the exception
            raise KeyboardInterrupt

    def _folders(self) -> list[tuple[str, int, int]]:
        """Return the existing folders of the ref, of packed refs and of write-ahead logs: path, device and inode."""
        common = self.store.repo.common
        ref = os.path.dirname(os.path.join(common, LOG_REF))
        found = []
        for path in (common, ref, *(wal.folder for wal in self.store.log.wals)):
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_dev, status.st_ino))
        return found


PAUSES = (
    0.001,
    0.04,
)  # the shortest and the longest, in seconds, between two polls, of which each takes about 50 µs
SHARE = 0.01  # of the time since the last change


class LogWaiter:
    """Waits until the log of a clone changes, by polling the sizes of its write-ahead logs: often at first, more rarely the longer it takes.

    File-system events come later than that: the watcher of `watch` collects a burst of them first.

    Args:
        stop: Ends a wait.
    """

    def __init__(self, store: Store, stop: StopWatching) -> None:
        self._watcher = ChangeWatcher(store, stop, events=False)
        self._stop = stop
        self._changed = time.monotonic()

    def stamp(self) -> object:
        """Return a value that changes with each record. Take it before reading."""
        return self._watcher.stamp()

    def wait(self, seen: object, seconds: float) -> bool:
        """Wait until the stamp differs from `seen`, or the stop is set.

        Args:
            seconds: At most; a caller looks again after that, because leases end without a record.

        Returns:
            Whether the stamp differs.
        """
        deadline = time.monotonic() + seconds
        while not self._stop.is_set():
            differs = self.stamp() != seen
            now = time.monotonic()
            if differs:
                self._changed = now
            if differs or now >= deadline:
                return differs
            pause = min(max(SHARE * (now - self._changed), PAUSES[0]), PAUSES[1])
            time.sleep(min(pause, deadline - now))
        return False


BATCH_BYTES = 1024 * 1024  # of lines in one batch: a message is never cut
WAIT_SECONDS = 60.0
SHOWN_AGAIN_SECONDS = 2.0


class WatchOwner:
    """The owner of the watched signals.

    Attributes:
        reader: The reader identity.
        session: The watched session, if any: its end ends the watch.
        name: The reader's display name.
        peek: Why nothing is marked as read; None if the watch belongs to the reader.
    """

    def __init__(self, caller: Caller, peek: str | None = None) -> None:
        self.caller = caller
        self.reader = caller.reader
        self.session = caller.session_id if not caller.raw else None
        self.name = caller.name or caller.reader
        self.workspace = caller.workspace
        self.peek = peek


def watch_owner(store: Store, who: CallerClaims) -> WatchOwner:
    """Return the owner of the signals to watch.

    An agent whose `--as` names another session only peeks: the signals stay unread.

    Raises:
        UsageError: As for every command.
    """
    own = callers.find(store, who)
    assert own is not None
    return WatchOwner(own, callers.peek_reason(store, own) if own.who is not None else None)


def watch_until(
    store: Store, who: CallerClaims, *, stop: StopWatching | None = None, events: bool = True
) -> Iterator[InboxResult]:
    """Yield batches of the caller's signals until `stop` is set or the session ends."""
    with store.lock:
        seen = Watch(store, watch_owner(store, who), stop or NeverSet(), events=events)
    try:
        while not seen.stop.is_set():
            yield from seen.unread()
            if seen.ended:
                return
            while not seen.wait(WAIT_SECONDS) and not seen.stop.is_set():
                continue
    finally:
        seen.close()


class Watch:
    """A watch over one reader's signals.

    Call `unread` for the present signals and `wait` for new ones, in turn.

    Args:
        stop: Ends the wait and prevents another batch.
        events: Whether to use file-system events.
        one_by_one: Whether a batch is a single signal, so that a slow display does not hold the others.
        report: Called with a sentence once when an error begins, and once when it is over.
        again_seconds: How long to wait before a retry after an error, without a change.
        lock_seconds: How long to wait for another process that displays the reader's signals.
    """

    def __init__(
        self,
        store: Store,
        of: WatchOwner,
        stop: StopWatching,
        *,
        events: bool = True,
        one_by_one: bool = False,
        report: Callable[[str], object] = lambda sentence: None,
        again_seconds: float = SHOWN_AGAIN_SECONDS,
        lock_seconds: float = delivery.WAIT_SECONDS,
    ) -> None:
        self.store = store
        self.of = of
        self.stop = stop
        self.limit = 1 if one_by_one else inbox.LIMIT
        self.report = report
        self.again_seconds = again_seconds
        self.lock_seconds = lock_seconds
        self.ended = False
        self._target = self._find()
        self._waker = ChangeWatcher(store, stop, events=events)
        self._stamp: object = None
        self._seen: dict[str, int] = {}  # signal id: its number of different lines
        self._trouble: str | None = None
        self._unmarked = False
        self._fresh = True

    def unread(self) -> Iterator[InboxResult]:
        """Yield batches of unread signals, each with the oldest first.

        A batch is marked as read when the next one is requested: display and flush it before. A caller that stops
        earlier marks nothing of it. `leave` keeps one signal of a batch unread.

        Raises:
            StoreError: The repository is gone. Other errors are reported to `report` and retried.
        """
        if not os.path.isdir(self.store.repo.common):
            raise StoreError(f"The repository {self.store.repo.common} no longer exists.", code="gone")
        self._stamp = self._waker.stamp()  # before reading: signals that arrive meanwhile are a change
        self._fresh = True
        lock = self.store.lock  # not held while a batch is displayed or during a wait: other threads may send
        try:
            with lock:
                self._renew()
            waits = None if self.of.peek else self.lock_seconds
            while not self.stop.is_set() and self._new():
                with delivery.delivery_lock(self.store, self.of.reader, wait_seconds=waits):
                    with lock:
                        reading = self._read()
                        if not reading.signals:
                            inbox.mark(self.store, reading)  # another reader was first: remove its stale flag
                            break
                    yield reading
                    with lock:
                        self._mark(reading)
        except (GitmemError, OSError, sqlite3.Error) as error:
            self._has_error(str(error))
        else:
            self._has_error(None)

    def leave(self, reading: InboxResult, signal_id: str) -> None:
        """Leave a signal of this batch unread. This watch does not display it again."""
        self._see([signal_id])
        reading.to_mark = [each for each in reading.to_mark if each[1] != signal_id]

    def wait(self, seconds: float) -> bool:
        """Wait at most this long for a change or the stop; return whether to call `unread`."""
        if self._trouble is not None:
            self._waker.wait(self._stamp, min(seconds, self.again_seconds))
            return not self.stop.is_set()
        if self._waker.wait(self._stamp, seconds):
            return True
        if self._fresh and not self.stop.is_set():
            self._fresh = False
            with self.store.lock:
                self.store.git.close()  # ends its idle child process
        return False

    def close(self) -> None:
        """Stop watching."""
        self._waker.close()

    def _find(self) -> InboxOwner:
        found = resolve_owner(self.store, self.of.caller, self.of.reader if self.of.peek else None)
        if self.of.peek is not None:
            found.peek, found.caller = self.of.peek, None
        return found

    def _renew(self) -> None:
        """Refresh the watched session: its name or identity may have changed, or it may have ended."""
        found = presence.get(self.store, self.of.session) if self.of.session and not self.of.peek else None
        if found is None:
            return
        self.ended = found.ended is not None
        self.of = WatchOwner(callers.of_session(found, self.of.caller.source))
        self._target = self._find()

    def _new(self) -> bool:
        """Return whether there are signals that this watch has not displayed."""
        found = self._target
        with self.store.lock:
            ids = mailbox.unread_ids(
                self.store.db(), found.reader, found.session, found.workspace, self.store.now()
            )
            self._forget_changed({signal_id for _, signal_id in ids})
        return any(signal_id not in self._seen for _, signal_id in ids)

    def _see(self, ids: Iterable[str]) -> None:
        db = self.store.index.db
        self._seen.update((id, len(message_frame.versions(db, id))) for id in ids)

    def _forget_changed(self, unread: Iterable[str]) -> None:
        """Forget signals that got another line, to display them again."""
        for id in self._seen.keys() & unread:
            if len(message_frame.versions(self.store.index.db, id)) != self._seen[id]:
                del self._seen[id]

    def _read(self) -> InboxResult:
        return inbox.read(
            self.store,
            self.of.caller,
            whose=self._target,
            limit=self.limit,
            max_bytes=BATCH_BYTES,
            without=self._seen,
        )

    def _mark(self, reading: InboxResult) -> None:
        self._see(fields["signal_id"] for fields in reading.signals)
        try:
            inbox.mark(self.store, reading)
        except (StoreError, OSError) as error:
            if not self._unmarked:
                self.report(
                    f"Cannot mark the displayed signals as delivered ({error}); a later watch shows them again."
                )
            self._unmarked = True
            return
        if self._unmarked and reading.to_mark:
            self._unmarked = False
            self.report("Displayed signals are marked as delivered again.")

    def _has_error(self, what: str | None) -> None:
        if what is not None and self._trouble is None:
            self.report(f"Cannot read the log ({what}); retrying.")
        elif what is None and self._trouble is not None:
            self.report("The log is readable again.")
        self._trouble = what


def steps(fields: ShownSignal, of: WatchOwner) -> list[str]:
    """Return the commands that settle one signal."""
    signal_id = fields["signal_id"]
    if not of.peek and has_conflict(fields):
        return message_frame.compare(signal_id)
    if not of.peek and message_frame.last_open_question([fields]):
        return message_frame.decide(fields)
    return [command("gitmem", "thread", signal_id)]
