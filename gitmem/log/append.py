"""Append: spool, leader, commit, swap.

An answer is either a commit (its objects and the ref are on the disk) or
"queued" (the entry is fsynced in the spool). The cases, numbered as in the code:

1. The lock is free: this process commits its own entry and whatever waits in the spool.
2. Somebody else commits: the entry goes to the spool, and this process waits for the
   lock or for the news that its entry is in a commit.
3. The git folder cannot be written, or neither came in time: the entry stays queued,
   and the next process that may write commits it.
"""

from __future__ import annotations

import os
import time

from ..errors import StoreError
from . import ledger, ref
from .spool import take_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..git.port import Entry as TreeEntry
    from .lock import Lock
    from .log import Log
    from .spool import Entry, Spool

WAIT_SECONDS = 5.0
SWAPS_MAX = 40
SWAPS_OF_A_READER = 2  # one that may find a lock of the dead and break it, and one more: some milliseconds


class Appended:
    """What became of an entry: the commit that it is in, or None while it is queued.

    `where` is the folder outside the repository in which it waits, or None.
    """

    __slots__ = ("commit", "where")

    def __init__(self, commit: str | None, where: str | None = None) -> None:
        self.commit = commit
        self.where = where

    @property
    def queued(self) -> bool:
        return self.commit is None


def append(log: Log, entry: Entry, *, wait_seconds: float = WAIT_SECONDS) -> Appended:
    """Record an entry.

    Raises: StoreError; then the entry has been withdrawn and will not appear later.
    """
    writable = log.make_state()
    entry.token = entry.token or log.token()
    if not writable:
        spool, _ = _spool(log, entry, log.elsewhere)
        ledger.note(log, [entry])
        log.left_in = spool.folder
        return Appended(None, spool.folder)
    if entry.rides:
        _spool(log, entry, [log.spool])
        ledger.note(log, [entry])
        return Appended(None)
    lock = log.lock()
    if lock.take():  # 1
        with lock:
            waiting = collect(log)
            commit = commit_entries(log, [*(found for _, _, found in waiting), entry])
            if commit is not None:
                _finish(log, waiting, commit)
        if commit is not None:
            moved(log)
            return Appended(commit)
    _, name = _spool(log, entry, [log.spool])  # 2
    deadline = time.monotonic() + wait_seconds
    pause = 0.001
    while True:
        commit = log.spool.take_done(name)
        if commit is not None:
            return Appended(commit)
        lock = log.lock()
        if _taken(lock):
            with lock:
                _drain_or_withdraw(log, entry, name)
            moved(log)
            commit = log.spool.take_done(name)
            break
        if time.monotonic() >= deadline:
            break
        time.sleep(pause * (0.5 + log.random(1)[0] / 256))
        pause = min(pause * 1.5, 0.02)
    if commit is None:  # 3
        ledger.note(log, [entry])
    return Appended(commit)


def _taken(lock: Lock) -> bool:
    """The entry is safe in the spool by now: a lock that can't be opened is only one that somebody else gets."""
    try:
        return lock.take()
    except StoreError:
        return False


def _drain_or_withdraw(log: Log, entry: Entry, name: str) -> None:
    """Lead. What fails is reported as failed, so our own entry must not come back later."""
    try:
        drain_locked(log)
    except StoreError:
        if _is_committed(log, entry):
            return  # by a leader who was killed, or had no room, before it could tell us
        if take_back(os.path.join(log.spool.folder, name)):
            raise
        # Else it went into a commit before the failure, or can't be taken back and waits.


def _is_committed(log: Log, entry: Entry) -> bool:
    """Whether the log has every line of an entry, as far as it can be read."""
    try:
        tip = log.git.tip(ref.LOG_REF)
        return tip is not None and not _changes(log, tip, [entry])[0]
    except (StoreError, KeyError, OSError):
        return False


def waits(log: Log) -> bool:
    """Whether anything but riding entries waits for a commit."""
    return any(not name.endswith("-ride.spool") for spool in log.spools for name in spool.names())


def drain(log: Log, *, swaps: int | None = None) -> bool:
    """Commit what waits in the spool, if anything but riding entries does. True when nothing else waits now.

    Args:
        swaps: How often to try to move the ref; `SWAPS_MAX` times where it is not given.
    """
    return not waits(log) or drain_all(log, swaps=swaps)


def drain_all(log: Log, *, swaps: int | None = None) -> bool:
    """Commit everything in the spool, riding entries too. False where that must wait."""
    if not any(spool.names() for spool in log.spools):
        return True
    if not log.make_state():
        return False
    lock = log.lock()
    if not lock.take():
        return False
    with lock:
        done = drain_locked(log, swaps=swaps)
    if done:
        moved(log)
    return done


def drain_locked(log: Log, *, swaps: int | None = None) -> bool:
    """The same for a caller that holds the lock, and calls `moved` afterwards."""
    waiting = collect(log)
    if not waiting:
        return True
    commit = commit_entries(log, [found for _, _, found in waiting], swaps=swaps)
    if commit is None:
        return False
    _finish(log, waiting, commit)
    return True


def collect(log: Log) -> list[tuple[Spool, str, Entry]]:
    """Every readable entry of every spool. Files that are not ours stay where they are; `doctor` lists them."""
    found = []
    for spool in log.spools:
        for name in spool.names():
            try:
                found.append((spool, name, spool.read(name)))
            except (OSError, ValueError):
                continue
    return found


def _spool(log: Log, entry: Entry, spools: Sequence[Spool]) -> tuple[Spool, str]:
    """Accept an entry in the first spool that takes it: the spool, and its name there."""
    failure = None
    for spool in spools:
        try:
            name = spool.put(entry, log.now(), log.lock, lambda: _is_committed(log, entry))
        except StoreError as error:
            failure = failure or error
            continue
        log.spooled([entry])
        return spool, name
    raise failure or StoreError(
        f"{log.place.common} cannot be written; nothing was recorded.",
        hint="Ask its owner to let you write there (git config core.sharedRepository group), or use a clone of your own.",
        code="read-only",
    )


def _finish(log: Log, waiting: Sequence[tuple[Spool, str, Entry]], commit: str) -> None:
    for spool, name, entry in waiting:
        try:
            spool.finish(name, commit, tell=not entry.rides)
        except OSError:
            continue  # it is committed: whoever drains it again adds nothing
    if waiting:
        now = time.time()
        for spool in log.spools:
            spool.sweep(now)


def commit_entries(log: Log, entries: Sequence[Entry], *, swaps: int | None = None) -> str | None:
    """Put entries into one commit and move the ref: the commit, or None where the swap was lost too often.

    The caller holds the lock, which git and people don't heed, and calls `moved` once it has released it.
    """
    # A read that only spools receipts does without these.
    from . import start
    from .telling import draft

    git = log.git
    try:
        for attempt in range(swaps or SWAPS_MAX):
            tip = git.tip(ref.LOG_REF) or start.start(log)
            changes, full = _changes(log, tip, entries)
            if not changes:
                ledger.note(log, entries, tip)
                return tip
            commit = git.advance(ref.LOG_REF, tip, draft(log, entries, changes), _why(entries))
            if commit is not None:
                ledger.note(log, entries, commit)
                if full:
                    log.new_token()
                return commit
            git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
            time.sleep(min(0.002 * 1.3**attempt, 0.1) * (0.5 + log.random(1)[0] / 256))
    except OSError as error:
        raise StoreError(
            f"The log cannot be written ({error.strerror or error}); nothing was recorded.",
            hint="Free the disk or mend the permissions of the git folder, then run the command again.",
            code="disk",
        ) from error
    except KeyError as error:
        raise ref.missing_object(error, "nothing was recorded") from error
    except StoreError as error:
        if error.code == "locked":
            return None  # as a swap that was lost: the entry waits
        if error.code == "git-failed":  # git's own words; what became of the entry is ours to say
            error.message += "; nothing was recorded."
        raise
    return None


def moved(log: Log) -> None:
    """Tell of a ref that has moved. Never under the lock: the index catches up, and its last writer may be stopped."""
    try:
        log.committed()
    except Exception:
        return  # what is derived from the log is made good by the next look at it


def _changes(
    log: Log, tip: str, entries: Sequence[Entry]
) -> tuple[dict[str, bytes | TreeEntry | None], bool]:
    """What the entries change in the tip's tree, and whether the open segment is full now."""
    from .segments import changes_of  # a read that only spools receipts does without it

    git = log.git
    tree = git.commit(tip).tree
    form = ref.read_format(git, git.tree(tree))
    if form is None:
        raise StoreError(
            f"{ref.LOG_REF} is at {tip[:12]}, which is no gitmem log; nothing was recorded.",
            hint="Move that ref out of the way with git, then run the command again.",
            code="not-a-log",
            next=["gitmem doctor"],
        )
    form.refuse_newer()
    return changes_of(git, tree, entries)


def _why(entries: Sequence[Entry]) -> str:
    return f"append: {sum(len(entry.lines) for entry in entries)} lines"
