"""The store: one clone's log and its index, open for operations."""

from __future__ import annotations

import os
import time
from _thread import RLock

from . import commit_process, local_files, records, settings
from .errors import GitmemError, StoreError, UsageError
from .git import files
from .git.repository import cached_config, open_port, root_commits
from .index import grants, index_file
from .index.index_file import sqlite3
from .log import ledger, ref
from .log.lines import LogEntry
from .log.local_log import Appended, LocalLog, read_word
from .outcome import Struct
from .records import ids
from .text.addresses import CLIENT, of_writer, writer_of
from .text.digests import b32
from .trust import own_sessions
from .trust.keys import CloneKeyReader, Keys, all_noted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Protocol, TypeVar

    from .git.repository import CachedConfig, Git
    from .index.entities import View
    from .index.index_file import Index, Snapshot
    from .log.lines import CommitMessage
    from .log.local_log import Sealer
    from .outcome import PartOfAnswer, Progress
    from .records.record_types import AnyFields
    from .repo import Repo
    from .trust.own_sessions import Own

    Answer = TypeVar("Answer")

    class Domain(Protocol):
        """The functions that a store needs from the packages above it, which import the store.

        Attributes:
            completed_kinds: The kinds of record that `complete` adds fields to.
        """

        completed_kinds: tuple[str, ...]

        def views(self, own: Callable[[], Own] | None = None) -> Sequence[View]:
            """Return the views of the index; with `own`, those that check which lines this user wrote."""

        def complete(self, db: sqlite3.Connection, kind: str, fields: AnyFields) -> Mapping[str, object]:
            """Return the fields of a new record, with those that depend on the index's content."""

        def feed(self, store: Store) -> None:
            """Raise the flags of this clone's sessions for new signals of the index. Never raise an error."""

        def last_checkpoint(self, db: sqlite3.Connection, session_id: str) -> str:
            """Return the first line of a session's last checkpoint that is not sensitive; "" if there is none."""

        def answer_task(self, store: Store, caller: Any, answered: Any, about: Any, fields: Any) -> Any:
            """Return what a signal in the thread of a task changes of the task, see `signals.reply.TaskAnswer`."""

        def cancellations(self, store: Store, caller: Any, shown: Any) -> list[tuple[str, bytes]]:
            """Return the seals that cancel tasks of a caller that were given back, as it was shown."""

        def finished_fences(self, store: Store) -> list[str]:
            """Return the names of this clone's fences whose work is over, see `sync.fences`."""

        def waiting_work(self, store: Store, caller: Any) -> PartOfAnswer | None:
            """Return the tasks, handoffs and claims that wait for a caller; None if there are none."""

        def unread_counts(
            self, store: Store, reader: str, session: str | None, workspace: str | None, *, directed: bool
        ) -> tuple[int, int]:
            """Return how many signals a reader has not read, and how many of these want an answer from it."""

        def own_work(self, store: Store, caller: Any) -> PartOfAnswer | None:
            """Return also what a caller has taken and claimed; None if there is nothing."""

        def open_work(self, store: Store, wu: str | None = None) -> PartOfAnswer | None:
            """Return the tasks that somebody has, the open handoffs and the claims, or those on a work unit; None without any."""

        def waits(self, store: Store, caller: Any) -> PartOfAnswer | None:
            """Return who waits for whom; None if nobody can."""

    class WarningAnswer(Protocol):
        """An outcome that may be wrong if lines are missing."""

        warnings: list[str]
        next: list[str]


FIX = "gitmem doctor --fix"  # the command that repairs the log
SALT_BYTES = 17  # for the bits of a salt
# New bytes of a sync. For fewer, catching up is faster than starting a process. With more, the next command would not
# wait for that process, and would fill an index of its own.
LEFT_BYTES = range(1024 * 1024, 8 * 1024 * 1024 + 1)


def wall_clock() -> int:
    """Return microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class LazyViews(Struct):
    """The views of a domain, created only when the index is filled, not when it is queried.

    Attributes:
        domain: Creates the views.
        own: Returns who writes here.
    """

    shape = index_file.SHAPE

    _domain: Domain
    _own: Callable[[], Own]

    def __iter__(self) -> Iterator[View]:
        return iter(self._domain.views(self._own))


class Store:
    """The log and index that every operation works on.

    Args:
        repo: Where the repository is.
        git: The git port.
        domain: The functions that the domain packages provide.
        machine: Name of this machine; a host and a container that share the folder have different ones.
        now: The wall clock, microseconds since the epoch.
        commit_after: Seconds from a record to its commit by a committer; with 0 each write commits.
        wal_elsewhere: Folders for write-ahead logs when the git folder cannot be written.
        wals_read: Write-ahead logs that other processes may write to.
        keys_folder: The user's folder for keys; without it the key is in the clone's state folder.
        key_file: The key file to use, an absolute path; by default the one that the user's git configuration names, if any.

    Attributes:
        allow_secret: Whether new records may have texts that look like secrets.
        doors_folder: The user's folder with the doors of sessions (`agents.doors`); "" for none.
        received: Whether the last sync has brought anything.
    """

    allow_secret = received = False
    doors_folder = ""

    def __init__(
        self,
        repo: Repo,
        git: Git,
        domain: Domain,
        *,
        machine: str,
        now: Callable[[], int] = wall_clock,
        random: Callable[[int], bytes] = os.urandom,
        commit_after: float = 0.0,
        wal_elsewhere: Sequence[str] = (),
        wals_read: Sequence[str] = (),
        keys_folder: str = "",
        key_file: str = "",
        progress: Progress | None = None,
        config: CachedConfig | None = None,
    ) -> None:
        self.repo = repo
        self.git = git
        self.domain = domain
        self.machine = machine
        self.now = now
        self.random = random
        self.progress = progress
        self.commit_after = commit_after
        self.log = LocalLog(
            repo, git, now=now, random=random, wal_elsewhere=wal_elsewhere, wals_read=wals_read
        )
        self.wal_folders = (wal_elsewhere, wals_read)
        self.key_places = (keys_folder, key_file)
        self._writers: Keys | None = None
        self._own: Own | None = None
        self._goes_on: bool | None = None  # whether any writer goes on as another, if this was looked up
        self.log.sealer = self._sealer
        self.log.read = records.read
        self.keys = CloneKeyReader(repo.state, random, self.log.make_state)
        self.views = LazyViews(self.domain, self.noted_own)
        self.collecting: Callable[[LogEntry], None] | None = None  # receives the entries of an open batch
        self.fed: object = None  # the state that `delivery.raise_new` has processed
        self.feed_after = 0.0  # time of the next try after it could not write
        self._feeding = False
        self.snapshot: Snapshot | None = None  # the snapshot of `with_one_snapshot`
        self._snapshots = index_file.Snapshots(
            self.repo, self.machine, index_file.SHAPE, nameless=records.NAMELESS
        )
        self.asks_once = False  # whether to catch up only once in this process; later entries are not seen
        self.has_asked = False
        self.was_exact = True  # whether the last operation of `with_one_snapshot` saw the latest records
        self._ahead: Index | None = None
        self._index: Index | None = None
        self._looked = False
        self._left: list[Index] = []
        self._homeless = False  # whether the index's folder was missing: this process starts the log
        self.log.committed = self.refresh
        self.log.recorded = lambda entries: self.refresh() if self.snapshot is None else None
        self.left_bytes = LEFT_BYTES
        self.commit_seconds = commit_process.COMMIT_SECONDS
        self.is_committing = False
        self.commit_again = 0.0  # monotonic time of the next try after a failed commit
        self._config = config
        # Starts a process that calls `keep_up`; None if this process is long-lived and does it itself.
        self.starts_upkeep: Callable[[], object] | None = None
        self.wrote = 0  # how urgently to sync this process's records: IF_DUE, LATER or NOW
        self.after_record: Callable[[], object] | None = None  # called when a record needs a commit
        self.recorded = False  # whether anything was recorded here
        self.lock = RLock()  # held by the thread that uses this store: threads share its SQLite connections
        self.commit_failed: GitmemError | None = None  # the error of this process's last commit
        self.readers: dict[
            tuple[str, bool], Store
        ] = {}  # this store as readers see it, see `memory.reader_store`

    def db(self) -> sqlite3.Connection:
        """Return the index, caught up with the ref, the write-ahead logs and the lines of an open batch."""
        if self._ahead is not None:
            return self._ahead.db
        if self.snapshot is not None:
            return self.snapshot.db
        if not (self.asks_once and self.has_asked and self._index is not None):
            self.adopt()
            self.commit_overdue()
            self.caught_up()
            self.has_asked = True
        return self.index.db

    def _feed(self) -> None:
        """Raise flags if anything arrived since they were raised last; not again by what that asks of this store."""
        if self._feeding:
            return
        self._feeding = True
        try:
            self.domain.feed(self)
        finally:
            self._feeding = False

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
        return self._checked(snapshot)

    def as_indexed(self, ask: Callable[[sqlite3.Connection], Answer]) -> Answer | None:
        """Return what the index says as it stands, whatever waits; None without one that is checked."""
        found = self._snapshots.take()
        snapshot = None if found is None else self._checked(found)
        if snapshot is None:
            return None
        try:
            return ask(snapshot.db)
        finally:
            snapshot.close()

    def _checked(self, snapshot: Snapshot) -> Snapshot | None:
        """Return a snapshot whose lines were checked for this user; close another one."""
        if own_sessions.is_checked(snapshot.db, self.noted_own()):
            self._goes_on = grants.is_any_accepted(snapshot.db)
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
        """Return the index, caught up with the ref and the write-ahead logs, and raise flags."""
        try:
            own = self.noted_own()
            is_current = index_file.is_current(self.index, self.log)
            if not (is_current and own_sessions.is_checked(self.index.db, own)):
                own_sessions.catch_up(self.index, self.log, own, self.progress)
        except sqlite3.DatabaseError as error:
            self.replace_index(error)
        self._feed()
        return self.index

    def replace_index(self, error: sqlite3.DatabaseError) -> None:
        """Replace an index that is damaged or not writable: by a new one, a copy, or one in memory."""
        from .index import catch_up

        self.index.close()
        self.fed = None
        if index_file.is_corruption(error):
            index_file.remove(index_file.path(self.repo, self.machine))
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
                    from .log import committer

                    committer.create_ref_from_fetched(self.log)
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
        from .index import catch_up

        looked, self.has_asked = self.has_asked, False
        try:
            if self._homeless and os.path.isdir(self.repo.state):
                self.leave_index()
            self.adopt()
            with index_file.BusyWait(self.index.db):
                catch_up.catch_up(self.index, self.log, progress=self.progress)
                self.has_asked = looked
                self._feed()
        except Exception as error:
            self.leave_index()
            index_file.remove_if_damaged(index_file.path(self.repo, self.machine), error)

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
        from .index import catch_up

        catch_up.insert_lines(self._ahead, catch_up.OWN_FILE, [line for _, line in entry.lines])

    def tidy_index(self) -> None:
        """Checkpoint SQLite's write-ahead log into the index file, unless there are readers.

        Commands end without that. Never raise an error.
        """
        if self._index is None:
            return
        try:
            self._index.db.execute(f"PRAGMA busy_timeout = {index_file.TIDY_MILLISECONDS}")
            self._index.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            return

    def head(self) -> tuple[str | None, str | None]:
        """Return the commit of this worktree's HEAD and its branch; None for each that does not exist."""
        return self.git.head(self.repo.git_dir)

    def branch(self) -> str | None:
        """Return the branch of this worktree; None if HEAD is not on a branch."""
        return self.git.branch(self.repo.git_dir)

    def waits(self) -> bool:
        """Return whether entries that need a commit are waiting."""
        return bool(self.log.waiting())

    def line(
        self, kind: str, fields: AnyFields, *, allow_secret: bool = False, at: int | None = None
    ) -> tuple[str, bytes]:
        """Return a new line of a kind, with its stream.

        Args:
            at: Its time, if the caller has reserved it; by default the next tick of this clone's clock.

        Raises:
            RecordError: the record is invalid.
            SecretError: a text contains a secret.
            StoreError: there is no key to write under, and none can be made.
        """
        whole: Mapping[str, object] = fields
        if kind in self.domain.completed_kinds:
            whole = self.domain.complete(self._last_look(), kind, fields)
        writer, at = self.writers.writer(), self.log.clock.tick() if at is None else at
        whole = records.addressed(kind, whole, writer, lambda words, _: self.own_address(words))
        salt = b32(self.random(SALT_BYTES), records.SALT_CHARACTERS) if kind in records.TEXTS else ""
        return records.STREAMS[kind], records.line(
            kind, at, whole, allow_secret=allow_secret or self.allow_secret, writer=writer, salt=salt,
            may_have=self.may_write_as,
        )  # fmt: skip

    def new_id(self, prefix: str) -> str:
        """Return a new id that is bound to the writer of this process, for a line that it will write.

        Raises:
            StoreError: As `line`.
        """
        return ids.new_id(prefix, self.writers.writer(), self.random)

    def own_id(self, prefix: str, *parts: str) -> str:
        """Return the id, bound to the writer of this process, that is always the same for the same parts.

        Raises:
            StoreError: As `line`.
        """
        return ids.own_id(prefix, self.writers.writer(), *parts)

    def own_task_id_before(self, *parts: str) -> str | None:
        """Return what `own_id` returns for a task, to look it up; None without a key: nothing is recorded yet, and none is made."""
        writer = self.writers.describe()[0]
        return ids.own_id("task", writer, *parts) if writer else None

    def is_of_another_key(self, session_id: str) -> bool:
        """Return whether a session is bound to another key than the one that writes here: nothing can be written as it."""
        if not ids.is_of_somebody("sess", session_id):
            return False
        writer = self.own_writer() or self.writers.describe()[0]
        return writer != "" and not ids.is_bound(session_id, writer)

    def own(self) -> Own:
        """Return who writes here: this user's writers in this clone, as they were noted at the last look."""
        return self._own or self.noted_own()

    def noted_own(self) -> Own:
        """Return who writes here now: another process may have made a key."""
        clone = read_word(os.path.join(self.repo.state, "clone")) or ""
        self._own = own_sessions.Own(frozenset(id for id, _ in all_noted(self.repo.state)), clone)
        return self._own

    def own_writer(self) -> str:
        """Return the id of the writer under which this user writes here; "" if there is no key yet."""
        return self.writers.known()

    def own_address(self, words: str) -> str:
        """Return the address that words have if this user says them: under the key that writes here, or that of another which it goes on as."""
        writer = self.own_writer()
        own = of_writer(words, writer)
        if own == words or words.startswith(CLIENT):
            return own
        if self._goes_on is not False or self._ahead or self.snapshot or self._index:
            self._goes_on = grants.is_any_accepted(self._last_look())
        return grants.own_address(self._last_look(), writer, words) if self._goes_on else own

    def may_write_as(self, address: str) -> bool:
        """Return whether lines of the key that writes here may have an address as their own."""
        writer = self.own_writer()
        return writer_of(address) in ("", writer) or grants.Grants(self._last_look()).allow(writer, [address])

    @property
    def writers(self) -> Keys:
        """The key under which this process writes, and this user's other keys."""
        if self._writers is None:
            folder, file = self.key_places
            self._writers = Keys(
                self.repo.state, folder, file, self._project, self.log.clone_id, self.random, self.log.make_state,
                self.machine, *self.wal_folders, self._chosen_key,
            )  # fmt: skip
        return self._writers

    def _sealer(self) -> Sealer:
        from .trust.writer_sealer import WriterSealer

        self.writers.choose()
        return WriterSealer(self.writers, self.repo.state, self.log.clone_id(), self.log.clock.tick)

    def _chosen_key(self) -> str:
        return settings.KEY.value(self.settings())

    def _project(self) -> str:
        return min(root_commits(self.repo), default="")

    def _last_look(self) -> sqlite3.Connection:
        """Return the index as last caught up; catch up first if it has no tables yet."""
        if self._ahead is not None or self.snapshot is not None or not self.index.is_shaped():
            return self.db()
        return self.index.db

    def record(
        self, lines: Sequence[tuple[str, bytes]], message: CommitMessage, *, deferred: bool = False
    ) -> Appended:
        """Append lines as one entry.

        Raises:
            StoreError: nothing is recorded.
        """
        entry = LogEntry(lines, message, deferred=deferred)
        if self.collecting is not None:
            self._look_ahead(entry)
            self.collecting(entry)
            return Appended(None)
        return self._append(entry)

    def record_all(self, entries: Sequence[LogEntry]) -> Appended:
        """Append several entries as one, in one commit."""
        from .log.committer import combine_messages

        lines = [line for entry in entries for line in entry.lines]
        return self._append(
            LogEntry(lines, combine_messages(entries), deferred=all(entry.deferred for entry in entries))
        )

    def _append(self, entry: LogEntry) -> Appended:
        if not index_file.can_write(self._last_look()):
            from .log import committer

            tip = self.git.tip(ref.LOG_REF)
            if tip is not None:
                committer.check_tip(self.log, tip)
        appended = self.log.append(entry)
        if not entry.deferred:
            self.recorded = True
            self.wrote = max(self.wrote, commit_process.urgency(entry.lines))
            if appended.where is None:
                # A key that was chosen may go with a container: nothing waits for it.
                if not self.commit_after or self.writers.given:
                    try:
                        appended.commit = self.commit(self.commit_seconds)
                    except GitmemError as error:
                        self.commit_failed = error  # the record waits
                elif self.after_record is not None:
                    self.after_record()
        return appended

    def run_committer(
        self, *, pause: Callable[[float], None] = time.sleep, begins: Callable[[Store], object] | None = None
    ) -> None:
        """Commit waiting records after the window, until none wait; return at once if another process does so.

        Args:
            pause: Sleeps for a number of seconds.
            begins: Called before the window.
        """
        from .log.lock import Lock

        path = os.path.join(self.repo.state, commit_process.LOCK)
        failures = 0
        while failures < commit_process.TRIES_MAX:
            lock = Lock(path)
            try:
                if not lock.take():
                    return
            except StoreError:
                return
            with lock:
                commit_process.note_pid(path)
                if begins is not None:
                    begins(self)
                pause(
                    min(
                        self.commit_after + (0.5 * 2**failures if failures else 0.0),
                        commit_process.WINDOW_SECONDS_MAX,
                    )
                )
                try:  # the reason of a failure is saved
                    is_done = self.commit_waiting() is not None or not self.waits()
                except (GitmemError, OSError):
                    is_done = False
                failures = 0 if is_done else failures + 1
            # A writer that found the lock taken started no committer: check again.
            if not failures and not self.waits():
                return

    def commit_overdue(self) -> None:
        """Commit records that no committer has committed in time.

        Failure does no harm: the index already contains the lines.
        """
        if self.is_committing or time.monotonic() < self.commit_again or not self._is_overdue():
            return
        if commit_process.has_failed_since(self.repo, time.time() - commit_process.OTHERS_RETRY_SECONDS):
            return  # another process has tried
        from .log import committer

        self.is_committing = True
        try:
            rows = committer.waiting_rows(self.log)
            if self.commit(0.0, swaps=committer.READER_SWAPS_MAX) is not None:
                self.wrote = max(self.wrote, commit_process.urgency(rows))
                return
        except (GitmemError, OSError) as error:
            commit_process.save_failure(self.repo, error)
        finally:
            self.is_committing = False
        self.commit_again = time.monotonic() + commit_process.RETRY_SECONDS

    def _is_overdue(self) -> bool:
        files = self.log.waiting()
        if not files or not self.commit_after:
            return bool(files)
        from .log import write_ahead

        oldest = time.time() - self.commit_after - commit_process.OVERDUE_SECONDS
        return any(write_ahead.modified_at(file) < oldest for file in files)

    def commit(self, seconds: float, *, deferred: bool = False, swaps: int | None = None) -> str | None:
        """Commit waiting records and return a commit that contains all of them, or None if some still wait.

        Args:
            seconds: How long to wait for another process that is committing.
            deferred: Commit even if only deferred entries wait.
            swaps: How often to try to move the ref.

        Raises:
            StoreError: everything waits as before.
        """
        from .log import committer

        self.log.committer = self.log.committer or self.committer()
        found = committer.commit_within(self.log, seconds, deferred=deferred, swaps=swaps)
        if found is not None:
            self.commit_failed = None
            self.keep_up()
        return found

    def commit_waiting(self, seconds: float = 0.0, *, deferred: bool = False) -> str | None:
        """Commit waiting records as `commit` does, and save the reason of a failure.

        Raises:
            StoreError: everything waits as before.
        """
        try:
            found = self.commit(seconds, deferred=deferred)
        except (GitmemError, OSError) as error:
            commit_process.save_failure(self.repo, error)
            raise
        if found is not None:
            local_files.remove_quietly(os.path.join(self.repo.state, commit_process.FAILED))
        return found

    def try_commit_waiting(self, *, deferred: bool = False) -> str | None:
        """Commit waiting records before an answer that is correct without it. Never raise an error."""
        try:
            return self.commit_waiting(commit_process.WINDOW_SECONDS, deferred=deferred)
        except (GitmemError, OSError):
            return None

    def keep_up(self) -> None:
        """Combine the log's small packs if there are many."""
        from .log import committer

        committer.pack_if_due(self.log, self.starts_upkeep)

    def refresh_or_leave(self, *, start: bool = False) -> bool:
        """Catch up after a sync, or leave that to the background upkeep process if the sync fetched much.

        Args:
            start: Start that process; without it the caller must ensure that one starts.

        Returns:
            Whether catching up is left to the process.
        """
        is_much = self.log.taken_in in self.left_bytes
        if self.starts_upkeep is None or not is_much or commit_process.is_off(self.repo):
            self.refresh()
            return False
        if start:
            self.starts_upkeep()
        return True

    @property
    def config(self) -> CachedConfig:
        """The cached git configuration, read on first use."""
        if self._config is None:
            self._config = cached_config(self.repo)
        return self._config

    def settings(self) -> dict[str, str]:
        """Return `user.name`, `user.email` and gitmem's settings from git config, with lower-case keys."""
        return self.config.read().values

    def has_remote(self) -> bool:
        """Return whether git config has a remote with a URL."""
        return self.config.read().has_remote

    def person(self) -> tuple[str | None, str | None]:
        """Return the git identity of this clone's user: name and email; either may be None."""
        found = self.settings()
        return found.get("user.name") or None, found.get("user.email") or None

    def committer(self) -> tuple[str, str] | None:
        """Return the git identity as the committer, or None if it is not set: the agent is the committer then."""
        name, mail = ("".join(filter(str.isprintable, text or "")) for text in self.person())
        return (name or mail.partition("@")[0], mail) if mail else None

    def second(self) -> SecondStore:
        """Yield another store of the same clone, for work that waits for the network; other threads may use this one meanwhile.

        A batch is of one thread: in it this store stays locked.

        Raises:
            StoreError: The repository can't be opened.
        """
        return SecondStore(self)

    def close(self, *, closes_index: bool = True) -> None:
        """Close the store.

        Args:
            closes_index: Close the index too. Its last connection checkpoints SQLite's write-ahead log and waits for the
                disk. Without it, the committer does that, see `tidy_index`.
        """
        if closes_index:
            self._snapshots.close()
            for index in [*self._left, *([self._index] if self._index is not None else [])]:
                index.close()
        self.git.close()


class OneLook:
    """The block of `Store.one_look`; a class: importing contextlib costs an everyday command half a millisecond."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before = (False, False)

    def __enter__(self) -> None:
        store = self._store
        self._before, store.asks_once, store.has_asked = (store.asks_once, store.has_asked), True, False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.asks_once, self._store.has_asked = self._before


class SecondStore(Struct):
    """The block of `Store.second`.

    Who uses the first store meanwhile sees it up to date, and so does this thread after the block, also in `one_look`.
    """

    _store: Store
    _held: int = 0
    _asked_once: bool = False

    def __enter__(self) -> Store:
        store = self._store
        elsewhere, read = store.wal_folders
        git = open_port(store.repo, long_lived=store.git.is_long_lived)
        found = Store(
            store.repo, git, store.domain, machine=store.machine, now=store.now, random=store.random,
            commit_after=store.commit_after, wal_elsewhere=elsewhere, wals_read=read, progress=store.progress,
            keys_folder=store.key_places[0], key_file=store.key_places[1],
        )  # fmt: skip
        found.log.given_network, found.log.limits = store.log.given_network, store.log.limits
        found.log.wal_parents, found.log.lock_seconds = store.log.wal_parents, store.log.lock_seconds
        found.starts_upkeep = store.starts_upkeep
        self._found = found
        if store.collecting is None:
            self._release()
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store = self._store
        try:
            if self._held:
                for _ in range(self._held):
                    store.lock.acquire()
                store.asks_once, store.has_asked = self._asked_once, False
                store.lock.release()
        finally:
            self._found.close()

    def _release(self) -> None:
        """Release the first store's lock, however often this thread holds it."""
        store = self._store
        store.lock.acquire()  # only its holder may change how often the store looks
        self._asked_once, store.asks_once = store.asks_once, False
        try:
            while True:
                store.lock.release()
                self._held += 1
        except RuntimeError:  # this thread does not hold it any more
            return


def lost_records(store: Store) -> str | None:
    """Return a warning if the log lacks lines that this clone has accepted; None if it has all of them.

    Two sources are compared. The index keeps lines that the log no longer has. The ledger names the commit that this
    clone accepted last: the tip must be that commit or a descendant of it.
    """
    if index_file.has_accepted(store.db(), ledger.last_commit(store.repo.state)):
        return None
    from .index import lost_lines

    count = lost_lines.count(store.db()) or _count_missing(store)
    if not count:
        return None
    lines = (
        "1 record that this clone had accepted is"
        if count == 1
        else f"{count} records that this clone had accepted are"
    )
    return (
        f"{lines} missing from the log: {ref.LOG_REF} may have been moved back or deleted. This output may lack "
        f"signals. `{FIX}` restores what is still in this clone."
    )


def add_lost_records(store: Store, answer: WarningAnswer) -> None:
    """Add a warning to an answer if lines are missing, with the repair command as the first one to run."""
    missing = lost_records(store)
    if missing is not None:
        answer.warnings.append(missing)
        answer.next = repair_first(answer.next)


def repair_first(next: Sequence[str]) -> list[str]:
    """Return the commands to run next, with the repair command first."""
    return [FIX, *(each for each in next if each != FIX)][:3]


def _count_missing(store: Store) -> int:
    """Return how many lines of the last accepted commit the tip lacks; 0 if the tip descends from that commit."""
    from .log import tree_union

    git = store.git
    accepted = ledger.last_commit(store.repo.state)  # read before the tip, which other processes advance
    tip = git.tip(ref.LOG_REF)
    if accepted is None or accepted == tip:
        return 0
    try:
        if tip is not None and git.contains(tip, accepted):
            return 0
        known = [git.commit(tip).tree] if tip is not None else []
        return tree_union.new_lines(git, git.commit(accepted).tree, known)
    except KeyError:
        return 0  # an object is missing: `doctor` checks what remains
