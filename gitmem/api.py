"""The library's face: `gitmem.open(".")` and what hangs from it."""

from __future__ import annotations

import os

from . import commit_process
from . import repo as places
from .agents import caller as callers
from .errors import GitmemError, UsageError
from .mailbox import delivery_lock
from .open_store import open_store
from .sessions import lifecycle, roster
from .signals import inbox, threads
from .signals import send as signals
from .store import Store, wall_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from .agents.caller import Caller
    from .commit_thread import BackgroundCommits
    from .importers.lumenflow.import_result import Imported
    from .log.local_log import Appended
    from .memory_api import Memory
    from .signals.change_watcher import StopWatching
    from .signals.gate import Gate
    from .signals.inbox import InboxResult
    from .sync.sync_result import Synced


def open(
    start: str = ".",
    *,
    session: str | None = None,
    runs_in: str | None = None,
    identity: str | None = None,
    machine: str | None = None,
    now: Callable[[], int] = wall_clock,
    wal_elsewhere: Sequence[str] = (),
    commit_after: float = commit_process.WINDOW_SECONDS,
) -> Log:
    """Open the coordination log of the repository that a folder lies in.

    Args:
        start: A folder of the repository: a work tree, a subdirectory of one, or the git folder.
        session: Who acts: a session id (`sess-…`), an agent identity, a live display name, or a person as
            `human:<git user.email>`. None is the session of `runs_in`, else the only session of this worktree in the
            last 24 hours, else the person if this clone has no session. Where several sessions could be meant,
            whatever acts as somebody is refused (`which-session`): a program must not become the person by default.
        runs_in: The session that this program itself belongs to, such as the value of GITMEM_SESSION. A decision as
            somebody else is refused then, or with `insist=True` recorded with `via`.
        identity: The agent identity for sessions that are started through this log.
        machine: Name of this machine, for the index file; the host name by default.
        now: The wall clock, microseconds since 1970-01-01 UTC.
        wal_elsewhere: Folders to accept lines in where the git folder cannot be written.

        commit_after: Seconds until what is recorded is committed, by a thread, everything that waits in one commit; 0 commits
            in each call, whose outcome then names the commit.

    Raises: UsageError outside a repository; StoreError where the repository is of a kind that gitmem refuses.
    """
    place = places.find(os.path.abspath(start), named=True)
    if machine is None:
        import platform

        machine = platform.node()

    def open_own() -> Store:
        return open_store(
            place,
            machine=machine,
            lives_on=True,
            now=now,
            commit_after=commit_after,
            wal_elsewhere=wal_elsewhere,
        )

    store = open_own()
    log = Log(store, callers.Who(as_=session, session=runs_in, identity=identity))
    if commit_after:
        from .commit_thread import BackgroundCommits

        log.commits = BackgroundCommits(open_own, commit_after)
        store.after_record = log.commits.notify
    return log


class Log:
    """One clone's log, read and written as one caller. Use it as a context manager, or `close` it."""

    def __init__(self, store: Store, who: callers.Who) -> None:
        self.store = store
        self.who = who
        self.signals = Signals(self)
        self.sessions = Sessions(self)
        self.commits: BackgroundCommits | None = None

    @property
    def memory(self) -> Memory:
        """What agents wrote down for whoever comes later."""
        from .memory_api import Memory

        return Memory(self)

    @property
    def caller(self) -> Caller:
        """Who acts. Raises: UsageError where that is nobody, or not exactly one."""
        found = callers.find(self.store, self.who)
        if found is None:
            raise UsageError("Nothing says who acts here.", hint="Open the log with session=…", code="who")
        return found

    def inbox(self, *, mark: bool = True, **filters: Any) -> inbox.InboxResult:
        """What the caller has not read, oldest first; see `signals.inbox.read` for the filters.

        `mark` records that it was delivered: leave it out and call `signals.inbox.mark` when you
        have shown it, if showing can fail.
        """
        caller = self.caller
        if not mark:
            return inbox.read(self.store, caller, **filters)
        with delivery_lock.turn(self.store, caller.reader, wait_seconds=delivery_lock.WAIT_SECONDS):
            found = inbox.read(self.store, caller, **filters)
            inbox.mark(self.store, found)
        return found

    def thread(self, id: str) -> threads.Thread:
        """The conversation of a thread, or of the thread that a signal is in."""
        return threads.thread(self.store, id)

    def converged(self, id: str, *, strict: bool = False) -> threads.Converged:
        """Whether every recipient of the thread's root stands at AGREE."""
        caller = callers.find(self.store, self.who, must=False)
        return threads.converged(self.store, id, strict=strict, caller=caller)

    def watch(self, *, stop: StopWatching | None = None, events: bool = True) -> Iterator[InboxResult]:
        """Batches of signals to the caller as they come; it waits for them, for ever or until `stop` is set.

        A batch is marked as read when the next one is asked for, and not before.
        """
        from .signals.watch import forever

        return forever(self.store, self.who, stop=stop, events=events)

    def gate(
        self, *, wu: str | None = None, initiative: str | None = None, reason: str | None = None
    ) -> Gate:
        """Whether signals on a work unit stand in the caller's way; with a reason it goes past them, on record."""
        from .signals import gate

        return gate.look(self.store, self.caller, wu=wu, initiative=initiative, reason=reason)

    def roster(self, query: str | None = None, *, all: bool = False) -> roster.Roster:
        """Who is here: live and idle sessions, with `all` those that are gone or ended too."""
        return roster.roster(self.store, query, all=all)

    def sync(
        self, remotes: Sequence[str] = (), *, all: bool = False, publish: bool = False, timeout: float = 30.0
    ) -> Synced:
        """Exchange lines with remotes. Nothing else here uses the network.

        Args:
            publish: The user agrees that the log is published on these remotes. Without that, now or earlier,
                lines are only brought.
            timeout: Seconds.
        """
        from .sync import sync_remotes

        return sync_remotes.sync(self.store, remotes, all=all, publish=publish, timeout=timeout)

    def import_lumenflow(self, folder: str, *, dry_run: bool = False, allow_secret: bool = False) -> Imported:
        """Bring what LumenFlow remembers in a project into this log; see `importers.lumenflow.import_files`."""
        from .importers.lumenflow import import_files

        return import_files.bring(self.store, self.caller, folder, dry_run=dry_run, allow_secret=allow_secret)

    def batch(self) -> AbstractContextManager[Batch]:
        """Many records in one commit: what is recorded inside is committed together at the end.

        Inside, outcomes have no commit yet, and what was recorded counts; where the block raises, or the
        commit can't be made, nothing of it is recorded, and the caller is who it was before.
        """
        from contextlib import contextmanager

        @contextmanager
        def collect() -> Iterator[Batch]:
            batch = Batch(self)
            who = self.who
            self.store.collect(batch.add)
            try:
                try:
                    yield batch
                finally:
                    self.store.collect(None)
                batch.record()
            except BaseException:
                self.who = who
                raise

        return collect()

    def close(self) -> None:
        """Commit what this log has recorded, and close it. What can't be committed now waits for the next command."""
        try:
            if self.commits is not None:
                self.commits.close()
                if self.store.recorded:
                    commit_process.commit_waiting(self.store, commit_process.WINDOW_SECONDS)
        except (GitmemError, OSError):
            pass  # it is recorded, and why it waits is kept for `doctor`
        finally:
            self.store.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Signals:
    """Signals of a log's caller."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def send(self, message: str, **options: Any) -> signals.Sent:
        """Record a signal; see `signals.send.send` for the options and errors."""
        return signals.send(self._log.store, self._log.caller, message, **options)

    def reply(self, signal_id: str, message: str, **options: Any) -> signals.Sent:
        """Answer a signal: goes to its sender, in its thread."""
        return self.send(message, reply_to=signal_id, **options)


class Sessions:
    """Sessions of agents in this work tree."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def start(self, **options: Any) -> lifecycle.Started:
        """Start a session, and act as it from now on; see `sessions.lifecycle.start` for the options."""
        started = lifecycle.start(self._log.store, self._log.who, **options)
        own = started.session_id
        self._log.who = callers.Who(as_=own, session=own, identity=self._log.who.identity)
        return started

    def end(self) -> lifecycle.Ended:
        """End the caller's session and give its name back."""
        return lifecycle.end(self._log.store, self._log.caller)


class Batch:
    """What a `batch()` has collected."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._entries: list[Any] = []
        self.appended: Appended | None = None

    def add(self, entry: Any) -> None:
        self._entries.append(entry)

    @property
    def commit(self) -> str | None:
        """The commit of all of it; None inside the block, and while it waits for one."""
        return self.appended.commit if self.appended else None

    def record(self) -> None:
        if self._entries:
            self.appended = self._log.store.record_all(self._entries)
