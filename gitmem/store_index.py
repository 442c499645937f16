"""The index of a store: open it, catch up, replace it if damaged, and preview the entries of an open batch."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from . import records
from .errors import GitmemError, UsageError
from .git import files
from .index import engine, index_file, query
from .index.engine import sqlite3
from .trust import sender_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import TypeVar

    from .git.repository import Git
    from .index.index_file import Index, View
    from .index.query import Snapshot
    from .log.lines import LogEntry
    from .log.local_log import LocalLog
    from .outcome import Progress
    from .repo import Repo
    from .store_domain import Domain
    from .trust.clone_key import CloneKeyReader

    Answer = TypeVar("Answer")


# `Index.shape` of `views.VIEWS`, a constant because that import costs more than a query. Written by `tools/compile_shape.py`.
SHAPE = (1532817741, 103773210780193)


class LazyViews:
    """The views of a domain, created only when the index is filled, not when it is queried.

    Args:
        domain: Creates the views.
        keys: The clone's keys.
    """

    shape = SHAPE

    def __init__(self, domain: Domain, keys: CloneKeyReader) -> None:
        self._domain = domain
        self._keys = keys

    def __iter__(self) -> Iterator[View]:
        return iter(self._domain.views(self._keys))


class StoreIndex(ABC):
    """The index part of a store; `Store` sets the attributes that it uses."""

    repo: Repo
    git: Git
    domain: Domain
    machine: str
    log: LocalLog
    keys: CloneKeyReader
    progress: Progress | None
    recorded: bool
    commit_after: float
    commit_seconds: float
    is_committing: bool
    commit_again: float
    commit_failed: GitmemError | None
    wrote: int

    def __init__(self) -> None:
        self.views = LazyViews(self.domain, self.keys)
        self.collecting: Callable[[LogEntry], None] | None = None  # receives the entries of an open batch
        self.fed: object = None  # the state that `delivery.queue_new` has processed
        self.feed_after = 0.0  # time of the next try after it could not write
        self.snapshot: Snapshot | None = None  # the snapshot of `with_one_snapshot`
        self._snapshots = query.Snapshots(self.repo, self.machine, SHAPE, nameless=records.NAMELESS)
        self.asks_once = False  # whether to catch up only once in this process; later entries are not seen
        self.has_asked = False
        self.was_exact = True  # whether the last operation of `with_one_snapshot` saw the latest records
        self._ahead: Index | None = None
        self._index: Index | None = None
        self._looked = False
        self._left: list[Index] = []
        self._homeless = False  # whether the index's folder was missing: this process starts the log

    @property
    def index(self) -> Index:
        """The index, opened on first use and perhaps behind the log; `db` catches up."""
        if self._index is None:
            self._homeless = not os.path.isdir(self.repo.state)
            self._index = index_file.open_index(self.repo, self.machine, self.views, records.read)
        return self._index

    def with_one_snapshot(self, work: Callable[[], Answer], *, exact: bool) -> Answer:
        """Run an operation on one snapshot of the index as it is, without catching up before or after.

        Catch up first if the snapshot lacks too much. If the operation is rejected with a UsageError on an incomplete
        snapshot, catch up and run it once more, unless it has recorded something.

        Args:
            work: Reads and then records.
            exact: Whether it depends on more than names: then the snapshot must contain all waiting entries.
        """
        snapshot = self._take(exact)
        if snapshot is None:
            self.db()
            snapshot = self._take(exact)
        if snapshot is None:
            return work()
        self.snapshot = snapshot
        self.was_exact = exact
        before, self.recorded = self.recorded, False
        try:
            return work()
        except UsageError:
            if snapshot.is_complete or self.recorded:
                raise
            self.was_exact = True
        finally:
            self.recorded = self.recorded or before
            self.snapshot = None
            snapshot.close()
        return work()

    def _take(self, exact: bool) -> Snapshot | None:
        """Return a snapshot that suffices for an operation, or None."""
        if self._ahead is not None or self.collecting is not None or self.log.elsewhere or self.log.others:
            return None
        snapshot = self._snapshots.take()
        if snapshot is None:
            return None
        if not (snapshot.is_complete or (snapshot.has_names and not exact)):
            snapshot.close()
            snapshot = self._with_waiting()
            if snapshot is None:
                return None
        if sender_tables.is_checked(snapshot.db, self.keys.now()):
            return snapshot
        snapshot.close()
        return None

    def _with_waiting(self) -> Snapshot | None:
        """Return a snapshot with what waits, which is in this process alone: nobody waits for the disk; None if that is impossible."""
        from .index import catch_up

        try:
            return catch_up.preview(self.index, self.log)
        except (sqlite3.Error, OSError):
            return None

    def one_look(self) -> OneLook:
        """Catch up at the first query in the block, and later only with what this process records.

        What must see the records of others, such as after waiting for a lock, begins a block of its own. The thread holds `lock`.
        """
        return OneLook(self)

    def caught_up(self) -> Index:
        """Return the index, caught up with the ref and the write-ahead logs, and update the queues."""
        try:
            if not self._is_current():
                from .trust import line_checks

                line_checks.catch_up_checked(self.index, self.log, self.keys.now(), self.progress)
        except sqlite3.DatabaseError as error:
            self.replace_index(error)
        self._feed()
        return self.index

    def _is_current(self) -> bool:
        """Return whether the index has all lines of the log, checked with this clone's key."""
        from .index import generations

        return generations.is_current(self.index, self.log) and sender_tables.is_checked(
            self.index.db, self.keys.now()
        )

    @abstractmethod
    def db(self) -> sqlite3.Connection:
        """See `Store.db`."""

    @abstractmethod
    def waits(self) -> bool:
        """See `Store.waits`."""

    @abstractmethod
    def keep_up(self) -> None:
        """See `Store.keep_up`."""

    @abstractmethod
    def committer(self) -> tuple[str, str] | None:
        """See `Store.committer`."""

    @abstractmethod
    def _feed(self) -> None:
        """Update the queues."""

    def replace_index(self, error: sqlite3.DatabaseError) -> None:
        """Replace an index that is damaged or not writable: by a new one, a copy, or one in memory."""
        from .index import catch_up

        self.index.close()
        self.fed = None
        if catch_up.rebuild_damaged(index_file.path(self.repo, self.machine), error):
            self._index = index_file.open_index(self.repo, self.machine, self.views, records.read)
        else:
            self._index = index_file.open_copy(self.repo, self.machine, self.views, records.read)
        try:
            catch_up.catch_up(self._index, self.log, progress=self.progress)
        except sqlite3.DatabaseError:
            self._index.close()
            self._index = index_file.in_memory(self.views, records.read)
            catch_up.catch_up(self._index, self.log, progress=self.progress)

    def adopt(self) -> None:
        """Create the log's ref from a log that an ordinary `git fetch` fetched, at the first query."""
        if not self._looked:
            self._looked = True
            try:
                if self.git.tip(files.LOG_REF) is None:
                    from .log import start

                    start.create_ref_from_fetched(self.log)
            except (GitmemError, OSError, KeyError):
                return  # `doctor` and writers report the fault

    def refresh(self) -> None:
        """Catch up after a write.

        An index failure does not undo the write. If the index is busy or damaged, the next query handles it, also in `one_look`.
        An operation with a snapshot that is never committed leaves the index as it is, for the next query.
        """
        if self._index is not None and self._index.db.in_transaction:
            self.has_asked = False
            return
        from .index import catch_up, damaged_index

        looked, self.has_asked = self.has_asked, False
        try:
            if self._homeless and os.path.isdir(self.repo.state):
                self.leave_index()
            self.adopt()
            with engine.BusyWait(self.index.db):
                catch_up.catch_up(self.index, self.log, progress=self.progress)
                self.has_asked = looked
                self._feed()
        except Exception as error:
            self.leave_index()
            damaged_index.remove_if_damaged(index_file.path(self.repo, self.machine), error)

    def leave_index(self) -> None:
        """Open a new index at the next query."""
        if self._index is not None:
            self._left.append(self._index)  # not closed: a writer may still read from it
        self._index = None
        self.fed = None

    def collect(self, to: Callable[[LogEntry], None] | None) -> None:
        """Start a batch, whose entries go to `to` instead of the log; None ends it."""
        self.collecting = to
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _look_ahead(self, entry: LogEntry) -> None:
        """Apply an entry of an open batch to a copy of the index in memory, for this process alone."""
        if self._ahead is None:
            self.db()
            ahead = index_file.in_memory(self.views, records.read)
            self.index.db.backup(ahead.db)
            self._ahead = ahead
        from .index import insert

        insert.lines(self._ahead, -1, [line for _, line in entry.lines])

    def tidy_index(self) -> None:
        """Checkpoint SQLite's write-ahead log into the index file, unless there are readers.

        Commands end without that. Never raise an error.
        """
        if self._index is None:
            return
        try:
            self._index.db.execute(f"PRAGMA busy_timeout = {engine.TIDY_MILLISECONDS}")
            self._index.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            return

    def close_index(self) -> None:
        """Close all open connections to the index."""
        self._snapshots.close()
        for index in [*self._left, *([self._index] if self._index is not None else [])]:
            index.close()


class OneLook:
    """The block of `StoreIndex.one_look`; a class: importing contextlib costs an everyday command half a millisecond."""

    def __init__(self, store: StoreIndex) -> None:
        self._store = store
        self._before = (False, False)

    def __enter__(self) -> None:
        store = self._store
        self._before, store.asks_once, store.has_asked = (store.asks_once, store.has_asked), True, False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.asks_once, self._store.has_asked = self._before
