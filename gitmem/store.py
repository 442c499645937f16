"""The store: one clone's log and its index, open for the operations."""

from __future__ import annotations

import os
import time

from . import commit_process, records
from .git.open_git import cached_config
from .index import schema
from .log.entry import LogEntry
from .log.local_log import Appended, LocalLog
from .store_index import StoreIndex
from .trust import clone_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from .errors import GitmemError
    from .git.open_git import CachedConfig, Git
    from .log.entry import CommitMessage
    from .repo import Repo
    from .store_index import Domain

# New bytes of a sync. For fewer, catching up is quicker than the start of a process. With more, the next command would
# not wait until that process is done, and fill an index of its own.
LEFT_BYTES_MIN, LEFT_BYTES_MAX = 1024 * 1024, 8 * 1024 * 1024


def wall_clock() -> int:
    """Microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class Store(StoreIndex):
    """What every operation works on.

    Args:
        place: Where the repository is.
        git: The port.
        domain: What the domain packages provide.
        machine: Name of this machine; a host and a container that share the folder have different ones.
        now: The wall clock, microseconds since the epoch.
        commit_after: Seconds until what is recorded is committed, by whoever runs a committer; 0 commits in each write.
        wal_elsewhere: Write-ahead logs for when the git folder cannot be written.
        wals_read: Write-ahead logs that other processes may write to.
    """

    def __init__(
        self,
        place: Repo,
        git: Git,
        domain: Domain,
        *,
        machine: str,
        now: Callable[[], int] = wall_clock,
        random: Callable[[int], bytes] = os.urandom,
        commit_after: float = 0.0,
        wal_elsewhere: Sequence[str] = (),
        wals_read: Sequence[str] = (),
        progress: Callable[[int], None] | None = None,
        config: CachedConfig | None = None,
    ) -> None:
        self.place = place
        self.git = git
        self.domain = domain
        self.machine = machine
        self.now = now
        self.random = random
        self.progress = progress
        self.commit_after = commit_after
        self.log = LocalLog(
            place, git, now=now, random=random, wal_elsewhere=wal_elsewhere, wals_read=wals_read
        )
        self.keys = clone_key.Keys(place.state, random, self.log.make_state)
        super().__init__()
        self.log.committed = self.refresh
        self.log.recorded = lambda entries: self.refresh() if self.snapshot is None else None
        self.is_committing = False
        self.commit_again = 0.0  # when what could not be committed is tried again
        self._config = config
        # Starts a process that calls `keep_up`; None where this one lives on and does it itself.
        self.starts_upkeep: Callable[[], object] | None = None
        self.wrote = 0  # how soon what was recorded here is to be sent, as `autosync` has it
        self.after_record: Callable[[], object] | None = None  # called when a commit has to come
        self.recorded = False  # whether anything was recorded here
        self.commit_failed: GitmemError | None = (
            None  # why the last commit of this process did not come about
        )

    def db(self) -> sqlite3.Connection:
        """The index, caught up with the ref, the write-ahead logs and the lines of a batch that is open."""
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
        """Bring the queues up to date, where anything has come since they were."""
        self.domain.feed(self)

    def head(self) -> tuple[str | None, str | None]:
        """The commit that this worktree's HEAD is at, and its branch; None for what there is not."""
        return self.git.head(self.place.git_dir)

    def branch(self) -> str | None:
        """The branch that this worktree is on; None where there is none."""
        return self.git.branch(self.place.git_dir)

    def waits(self) -> bool:
        """Return whether anything waits for a commit that has to come."""
        return bool(self.log.waiting())

    def line(
        self, kind: str, fields: Mapping[str, object], *, allow_secret: bool = False
    ) -> tuple[str, bytes]:
        """A new line of a kind, with its stream, at this clone's next tick.

        Raises: RecordError, SecretError; StoreError where the clone key is damaged.
        """
        if kind in self.domain.completed_kinds:
            fields = self.domain.complete(self._last_look(), kind, fields)
        mac, at = self.keys.for_writing(), self.log.clock.tick()
        return records.STREAMS[kind], records.line(kind, at, fields, allow_secret=allow_secret, mac=mac)

    def _last_look(self) -> sqlite3.Connection:
        """The index as the last look left it; where there was none yet, look now."""
        if self._ahead is not None or self.snapshot is not None or not self.index.is_shaped():
            return self.db()
        return self.index.db

    def record(
        self, lines: Sequence[tuple[str, bytes]], story: CommitMessage, *, deferred: bool = False
    ) -> Appended:
        """Append lines as one entry. Raises: StoreError; then nothing of it is recorded."""
        entry = LogEntry(lines, story, deferred=deferred)
        if self.collecting is not None:
            self._look_ahead(entry)
            self.collecting(entry)
            return Appended(None)
        return self._append(entry)

    def record_all(self, entries: Sequence[LogEntry]) -> Appended:
        """Append several entries as one, in one commit."""
        from .log.commit_draft import tell

        lines = [line for entry in entries for line in entry.lines]
        return self._append(LogEntry(lines, tell(entries), deferred=all(entry.deferred for entry in entries)))

    def _append(self, entry: LogEntry) -> Appended:
        if not schema.can_write(self._last_look()):
            from .log import committer, ref

            tip = self.git.tip(ref.LOG_REF)
            if tip is not None:
                committer.check_tip(self.log, tip)
        appended = self.log.append(entry)
        if not entry.deferred:
            self.recorded = True
            self.wrote = max(self.wrote, commit_process.soon(entry.lines))
            if appended.where is None:
                if not self.commit_after:
                    appended.commit = commit_process.commit_at_once(self)
                elif self.after_record is not None:
                    self.after_record()
        return appended

    def keep_up(self) -> None:
        """Have the log's small packs united, where they are many."""
        from .log import auto_pack

        auto_pack.keep_up(self.log, self.starts_upkeep)

    def refresh_or_leave(self, *, start: bool = False) -> bool:
        """Catch up after a sync, or leave that to the process that does the upkeep, where the sync brought much.

        Args:
            start: Start that process; else somebody will.

        Returns: Whether it is left.
        """
        is_much = LEFT_BYTES_MIN <= self.log.taken_in <= LEFT_BYTES_MAX
        if self.starts_upkeep is None or not is_much or commit_process.is_off(self.place):
            self.refresh()
            return False
        if start:
            self.starts_upkeep()
        return True

    @property
    def config(self) -> CachedConfig:
        """What git's configuration says, read when it is first asked for."""
        if self._config is None:
            self._config = cached_config(self.place)
        return self._config

    def settings(self) -> dict[str, str]:
        """What git config says of this clone's user (`user.name`, `user.email`) and of gitmem, with keys in small letters."""
        return self.config.read().values

    def has_remote(self) -> bool:
        """Return whether git config has a remote with a URL."""
        return self.config.read().has_remote

    def person(self) -> tuple[str | None, str | None]:
        """The git identity of this clone's user: name and mail, either may be None."""
        found = self.settings()
        return found.get("user.name") or None, found.get("user.email") or None

    def committer(self) -> tuple[str, str] | None:
        """Who commits: the git identity, or None where it is not set; then the agent does."""
        name, mail = ("".join(filter(str.isprintable, text or "")) for text in self.person())
        return (name or mail.partition("@")[0], mail) if mail else None

    def close(self, *, tidies: bool = True) -> None:
        """Close what is open.

        Args:
            tidies: Also the index, whose last connection brings SQLite's own log to the file and waits for the disk; else
                it is left to the process that commits, see `tidy_index`.
        """
        if tidies:
            self.close_index()
        self.git.close()
