"""The library's entry point, `gitmem.open(".")`, and the objects reached from it: the log, its signals, sessions and calls."""

from __future__ import annotations

import os
import threading
from contextlib import aclosing, contextmanager

from .. import commit_process
from .. import repo as repo_module
from ..agents import caller as callers
from ..agents import delivery, lifecycle, roster
from ..errors import GitmemError, UsageError
from ..open_store import open_store
from ..outcome import Struct
from ..signals import announcements, inbox, threads
from ..signals import send as signals
from ..store import Store, wall_clock
from . import checked, checked_methods, serialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
    from typing import Any, Unpack

    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionResult
    from ..calls.call import CallOptions
    from ..calls.call_result import CallResult, TaskProgress
    from ..calls.worker import Function
    from ..history.overlap import Overlaps
    from ..importers.imported import Imported
    from ..log.lines import LogEntry
    from ..log.local_log import Appended
    from ..signals.gate import Gate
    from ..signals.history import ReceiptList
    from ..signals.inbox import InboxResult
    from ..signals.signal_options import SignalOptions
    from ..signals.watch import StopWatching
    from ..sync.sync_remotes import SyncResult
    from . import Opened
    from .memory import Memory
    from .work import Claims, Tasks


class Batch(Struct):
    """What a `Log.batch()` has recorded; nothing inside the block."""

    appended: Appended | None = None

    @property
    def commit(self) -> str | None:
        """The commit of the batch; None inside the block and until it is committed."""
        return self.appended.commit if self.appended else None


@serialized
class Signals(Struct):
    """Signals of a log's caller."""

    _log: Opened

    def send(self, message: str, **options: Unpack[SignalOptions]) -> signals.Sent:
        """Record a signal; see `SignalOptions` for the options and `signals.send.send` for the errors."""
        from ..signals import signal_options

        signal_options.reject_unknown(options)
        return signals.send_with_one_snapshot(self._log.store, lambda: self._log.caller, message, **options)

    def reply(self, signal_id: str, message: str, **options: Unpack[SignalOptions]) -> signals.Sent:
        """Reply to a signal: to its sender, in its thread.

        Raises:
            TypeError: `reply_to` is among the options; `signal_id` is the answered signal.
        """
        if "reply_to" in options:
            raise TypeError(
                "A reply has no option reply_to: it answers the signal that its first argument names."
            )
        return self.send(message, **(options | {"reply_to": signal_id}))


@serialized
class Sessions(Struct):
    """Sessions of agents in this worktree."""

    _log: Opened

    def start(self, **options: Any) -> SessionResult:
        """Start a session and make it the caller; see `sessions.lifecycle.start` for the options."""
        started = lifecycle.start(self._log.store, self._log.who, **options)
        own = started.session_id
        self._log.who = callers.CallerClaims(as_=own, session=own, identity=self._log.who.identity)
        return started

    def change(self, **options: Any) -> SessionResult:
        """Change the caller's session; see `signals.completion.change_session` for the options and the errors."""
        return announcements.change_session(self._log.store, self._log.caller, **options)

    def end(self, **options: Any) -> SessionResult:
        """End the caller's session and release its name; see `work.give_handoff.end_session` for the options."""
        from ..work import give_handoff

        return give_handoff.end_session(self._log.store, self._log.caller, **options)


@checked_methods
class Invocation:
    """Calls of a log's caller. `Log` inherits it: methods of its own would hold the lock while they wait."""

    store: Store

    if TYPE_CHECKING:

        @property
        def caller(self) -> Caller:
            """The caller in whose name records are written."""
            ...

    def call(self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]) -> CallResult:
        """Call agents and wait for their results; see `CallOptions`. `check` of the result raises the error of an agent.

        Raises:
            UsageError: `unknown-agent`, or another invalid input. Nothing was written.
        """
        from ..calls import call

        return call.call(self.store, self.caller, agents, message, **options)

    def call_stream(
        self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
    ) -> Iterator[TaskProgress | CallResult]:
        """Call agents, and yield their progress in order and last the result; see `call`."""
        from ..calls import call

        return call.stream(self.store, self.caller, agents, message, **options)

    async def acall(
        self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
    ) -> CallResult:
        """Call agents from asyncio; see `call`. Cancellation ends the wait as a timeout does."""
        async with aclosing(self.acall_stream(agents, message, **options)) as every:
            *_, found = [each async for each in every]
        return found  # type: ignore[return-value]  # the last one

    def acall_stream(
        self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[TaskProgress | CallResult, None]:
        """Call agents from asyncio, and yield what `call_stream` does."""
        from ..calls import call

        return call.async_stream(self.store, lambda: self.caller, agents, message, **options)

    def wait_for(
        self, *task_ids: str, timeout: float | None = None, stop: StopWatching | None = None
    ) -> CallResult:
        """Wait for the results of earlier calls, and seal those of the caller's session."""
        from ..calls import call

        return call.wait(self.store, self.caller, task_ids, timeout=timeout, stop=stop)

    def serve(self, function: Function, *, stop: StopWatching, lease: float = 60.0) -> None:
        """Run tasks for the caller with a function, one at a time, until the stop is set.

        Args:
            function: Takes a `ServedTask` and returns the result. What it raises is the error of the task.
            lease: Seconds until another worker may take a task of a worker that has died.
        """
        from ..calls.worker import FunctionRun, Worker

        Worker(
            self.store, lambda: self.caller, lambda task: FunctionRun(function, task), stop=stop, lease=lease
        ).serve()


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
    keys_folder: str = "",
    key_file: str = "",
    commit_after: float = commit_process.WINDOW_SECONDS,
    allow_secret: bool = False,
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
        keys_folder: The user's folder for keys, such as `~/.local/state/gitmem/keys` of the command line; by default the key of
            a clone that has none is made in its state folder.
        key_file: The key file to use, an absolute path, as with GITMEM_KEY_FILE.
        commit_after: Seconds from a record to its commit. A thread commits all waiting records together. With 0 each
            call commits, and its outcome names the commit.
        allow_secret: Record texts that look like secrets; a person must decide this.

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
                          wal_elsewhere=wal_elsewhere, keys_folder=keys_folder, key_file=key_file)  # fmt: skip

    store = open_own()
    store.allow_secret = allow_secret
    log = Log(store, callers.CallerClaims(as_=session, session=runs_in, identity=identity, is_program=True))
    if commit_after:
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
        from .work import Tasks

        return Tasks(self)

    @property
    def claims(self) -> Claims:
        """The claims on paths."""
        from .work import Claims

        return Claims(self)

    @property
    def memory(self) -> Memory:
        """The memory nodes of this log."""
        from .memory import Memory

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

    def thread(self, id: str, *, limit: int | None = None) -> threads.Thread:
        """Return a thread, by its id or the id of a signal in it; with a limit its first and last signals."""
        return threads.thread(self.store, id, limit=limit)

    def converged(self, id: str) -> threads.Converged:
        """Return whether the latest decision of every recipient of the thread's root is AGREE."""
        caller = callers.find(self.store, self.who, must=False)
        return threads.converged(self.store, id, caller=caller)

    def receipts(self, signal: str | None = None, **filters: Any) -> ReceiptList:
        """Return the newest effective receipts, oldest first; see `receipt_list` for the filters.

        Args:
            signal: Only receipts of the signal with this id.
        """
        from ..signals.history import receipt_list

        return receipt_list(self.store, signal, **filters)

    def watch(self, *, stop: StopWatching | None = None, events: bool = True) -> Iterator[InboxResult]:
        """Yield batches of signals to the caller as they arrive; wait for them until `stop` is set.

        A batch is marked as read when the next one is requested, not before.
        """
        from ..signals.watch import watch_until

        return watch_until(self.store, self.who, stop=stop, events=events)

    def gate(
        self,
        *,
        wu: str | None = None,
        initiative: str | None = None,
        reason: str | None = None,
    ) -> Gate:
        """Return whether signals on a work unit block the caller; with a reason, pass the gate and record that."""
        from ..signals import gate

        return gate.check(self.store, self.caller, wu=wu, initiative=initiative, reason=reason)

    def overlap(self, branch: str | None = None, *, notify: bool = False) -> Overlaps:
        """Return the pairs of branches that change the same files, those that conflict first.

        Args:
            branch: Only pairs with this branch.
            notify: Tell the sessions on branches that conflict, each pair once a day at most.
        """
        from ..history import overlap

        return overlap.overlap(self.store, branch, notify=self.caller if notify else None)

    def roster(
        self, query: str | None = None, *, all: bool = False, limit: int | None = None
    ) -> roster.Roster:
        """Return at most `limit` live and idle sessions (by default 1,000); with `all` also those that are gone or have ended."""
        from ..work import handoffs

        return handoffs.add_to(self.store, roster.roster(self.store, query, all=all, limit=limit))

    def sync(
        self, remotes: Sequence[str] = (), *, all: bool = False, publish: bool = False, timeout: float = 30.0
    ) -> SyncResult:
        """Exchange lines with remotes. Other threads may use this log while it waits for them, except within a `batch`.

        Args:
            publish: The user agrees to publish the log on these remotes. Without consent, now or earlier, lines are
                only fetched.
            timeout: Seconds.
        """
        from ..sync import sync_remotes

        with self.store.second() as own:
            return sync_remotes.sync(own, remotes, all=all, publish=publish, timeout=timeout)

    def import_lumenflow(self, folder: str, *, dry_run: bool = False) -> Imported:
        """Import LumenFlow's records of a project into this log; see `importers.lumenflow_import`."""
        from ..importers import lumenflow_import

        return lumenflow_import.import_folder(self.store, self.caller, folder, dry_run=dry_run)

    def import_beads(self, place: str, *, dry_run: bool = False) -> Imported:
        """Import issues of beads from a file, or from a folder with it; see `importers.beads`."""
        from ..importers import beads

        return beads.import_file(self.store, self.caller, place, dry_run=dry_run)

    def import_github(
        self, label: str | None = None, *, dry_run: bool = False, report: bool = False
    ) -> Imported:
        """Import GitHub's issues with a label through `gh`, and report what became of them; see `importers.github`."""
        from ..importers import github

        return github.import_issues(
            self.store, self.caller, label or github.LABEL, dry_run=dry_run, report=report
        )

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Commit all records of a `with` block together at its end.

        Inside the block, outcomes have no commit yet, and the new records are visible. If the block raises or the
        commit fails, nothing is recorded and the caller is restored.
        """
        with self.store.lock:
            found, who = Batch(), self.who
            entries: list[LogEntry] = []
            self.store.collect(entries.append)
            try:
                try:
                    yield found
                finally:
                    self.store.collect(None)
                if entries:
                    found.appended = self.store.record_all(entries)
            except BaseException:
                self.who = who
                raise

    def close(self) -> None:
        """Commit this log's records and close it. Records that cannot be committed now wait for the next command."""
        try:
            if self.commits is not None:
                self.commits.close()
                if self.store.recorded:
                    self.store.commit_waiting(commit_process.WINDOW_SECONDS)
        except (GitmemError, OSError):
            pass  # the records are durable, and `doctor` reports why they wait
        finally:
            self.store.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


STOP_SECONDS = 10.0
RETRY_SECONDS_MAX = 60.0


class BackgroundCommits:
    """A thread that starts with the first record and ends with `close`.

    Args:
        open_store: Opens a store for the thread.
        window: Seconds from a record to its commit.
    """

    def __init__(self, open_store: Callable[[], Store], window: float) -> None:
        self._open_store = open_store
        self._window = window
        self._recorded = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def notify(self) -> None:
        """Commit new entries within the window."""
        self._recorded.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="gitmem commits", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread; the caller commits waiting records."""
        self._stopped.set()
        self._recorded.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        store, pause = None, 0.0
        while self._recorded.wait() and not self._stopped.wait(self._window + pause):
            self._recorded.clear()
            try:
                store = store or self._open_store()
                if store.waits() and store.commit_waiting() is None:
                    self._recorded.set()  # another process is committing: check again after a window
                pause = 0.0
            except (GitmemError, OSError):  # the reason is in the state folder
                pause = min(2 * pause + commit_process.RETRY_SECONDS, RETRY_SECONDS_MAX)
                self._recorded.set()
        if store is not None:
            store.close()
