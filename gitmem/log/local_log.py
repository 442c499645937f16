"""The log of one clone: its location, its write-ahead logs, and its committer identity."""

from __future__ import annotations

import os

from .. import local_files
from ..errors import StoreError
from ..outcome import Struct
from ..text.digests import token_of
from . import ledger
from .lines import is_name
from .write_ahead import WriteAheadLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from ..git.network import GitNetwork
    from ..git.objects import Signature
    from ..git.port import Git
    from ..outcome import Progress
    from ..repo import Repo
    from .lines import LogEntry
    from .lock import Lock
    from .tree_checks import Limits
    from .write_ahead import Owner, WalFile

    class Sealer(Protocol):
        """The keys of this user's writers, by which the committer attests their lines, see `trust.writer_sealer`."""

        def lacks(self, writer: str) -> bool:
            """Return whether the key of a writer is missing; of that in force for ""."""

        def seal(self, entries: Sequence[LogEntry], content_at: Callable[[str], bytes]) -> list[LogEntry]:
            """Return the attestations of the lines of these entries, as entries of the same segments; without a message."""


AHEAD_MAX_MICROS = 60_000_000
STATE_README = """This folder belongs to gitmem and is local to this clone. Nothing in it is pushed.

index-*.sqlite3  derived from refs/gitmem/log; delete it at any time
flags/           derived from it too: for which session something waits
wal/             recorded lines that wait for a commit; do not delete
private-*/       private nodes of this clone's agents, a folder for each user; no other copy exists
writer-*, given-* whose key writes here, and where the key is; attested-* what it has attested
ledger           digests of what was accepted here, so that `gitmem doctor` can tell when it is gone
aside/           what `gitmem doctor --fix` has moved out of the way; look at it, then delete it, but keep unattested-*
the rest         small state: the lock, the clock, the open segment, this clone's id and its sessions
"""


class Appended(Struct):
    """The result of recording an entry.

    Attributes:
        commit: The commit that contains it; None while it waits for one.
        where: The folder outside the repository in which it waits, or None.
    """

    commit: str | None
    where: str | None = None


class LocalLog:
    """The lines on `refs/gitmem/log` of one clone.

    Args:
        git: The git port.
        now: Returns the wall clock in microseconds since the epoch.
        random: Returns secure random bytes.
        committer: Name and mail of the person who owns this clone, or None.
        wal_elsewhere: Folders of write-ahead logs for when the git folder is not writable. An entry goes to the first
            that accepts it; all are read.
        wals_read: Folders of write-ahead logs of other processes. They are only read and committed.
    """

    def __init__(
        self,
        repo: Repo,
        git: Git,
        *,
        now: Callable[[], int],
        random: Callable[[int], bytes] = os.urandom,
        committer: tuple[str, str] | None = None,
        wal_elsewhere: Sequence[str] = (),
        wals_read: Sequence[str] = (),
    ) -> None:
        self.repo = repo
        self.git = git
        self.now = now
        self.random = random
        self.committer = committer
        self.clock = Clock(os.path.join(repo.state, "clock"), now)
        self.wal = WriteAheadLog(os.path.join(repo.state, "wal"), now)
        self._owner: Owner | None = None
        self._clone_id: str | None = None
        self.elsewhere = self._outside(wal_elsewhere)
        self.others = self._outside(wals_read)
        self.wal_parents: Sequence[str] = ()  # those of all repositories of this user
        self.left_in: str | None = None  # the folder outside the repository that received the last entry
        self.given_network: GitNetwork | None = None  # in place of the git program
        self._network: GitNetwork | None = None
        self.allow_large = False  # whether sync accepts any size from peers
        self.progress: Progress | None = None  # that of a sync
        self.limits: Limits | None = None  # of what sync accepts from peers; None for the usual ones
        self.lock_seconds = 3.0  # how long a sync waits for the log's lock
        self.taken_in = 0  # bytes of new files that the last exchange accepted
        self.passed_trees: set[str] = set()  # trees of peers that passed the checks
        self.sealer: Callable[[], Sealer] | None = None  # of a committer; without it nothing is attested
        self.read: Callable[[bytes], Any] = lambda line: None  # the record in a line: the log knows no kinds
        # Called after the ref has moved and the lock was released; updates the index.
        self.committed: Callable[[], object] = lambda: None
        # Called with the entries that were just recorded in a write-ahead log.
        self.recorded: Callable[[Sequence[LogEntry]], None] = lambda entries: None

    @property
    def network(self) -> GitNetwork:
        """The network, by the git program; created at first use."""
        found = self.given_network or self._network
        if found is None:
            from ..git.network import GitNetwork

            found = self._network = GitNetwork(self.repo.common, self.git.contains)
        return found

    @network.setter
    def network(self, network: GitNetwork) -> None:
        self.given_network = network

    @property
    def wals(self) -> list[WriteAheadLog]:
        """Every write-ahead log whose entries belong to this clone."""
        return [self.wal, *self.elsewhere, *self.others]

    def waiting(self, *, deferred: bool = False) -> list[WalFile]:
        """Return the files that wait for a commit, oldest first.

        Args:
            deferred: Include files whose entries do not start a commit.
        """
        found = [file for wal in self.wals for file in wal.files() if file.size]
        return [file for file in found if deferred or not file.is_deferred]

    def read_also(self, folders: Sequence[str]) -> None:
        """Set the write-ahead logs of others to read; one may appear while a process lives."""
        if [wal.folder for wal in self.others] != list(folders):
            self.others = self._outside(folders)

    def _outside(self, folders: Sequence[str]) -> list[WriteAheadLog]:
        if not folders:
            return []
        if self._owner is None:
            from .write_ahead import Owner

            self._owner = Owner(self.repo)
        return [WriteAheadLog(folder, self.now, check_owner=True, owner=self._owner) for folder in folders]

    def append(self, entry: LogEntry) -> Appended:
        """Record an entry. After the return it survives a crash and a power loss. `committer` commits it later.

        Raises:
            StoreError: Nothing was recorded; with code `wal-unknown` that is uncertain.
        """
        entry.token = entry.token or self.token()
        if self.make_state():
            self.wal.append(entry)
            where = None
        else:
            where = self.left_in = self._append_elsewhere(entry).folder
        ledger.append(self.repo, [entry])
        self.recorded([entry])
        return Appended(None, where)

    def _append_elsewhere(self, entry: LogEntry) -> WriteAheadLog:
        """Record an entry outside the repository, in the first folder that accepts it."""
        failure = None
        for wal in self.elsewhere:
            try:
                wal.append(entry)
            except StoreError as error:
                if error.code == "wal-unknown":
                    raise
                failure = failure or error
                continue
            return wal
        raise failure or self._unwritable()

    def _unwritable(self) -> StoreError:
        """Return the error for a folder that this user may not write: what somebody else made in the user's own git folder, or all of it."""
        from ..git import plumbing

        return plumbing.left_by_another(self.repo.common) or StoreError(
            f"{self.repo.common} cannot be written. Nothing was recorded.",
            hint="Ask its owner to let you write there (git config core.sharedRepository group), or use a clone of your own.",
            code="read-only",
        )

    def signature(self, otherwise: tuple[str, str] | None = None) -> Signature:
        """Return the signature of a commit made now: the clone's owner if known, then `otherwise`, then gitmem."""
        from ..git.objects import Signature
        from .ref import NOBODY

        return Signature(*(self.committer or otherwise or NOBODY), self.now() // 1_000_000)

    def lock(self) -> Lock:
        """Return the lock of the log, not acquired."""
        from .lock import Lock

        return Lock(os.path.join(self.repo.state, "lock"))

    def make_state(self) -> bool:
        """Create the state folder if it is missing; False if this process may not write it."""
        state = self.repo.state
        readme = os.path.join(state, "README")
        if not os.path.exists(readme):
            try:
                local_files.make_dirs(state)
                local_files.replace(readme, STATE_README.encode())
            except PermissionError:
                return False
            except OSError as error:
                if error.errno == 30:  # EROFS: a read-only file system
                    return False
                raise StoreError(
                    f"{state} cannot be made ({error.strerror}). Nothing was recorded.",
                    hint="Free disk space or correct the permissions of the git folder, then run the command again.",
                    code="state",
                ) from error
        return os.access(state, os.W_OK) and os.access(os.path.join(self.repo.common, "objects"), os.W_OK)

    def token(self) -> str:
        """Return the token of the segment that this clone's lines go to now."""
        return read_word(os.path.join(self.repo.state, "segment")) or self.new_token()

    def new_token(self) -> str:
        """Close the open segment: later lines go to a new one."""
        token = token_of(self.random(8))
        write_word(os.path.join(self.repo.state, "segment"), token)
        return token

    def clone_id(self) -> str:
        """Return the id of this clone: random, created once, and read once by each process."""
        if self._clone_id is None:
            path = os.path.join(self.repo.state, "clone")
            word = read_word(path)
            if word is None:
                self.make_state()  # without the folder the next process would have another id
                word = write_first_word(path, token_of(self.random(10)))
            self._clone_id = word
        return self._clone_id


class Clock(Struct):
    """The source of the `at` of new lines.

    The last time is stored as the modification time of an empty file: one system call, and nothing that can be torn. A
    stored time more than a minute ahead of the wall clock is ignored. Times of other clones are never used.
    """

    path: str
    now: Callable[[], int]
    _last: int = 0

    def tick(self, count: int = 1) -> int:
        """Return microseconds since the epoch, more than the last tick of this clone.

        Args:
            count: The number of ticks to reserve, one microsecond apart; the first is returned.
        """
        now = self.now()
        last = max(self._last, local_files.modified_ns(self.path) // 1000)
        at = max(now, last + 1) if last <= now + AHEAD_MAX_MICROS else now
        self._last = last = at + count - 1
        try:
            local_files.utime(self.path, (last * 1000, last * 1000))
        except (FileNotFoundError, PermissionError):  # the mtime of another user's file cannot be set
            try:
                local_files.replace(self.path, b"")
                local_files.utime(self.path, (last * 1000, last * 1000))
            except OSError:
                pass  # the folder is not writable; a write-ahead log elsewhere still accepts the line
        except OSError:
            pass
        return at


def read_word(path: str) -> str | None:
    """Return the word in a small state file, or None if the file is missing or damaged."""
    try:
        word = local_files.read(path).decode().strip()
    except ValueError:
        return None
    return word if is_name(word) else None


def write_word(path: str, word: str, *, keep: bool = False) -> None:
    """Replace a small state file. An unwritable folder is ignored: then only this process uses the word."""
    local_files.try_replace(path, word.encode(), keep=keep)


def write_first_word(path: str, word: str) -> str:
    """Write a small state file unless it has a word; return its word, which may be that of a concurrent process."""
    write_word(path, word, keep=not os.path.lexists(path) or read_word(path) is not None)
    return read_word(path) or word
