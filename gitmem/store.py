"""The store: one clone's log and its index, open for operations."""

from __future__ import annotations

import os
import time
from _thread import RLock

from . import commit_process, records
from .git.repository import cached_config
from .index import index_file
from .log.lines import LogEntry
from .log.local_log import Appended, LocalLog
from .store_index import StoreIndex
from .trust import clone_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from .errors import GitmemError
    from .git.repository import CachedConfig, Git
    from .log.lines import CommitMessage
    from .outcome import Progress
    from .records.record_types import AnyFields
    from .repo import Repo
    from .store_domain import Domain


# New bytes of a sync. For fewer, catching up is faster than starting a process. With more, the next command would not
# wait for that process, and would fill an index of its own.
LEFT_BYTES = range(1024 * 1024, 8 * 1024 * 1024 + 1)


def wall_clock() -> int:
    """Return microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class Store(StoreIndex):
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
    """

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
        self.keys = clone_key.CloneKeyReader(repo.state, random, self.log.make_state)
        super().__init__()
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
        ] = {}  # this store as readers see it, see `memory.private_nodes`

    def db(self) -> sqlite3.Connection:
        """Return the index, caught up with the ref, the write-ahead logs and the lines of an open batch."""
        if self._ahead is not None:
            return self._ahead.db
        if self.snapshot is not None:
            return self.snapshot.db
        if not (self.asks_once and self.has_asked and self._index is not None):
            self.adopt()
            commit_process.commit_overdue(self)
            self.caught_up()
            self.has_asked = True
        return self.index.db

    def _feed(self) -> None:
        """Update the queues if anything arrived since their last update."""
        self.domain.feed(self)

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
            StoreError: the clone key is damaged.
        """
        whole: Mapping[str, object] = fields
        if kind in self.domain.completed_kinds:
            whole = self.domain.complete(self._last_look(), kind, fields)
        mac, at = self.keys.for_writing(), self.log.clock.tick() if at is None else at
        return records.STREAMS[kind], records.line(kind, at, whole, allow_secret=allow_secret, mac=mac)

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
            from .log import committer, ref

            tip = self.git.tip(ref.LOG_REF)
            if tip is not None:
                committer.check_tip(self.log, tip)
        appended = self.log.append(entry)
        if not entry.deferred:
            self.recorded = True
            self.wrote = max(self.wrote, commit_process.urgency(entry.lines))
            if appended.where is None:
                if not self.commit_after:
                    appended.commit = commit_process.commit_at_once(self)
                elif self.after_record is not None:
                    self.after_record()
        return appended

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

    def close(self, *, closes_index: bool = True) -> None:
        """Close the store.

        Args:
            closes_index: Close the index too. Its last connection checkpoints SQLite's write-ahead log and waits for the
                disk. Without it, the committer does that, see `tidy_index`.
        """
        if closes_index:
            self.close_index()
        self.git.close()
