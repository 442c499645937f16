"""The library's entry point, `gitmem.open(".")`, and the objects reached from it."""

from __future__ import annotations

import os

from . import commit_process
from . import repo as repo_module
from .agents import caller as callers
from .agents import delivery, roster
from .argument_types import checked
from .errors import GitmemError, UsageError
from .invocation_api import Invocation
from .open_store import open_store
from .session_api import Sessions, Signals
from .signals import inbox, thread_outcomes, threads
from .store import Store, serialized, wall_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from .agents.caller import Caller
    from .batch import Batch
    from .claims_api import Claims
    from .commit_thread import BackgroundCommits
    from .history.overlap import Overlaps
    from .importers.lumenflow.import_result import Imported
    from .memory_api import Memory
    from .signals.change_watcher import StopWatching
    from .signals.gate import Gate
    from .signals.inbox import InboxResult
    from .signals.receipt_list import ReceiptList
    from .sync.sync_result import SyncResult
    from .tasks_api import Tasks


@checked
def open(
    start: str | os.PathLike[str] = ".",
    *,
    session: str | None = None,
    runs_in: str | None = None,
    identity: str | None = None,
    machine: str | None = None,
    now: Callable[[], int] = wall_clock,
    wal_elsewhere: Sequence[str] = (),
    commit_after: float = commit_process.WINDOW_SECONDS,
) -> Log:
    """Open the coordination log of the repository that contains a folder.

    Args:
        start: A folder of the repository: a worktree, a subdirectory of one, or the git folder.
        session: The caller: a session id (`sess-…`), an agent identity, the display name of a live session, or a person
            as `human:<git user.email>`. None selects the session of `runs_in`, else the only session of this worktree
            in the last 24 hours, else the person if this clone has no session. If several sessions are possible, every
            operation that needs a caller is rejected (`which-session`): a program must not become the person by
            default.
        runs_in: The session that this program belongs to, such as the value of GITMEM_SESSION. With it, a decision as
            another caller is rejected, or with `insist=True` recorded with `via`.
        identity: The agent identity for sessions that are started through this log.
        machine: Name of this machine, for the index file; the host name by default.
        now: The wall clock, microseconds since 1970-01-01 UTC.
        wal_elsewhere: Folders for write-ahead logs when the git folder cannot be written.
        commit_after: Seconds from a record to its commit. A thread commits all waiting records together. With 0 each
            call commits, and its outcome names the commit.

    Raises:
        UsageError: outside a repository.
        StoreError: gitmem does not support this kind of repository.
    """
    repo = repo_module.find(os.path.abspath(start), named=True)
    if machine is None:
        import platform

        machine = platform.node()

    def open_own() -> Store:
        return open_store(repo, machine=machine, long_lived=True, now=now, commit_after=commit_after,
                          wal_elsewhere=wal_elsewhere)  # fmt: skip

    store = open_own()
    log = Log(store, callers.CallerClaims(as_=session, session=runs_in, identity=identity, is_program=True))
    if commit_after:
        from .commit_thread import BackgroundCommits

        log.commits = BackgroundCommits(open_own, commit_after)
        store.after_record = log.commits.notify
    return log


@serialized
class Log(Invocation):
    """One clone's log, read and written as one caller. Use it as a context manager, or `close` it.

    Threads may share it: each call waits for that of another thread, but none for a `sync`, and a `batch` for the whole block. A forked
    process opens a log of its own.
    """

    def __init__(self, store: Store, who: callers.CallerClaims) -> None:
        self.store = store
        self.who = who
        self.signals = Signals(self)
        self.sessions = Sessions(self)
        self.commits: BackgroundCommits | None = None

    @property
    def tasks(self) -> Tasks:
        """The tasks of this log."""
        from .tasks_api import Tasks

        return Tasks(self)

    @property
    def claims(self) -> Claims:
        """The claims on paths."""
        from .claims_api import Claims

        return Claims(self)

    @property
    def memory(self) -> Memory:
        """The memory nodes of this log."""
        from .memory_api import Memory

        return Memory(self)

    @property
    def caller(self) -> Caller:
        """The caller of the log's operations.

        Raises:
            UsageError: no caller could be determined, or several are possible.
        """
        with self.store.lock, self.store.one_look():
            found = callers.find(self.store, self.who)
        if found is None:
            raise UsageError("Missing caller: the log was opened without a session.",
                             hint="Open the log with session=…", code="who")  # fmt: skip
        return found

    def inbox(self, *, mark: bool = True, **filters: Any) -> InboxResult:
        """Return the caller's unread signals, oldest first; see `signals.inbox.read` for the filters.

        Args:
            mark: Record that the signals were delivered. If displaying them can fail, pass False and call
                `signals.inbox.mark` afterwards.
        """
        caller = self.caller
        if not mark:
            return self._read(caller, filters)
        with delivery.delivery_lock(self.store, caller.reader, wait_seconds=delivery.WAIT_SECONDS):
            found = self._read(caller, filters)
            inbox.mark(self.store, found)
        return found

    def _read(self, caller: Caller, filters: dict[str, Any]) -> InboxResult:
        found = inbox.read(self.store, caller, **filters)
        if not filters:
            found.add_work(self.store, caller)
        return found

    def thread(self, id: str, *, limit: int | None = None) -> thread_outcomes.Thread:
        """Return a thread, by its id or the id of a signal in it; with a limit its first and last signals."""
        return threads.thread(self.store, id, limit=limit)

    def converged(self, id: str) -> thread_outcomes.Converged:
        """Return whether the latest decision of every recipient of the thread's root is AGREE."""
        caller = callers.find(self.store, self.who, must=False)
        return threads.converged(self.store, id, caller=caller)

    def receipts(self, signal: str | None = None, **filters: Any) -> ReceiptList:
        """Return the newest effective receipts, oldest first; see `receipt_list` for the filters.

        Args:
            signal: Only receipts of the signal with this id.
        """
        from .signals.receipt_list import receipt_list

        return receipt_list(self.store, signal, **filters)

    def watch(self, *, stop: StopWatching | None = None, events: bool = True) -> Iterator[InboxResult]:
        """Yield batches of signals to the caller as they arrive; wait for them until `stop` is set.

        A batch is marked as read when the next one is requested, not before.
        """
        from .signals.watch import watch_until

        return watch_until(self.store, self.who, stop=stop, events=events)

    def gate(
        self,
        *,
        wu: str | None = None,
        initiative: str | None = None,
        reason: str | None = None,
        new: bool = False,
    ) -> Gate:
        """Return whether signals on a work unit block the caller; with a reason, pass the gate and record that.

        Args:
            new: Accept a work unit that no session, signal or memory node names.
        """
        from .signals import gate

        return gate.check(self.store, self.caller, wu=wu, initiative=initiative, reason=reason, new=new)

    def overlap(self, branch: str | None = None, *, notify: bool = False) -> Overlaps:
        """Return the pairs of branches that change the same files, those that conflict first.

        Args:
            branch: Only pairs with this branch.
            notify: Tell the sessions on branches that conflict, each pair once a day at most.
        """
        from .history import overlap

        return overlap.overlap(self.store, branch, notify=self.caller if notify else None)

    def roster(
        self, query: str | None = None, *, all: bool = False, limit: int | None = None
    ) -> roster.Roster:
        """Return at most `limit` live and idle sessions (by default 1,000); with `all` also those that are gone or have ended."""
        from .handoffs import handoff_list

        return handoff_list.add_to(self.store, roster.roster(self.store, query, all=all, limit=limit))

    def sync(
        self, remotes: Sequence[str] = (), *, all: bool = False, publish: bool = False, timeout: float = 30.0
    ) -> SyncResult:
        """Exchange lines with remotes. Other threads may use this log while it waits for them, except within a `batch`.

        Args:
            publish: The user agrees to publish the log on these remotes. Without consent, now or earlier, lines are
                only fetched.
            timeout: Seconds.
        """
        from .store_apart import apart
        from .sync import sync_remotes

        with apart(self.store) as own:
            return sync_remotes.sync(own, remotes, all=all, publish=publish, timeout=timeout)

    def import_lumenflow(self, folder: str, *, dry_run: bool = False, allow_secret: bool = False) -> Imported:
        """Import LumenFlow's records of a project into this log; see `importers.lumenflow.import_files`."""
        from .importers.lumenflow import import_files

        return import_files.import_folder(
            self.store, self.caller, folder, dry_run=dry_run, allow_secret=allow_secret
        )

    def batch(self) -> AbstractContextManager[Batch]:
        """Commit all records of a `with` block together at its end.

        Inside the block, outcomes have no commit yet, and the new records are visible. If the block raises or the
        commit fails, nothing is recorded and the caller is restored.
        """
        from .batch import collect

        return collect(self)

    def close(self) -> None:
        """Commit this log's records and close it. Records that cannot be committed now wait for the next command."""
        try:
            if self.commits is not None:
                self.commits.close()
                if self.store.recorded:
                    commit_process.commit_waiting(self.store, commit_process.WINDOW_SECONDS)
        except (GitmemError, OSError):
            pass  # the records are durable, and `doctor` reports why they wait
        finally:
            self.store.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
