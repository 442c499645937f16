"""The index of a store: opened, caught up, left where it is bad, and ahead of the log while a batch is open."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from . import records
from .errors import GitmemError, UsageError
from .index import engine, query, schema
from .index.engine import sqlite3
from .trust import sender_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    from .git.open_git import Git
    from .index.query import Snapshot
    from .index.rows import Group
    from .index.schema import Index, View
    from .log.entry import LogEntry
    from .log.local_log import LocalLog
    from .repo import Repo
    from .trust.clone_key import Keys

    Answer = TypeVar("Answer")

    class Domain(Protocol):
        """What a store needs of the packages above it, which import the store.

        Attributes:
            completed_kinds: The kinds of record that `complete` adds fields to.
        """

        completed_kinds: tuple[str, ...]

        def views(self, keys: Keys | None = None) -> Sequence[View]:
            """Return the views of the index; with keys, those that check which lines were written here."""

        def complete(
            self, db: sqlite3.Connection, kind: str, fields: Mapping[str, object]
        ) -> Mapping[str, object]:
            """Return the fields of a new record with those that depend on what the index has."""

        def feed(self, store: Any) -> None:
            """Note in the queues of this clone's sessions what is new in the index; never an error."""

        def last_checkpoint(self, db: sqlite3.Connection, session_id: str) -> str:
            """Return the first line of a session's last checkpoint that is not sensitive; "" where there is none."""


# `Index.version` of `views.VIEWS`, whose import costs more than a look at the index as it is; a test has the value when
# it changes.
SHAPE = 159660016


class LazyViews:
    """The views of a domain, made where the index is filled and not where it is asked.

    Args:
        domain: Makes the views.
        keys: The clone's keys.
    """

    shape = SHAPE

    def __init__(self, domain: Domain, keys: Keys) -> None:
        self._domain = domain
        self._keys = keys

    def __iter__(self) -> Iterator[View]:
        return iter(self._domain.views(self._keys))


class StoreIndex(ABC):
    """The part of a store that has the index; `Store` sets the attributes that it works on."""

    place: Repo
    git: Git
    domain: Domain
    machine: str
    log: LocalLog
    keys: Keys
    progress: Callable[[int], None] | None
    recorded: bool
    commit_after: float
    is_committing: bool
    commit_again: float
    commit_failed: GitmemError | None
    wrote: int

    def __init__(self) -> None:
        self.views = LazyViews(self.domain, self.keys)
        self.collecting: Callable[[LogEntry], None] | None = None  # while a batch is open: where entries go
        self.fed: object = None  # what `queue.feed` has looked at
        self.feed_after = 0.0  # when it may try again where it could not write
        self.snapshot: Snapshot | None = None  # what `in_one_look` reads
        self.asks_once = (
            False  # whether one look serves all that this process asks: what waits later is not seen
        )
        self.has_asked = False
        self._ahead: Index | None = None
        self._index: Index | None = None
        self._looked = False
        self._left: list[Index] = []
        self._homeless = False  # the folder of the index file was not there: the log begins with this process

    @property
    def index(self) -> Index:
        """The index, opened on first use and perhaps behind the log; `db` catches up."""
        if self._index is None:
            self._homeless = not os.path.isdir(self.place.state)
            self._index = schema.open_index(self.place, self.machine, self.views, records.read_groups)
        return self._index

    def in_one_look(self, work: Callable[[], Answer], *, exact: bool) -> Answer:
        """Do what records a signal on one snapshot of the index as it is: nothing is caught up, before or after.

        Where the index lacks too much it is caught up first. So it is for another try where the work is refused for
        what an index with less than everything says.

        Args:
            work: Reads and then records.
            exact: Whether it depends on more than who is called what: then everything that waits must be there.
        """
        snapshot = self._take()
        if snapshot is not None and not (snapshot.is_complete or (snapshot.has_names and not exact)):
            snapshot.db.close()
            snapshot = None
        if snapshot is None:
            return work()
        self.snapshot = snapshot
        try:
            return work()
        except UsageError:
            if snapshot.is_complete or self.recorded:
                raise
        finally:
            self.snapshot = None
            snapshot.db.close()
        return work()

    def _take(self) -> Snapshot | None:
        if self._ahead is not None or self.collecting is not None or self.log.elsewhere or self.log.others:
            return None
        snapshot = query.take(self.place, self.machine, SHAPE)
        if snapshot is not None and not sender_tables.is_checked(snapshot.db, self.keys.now()):
            snapshot.db.close()
            return None
        return snapshot

    def caught_up(self) -> Index:
        """The index with what the ref and the write-ahead logs have, and the queues with what is new in it."""
        try:
            if not self._is_current():
                from .trust import line_checks

                line_checks.catch_up_checked(self.index, self.log, self.keys.now(), self.progress)
        except sqlite3.DatabaseError as error:
            self.do_without(error)
        self._feed()
        return self.index

    def _is_current(self) -> bool:
        """Return whether the index has all that the log has, checked with the key of this clone."""
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
        """Bring the queues up to date."""

    def do_without(self, error: sqlite3.DatabaseError) -> None:
        """An index for when the one that is open is damaged, or can't be written: built anew, a copy, or in memory."""
        from .index import catch_up

        self.index.close()
        self.fed = None
        if catch_up.rebuild_damaged(schema.path(self.place, self.machine), error):
            self._index = schema.open_index(self.place, self.machine, self.views, records.read_groups)
        else:
            self._index = schema.beside(self.place, self.machine, self.views, records.read_groups)
        try:
            catch_up.catch_up(self._index, self.log, progress=self.progress)
        except sqlite3.DatabaseError:
            self._index.close()
            self._index = schema.in_memory(self.views, records.read_groups)
            catch_up.catch_up(self._index, self.log, progress=self.progress)

    def adopt(self) -> None:
        """A log that an ordinary fetch brought is this clone's log from the first look on."""
        if not self._looked:
            self._looked = True
            try:
                if self.git.tip(query.LOG_REF) is None:
                    from .log import start

                    start.adopt(self.log)
            except (GitmemError, OSError, KeyError):
                return  # `doctor` says what is wrong with it; whoever writes is told too

    def refresh(self) -> None:
        """Catch up after a write, which no fault of the index undoes. Where it is busy or bad the next look copes."""
        from .index import catch_up, damage

        try:
            if self._homeless and os.path.isdir(self.place.state):
                self.leave_index()
            self.adopt()
            with engine.BusyWait(self.index.db):
                catch_up.catch_up(self.index, self.log, progress=self.progress)
                self._feed()
        except Exception as error:
            self.leave_index()
            damage.put_away(schema.path(self.place, self.machine), error)

    def foresee(self, lines: Sequence[bytes], group: Group) -> None:
        """Tell the index what lines are that are to be recorded now; they need not be read then, see `forget_foreseen`."""
        self.index.foreseen = (lines, group)

    def forget_foreseen(self) -> None:
        """Forget what was foreseen. The lines were recorded, or will never be."""
        self.index.foreseen = None
        self.keys.forget_signed()

    def leave_index(self) -> None:
        """Open the index anew at the next look."""
        if self._index is not None:
            self._left.append(self._index)  # not closed: whoever writes may still read from it
        self._index = None
        self.fed = None

    def collect(self, to: Callable[[LogEntry], None] | None) -> None:
        """Begin a batch, whose entries go there instead of to the log; or end it (None)."""
        self.collecting = to
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _look_ahead(self, entry: LogEntry) -> None:
        """Let an entry that is to be recorded count in this process alone: in a copy of the index in memory."""
        if self._ahead is None:
            self.db()
            ahead = schema.in_memory(self.views, records.read_groups)
            self.index.db.backup(ahead.db)
            self._ahead = ahead
        from .index import insert

        insert.lines(self._ahead, -1, [line for _, line in entry.lines])

    def tidy_index(self) -> None:
        """Bring SQLite's own log to the file of the index, unless somebody reads: commands end without that. Never an error."""
        if self._index is None:
            return
        try:
            self._index.db.execute(f"PRAGMA busy_timeout = {engine.TIDY_MILLISECONDS}")
            self._index.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            return

    def close_index(self) -> None:
        """Close what is open of the index."""
        for index in [*self._left, *([self._index] if self._index is not None else [])]:
            index.close()
