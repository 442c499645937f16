"""Commit what waits in the write-ahead logs: one commit for everything, then the index, then the files go.

Who is killed anywhere leaves either the files, which the next one commits again to no effect, or the commit.
"""

from __future__ import annotations

import os
import time

from ..errors import StoreError
from . import ledger, ref, wal_files
from .entry import LogEntry, row_of, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .local_log import LocalLog
    from .wal import WriteAheadLog
    from .wal_files import WalFile

WAITS = "what was recorded is kept, and waits for its commit"
SWAPS_MAX = 40
SWAPS_OF_A_READER = 2  # one that may find a lock of the dead and break it, and one more: some milliseconds
WRITER_SECONDS = 0.2  # for a writer that keeps its file; its entry waits for the next commit then
PAUSE_SECONDS = 0.002
FILES_AT_ONCE = 1_000  # of one commit; version 0.1 may have left a file for each entry


class _Taken:
    """A file whose entries go into the commit, open and locked where it could be locked.

    Attributes:
        whole: Whether nobody writes to it any more, and all of it was read.
    """

    __slots__ = ("damaged", "file", "handle", "whole")

    def __init__(self, file: WalFile, handle: int, whole: bool) -> None:
        self.file = file
        self.handle = handle
        self.whole = whole
        self.damaged = False


def rows_waiting(log: LocalLog, *, deferred: bool = False) -> list[tuple[str, bytes]]:
    """Return stream and line of everything that waits for a commit, unchecked. What can't be read is left out."""
    found = []
    for wal in log.wals:
        for file in wal.files():
            try:
                tail = wal.read(file) if deferred or not file.is_deferred else None
                for payload, _ in tail.entries if tail else ():
                    found += [row_of(row) for row in split(payload)[1]]
            except (OSError, ValueError):
                continue
    return found


def commit_waiting(log: LocalLog, *, deferred: bool = False, swaps: int | None = None) -> str | None:
    """Commit everything that waits, deferred entries too: the commit, or None where nothing was to be done or it must wait.

    Args:
        deferred: Commit deferred entries where nothing else waits, too.
        swaps: How often to try to move the ref; `SWAPS_MAX` times where it is not given.

    Raises: StoreError; then everything waits as before.
    """
    commit = None
    while log.waiting(deferred=deferred):
        lock = log.lock()
        if not log.make_state() or not lock.take():
            return None
        taken: list[_Taken] = []
        try:
            with lock:
                done = _commit(log, taken, swaps)
            if done is None:
                return None
            commit = done
            moved(log)
            for each in taken:
                _remove(each)
        finally:
            for each in taken:
                os.close(each.handle)
        if len(taken) < FILES_AT_ONCE:
            break
    return commit


def commit_within(
    log: LocalLog, seconds: float, *, deferred: bool = False, swaps: int | None = None
) -> str | None:
    """Commit what waits now, and wait for another process that is committing: a commit that has all of it.

    Returns: The commit, the log's tip where another process has made it; None where something still waits then.
    """
    names = {file.path for file in log.waiting(deferred=deferred)}
    deadline = time.monotonic() + seconds
    pause = PAUSE_SECONDS
    while True:
        commit = commit_waiting(log, deferred=deferred, swaps=swaps)
        if commit is not None:
            return commit
        if not names.intersection(file.path for file in log.waiting(deferred=True)):
            return log.git.tip(ref.LOG_REF)
        if time.monotonic() >= deadline or not log.make_state():
            return None
        time.sleep(pause * (0.5 + log.random(1)[0] / 256))
        pause = min(pause * 1.5, 0.02)


def _commit(log: LocalLog, taken: list[_Taken], swaps: int | None) -> str | None:
    """Make the commit for a caller that holds the lock. What was read is in `taken`, whatever becomes of it."""
    entries: list[LogEntry] = []
    try:
        for wal in log.wals:
            if wal.files():
                wal.rotate()
                for file in _older(wal)[: FILES_AT_ONCE - len(taken)]:
                    entries += _read(wal, file, taken)
    except OSError as error:
        raise _unwritable(error) from error
    if not entries:
        return log.git.tip(ref.LOG_REF) if taken else None
    return commit_entries(log, entries, swaps=swaps)


def _older(wal: WriteAheadLog) -> list[WalFile]:
    """Return the files that nobody is to append to any more."""
    current = {wal_files.newest(wal.folder, deferred=deferred) for deferred in (False, True)}
    return [file for file in wal.files() if file.name not in current]


def _read(wal: WriteAheadLog, file: WalFile, taken: list[_Taken]) -> list[LogEntry]:
    """Lock and read a file. What is no entry of ours stays where it is; `doctor` lists it."""
    try:
        handle = wal_files.open_to_read(file.path)
    except OSError:
        return []
    if handle is None:
        return []
    each = _Taken(file, handle, whole=file.is_old or _is_left(handle))
    taken.append(each)
    try:
        tail = wal.read(file)
    except (OSError, ValueError):
        each.whole = False
        return []
    if tail is None:
        return []
    each.damaged = bool(tail.damaged or tail.end != file.size)
    entries = []
    for payload, _ in tail.entries:
        try:
            entries.append(LogEntry.decode(payload, deferred=file.is_deferred))
        except ValueError:
            each.damaged = True  # it keeps none of the others from their commit
    return entries


def _is_left(handle: int) -> bool:
    """Return whether all writers have left a file, so that it can be locked; a stopped one is not waited for long."""
    deadline = time.monotonic() + WRITER_SECONDS
    while not wal_files.lock(handle, exclusive=True):
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def _remove(each: _Taken) -> None:
    """Remove a committed file, unless somebody has written to it since; a damaged one is kept for `doctor`."""
    try:
        if each.whole and os.fstat(each.handle).st_size == each.file.size:
            if each.damaged:
                os.replace(each.file.path, each.file.path + wal_files.DAMAGED)
            else:
                os.unlink(each.file.path)
    except OSError:
        return  # it is committed: who commits it again adds nothing


def commit_entries(log: LocalLog, entries: Sequence[LogEntry], *, swaps: int | None = None) -> str | None:
    """Put entries into one commit and move the ref: the commit, or None where the swap was lost too often.

    The caller holds the lock, which git and people don't heed, and calls `moved` once it has released it.
    """
    from . import start
    from .commit_draft import draft
    from .segments import changes_of

    git = log.git
    try:
        for attempt in range(swaps or SWAPS_MAX):
            tip = git.tip(ref.LOG_REF) or start.start(log)
            check_tip(log, tip, WAITS)
            changes, full = changes_of(git, git.commit(tip).tree, entries)
            if not changes:
                ledger.note(log.place, (), tip)
                return tip
            why = f"append: {sum(len(entry.lines) for entry in entries)} lines"
            commit = git.advance(ref.LOG_REF, tip, draft(log, entries, changes), why)
            if commit is not None:
                ledger.note(log.place, (), commit)
                if full:
                    log.new_token()
                return commit
            git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
            time.sleep(min(0.002 * 1.3**attempt, 0.1) * (0.5 + log.random(1)[0] / 256))
    except OSError as error:
        raise _unwritable(error) from error
    except KeyError as error:
        raise ref.missing_object(error, WAITS) from error
    except StoreError as error:
        if error.code == "locked":
            return None  # as a swap that was lost: the entries wait
        if error.code == "git-failed":  # git's own words; what became of the entries is ours to say
            error.message += f"; {WAITS}."
        raise
    return None


def _unwritable(error: OSError) -> StoreError:
    return StoreError(
        f"The log cannot be written ({error.strerror or error}); {WAITS}.",
        hint="Free the disk or correct the permissions of the git folder, then run the command again.",
        code="disk",
    )


def moved(log: LocalLog) -> None:
    """Tell of a ref that has moved. Never under the lock: the index catches up, and its last writer may be stopped."""
    try:
        log.committed()
    except Exception:
        return  # what is derived from the log is made good by the next look at it


def check_tip(log: LocalLog, tip: str, outcome: str = "nothing was recorded") -> None:
    """Check that lines can be put on a tip.

    Args:
        outcome: What the error says became of what was to be written.

    Raises: StoreError `not-a-log` or `newer-format`.
    """
    git = log.git
    tree = git.commit(tip).tree
    form = ref.read_format(git, git.tree(tree))
    if form is None:
        raise StoreError(
            f"{ref.LOG_REF} is at {tip[:12]}, which is no gitmem log; {outcome}.",
            hint="Move that ref out of the way with git, then run the command again.",
            code="not-a-log",
            next=["gitmem doctor"],
        )
    form.refuse_newer()
