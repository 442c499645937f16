"""Decide when records are committed, and run the process that commits them.

Each clone has at most one such process, which lives for about one window. Its files in the state folder:

- `committer.lock`: locked while the process lives; contains its process id.
- `commit-failed`: one line with the reason why the last commit failed, until a commit succeeds.
- `committer.off`: exists where ended processes are never reaped (a container without init). Commands commit in process
  there.
"""

from __future__ import annotations

import os
import time

from . import local_files
from .errors import GitmemError, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .repo import Repo
    from .store_index import StoreIndex

LOCK, FAILED, OFF = "committer.lock", "commit-failed", "committer.off"
SETTING = "gitmem.commitafter"
WINDOW_SECONDS = 1.0
WINDOW_SECONDS_MAX = 3600.0
SENTENCE_MAX = 500
COMMIT_SECONDS = 5.0  # how long an operation that returns its commit waits for another committing process
RETRY_SECONDS = 1.0  # pause after a failed commit, as one operation queries many times
OVERDUE_SECONDS = 10.0  # after the window; then a reader commits, as no committer is alive
REAPED_SECONDS = 30  # some systems reap ended processes only after seconds
# How urgently to sync: a reader checks for news, there is something to send, send it without delay.
IF_DUE, LATER, NOW = 0, 1, 2
# Parts of JSON lines of signals that others wait for. They cannot match in a text, where quotes are escaped.
_STREAM = "signals"
_URGENT = (b'"requires_ack":true', b'"intent":"PROPOSE"', b'"intent":"AGREE"', b'"intent":"REJECT"',
           b'"intent":"COUNTER"')  # fmt: skip
TRIES_MAX = 5  # failed commits of one process; the next command starts another process


def window(settings: Mapping[str, str], given: str | None = None) -> float:
    """Return the commit window: the number of seconds from a record to its commit.

    Args:
        settings: git's settings, with lower-case keys.
        given: A value that takes precedence, such as GITMEM_COMMIT_AFTER. Invalid numbers are ignored.
    """
    for value in (given, settings.get(SETTING)):
        try:
            seconds = float((value or "").strip().removesuffix("s"))
        except ValueError:
            continue
        if 0 <= seconds <= WINDOW_SECONDS_MAX:
            return seconds
    return WINDOW_SECONDS


def urgency(lines: Iterable[tuple[str, bytes]]) -> int:
    """Return `NOW` if a line is a proposal, a decision, or asks for one; else `LATER`."""
    for stream, line in lines:
        if stream == _STREAM and any(words in line for words in _URGENT):
            return NOW
    return LATER


def is_wanted(repo: Repo) -> bool:
    """Return whether to start a committer: none is alive, and ended processes are reaped here."""
    if is_off(repo):
        return False
    from .log.lock import Lock

    path = os.path.join(repo.state, LOCK)
    try:
        lock = Lock(path)
        if not lock.take():
            return False
        lock.release()
    except StoreError:
        return False
    return not _notice_zombie(repo, local_files.read(path))


def is_off(repo: Repo) -> bool:
    """Return whether commands must commit in process, because ended processes are never reaped here."""
    return local_files.read(os.path.join(repo.state, OFF)).strip() == b"off"


def _notice_zombie(repo: Repo, pid: bytes) -> bool:
    """Return whether process 1 never reaps ended committers.

    The first zombie is noted with the time. If the same process is still a zombie after `REAPED_SECONDS`, the answer is
    yes.
    """
    path = os.path.join(repo.state, OFF)
    noted, _, since = local_files.read(path).strip().partition(b" ")
    now = time.time()
    if noted and _is_zombie(noted) and since.isdigit():
        if now - int(since) < REAPED_SECONDS:
            return False
        content = b"off\n"
    elif _is_zombie(pid):
        content = pid.strip() + b" %d\n" % now
    else:
        if noted:
            local_files.remove_quietly(path)
        return False
    return local_files.try_replace(path, content) and content == b"off\n"


def _is_zombie(content: bytes) -> bool:
    """Return whether the last committer has ended but its parent, process 1, has not reaped it."""
    pid = content.strip()
    if not pid.isdigit() or len(pid) > 10:
        return False
    try:
        with open(f"/proc/{pid.decode()}/stat", "rb") as file:
            words = file.read(4096).rpartition(b")")[2].split()
        return words[:2] == [b"Z", b"1"]
    except (OSError, IndexError):
        return False


def run(store: StoreIndex, *, pause: Callable[[float], None] = time.sleep) -> None:
    """Commit waiting records after the window, until none wait; return at once if another process does so.

    Args:
        store: The clone's store. Its `commit_after` is the window.
        pause: Sleeps for a number of seconds.
    """
    from .log.lock import Lock

    path = os.path.join(store.repo.state, LOCK)
    failures = 0
    while failures < TRIES_MAX:
        lock = Lock(path)
        try:
            if not lock.take():
                return
        except StoreError:
            return
        with lock:
            _note_pid(path)
            pause(min(store.commit_after + (0.5 * 2**failures if failures else 0.0), WINDOW_SECONDS_MAX))
            failures = 0 if _commit(store) else failures + 1
        # A writer that found the lock taken started no committer: check again.
        if not failures and not store.waits():
            return


def _commit(store: StoreIndex) -> bool:
    """Commit waiting records. Return False on failure; the reason is saved."""
    try:
        return commit_waiting(store) is not None or not store.waits()
    except (GitmemError, OSError):
        return False


def _note_pid(path: str) -> None:
    try:
        with open(local_files.open_file(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(b"%d\n" % os.getpid())
    except OSError:
        return  # the process id is needed only in a container without init


def commit_overdue(store: StoreIndex) -> None:
    """Commit records that no committer has committed in time.

    Failure does no harm: the index already contains the lines.
    """
    if store.is_committing or time.monotonic() < store.commit_again or not _is_overdue(store):
        return
    from .log import committer

    store.is_committing = True
    try:
        rows = committer.waiting_rows(store.log)
        if commit(store, 0.0, swaps=committer.READER_SWAPS_MAX) is not None:
            store.wrote = max(store.wrote, urgency(rows))
            return
    except (GitmemError, OSError):
        pass  # a process that can write reports the error
    finally:
        store.is_committing = False
    store.commit_again = time.monotonic() + RETRY_SECONDS


def _is_overdue(store: StoreIndex) -> bool:
    files = store.log.waiting()
    if not files or not store.commit_after:
        return bool(files)
    from .log import wal_files

    oldest = time.time() - store.commit_after - OVERDUE_SECONDS
    return any(wal_files.modified_at(file) < oldest for file in files)


def commit_at_once(store: StoreIndex) -> str | None:
    """Commit the entries that were just recorded.

    A failure does not undo the record: it waits, and `store.commit_failed` has the error.
    """
    try:
        return commit(store, store.commit_seconds)
    except GitmemError as error:
        store.commit_failed = error
        return None


def commit(
    store: StoreIndex, seconds: float, *, deferred: bool = False, swaps: int | None = None
) -> str | None:
    """Commit waiting records and return a commit that contains all of them, or None if some still wait.

    Args:
        store: The clone's store.
        seconds: How long to wait for another process that is committing.
        deferred: Commit even if only deferred entries wait.
        swaps: How often to try to move the ref.

    Raises:
        StoreError: everything waits as before.
    """
    from .log import committer

    store.log.committer = store.log.committer or store.committer()
    found = committer.commit_within(store.log, seconds, deferred=deferred, swaps=swaps)
    if found is not None:
        store.commit_failed = None
        store.keep_up()
    return found


def commit_waiting(store: StoreIndex, seconds: float = 0.0, *, deferred: bool = False) -> str | None:
    """Commit waiting records as `commit` does, and save the reason of a failure.

    Raises:
        StoreError: everything waits as before.
    """
    try:
        found = commit(store, seconds, deferred=deferred)
    except (GitmemError, OSError) as error:
        save_failure(store.repo, error)
        raise
    if found is not None:
        local_files.remove_quietly(os.path.join(store.repo.state, FAILED))
    return found


def try_commit_waiting(store: StoreIndex, *, deferred: bool = False) -> str | None:
    """Commit waiting records before an answer that is correct without it. Never raise an error."""
    try:
        return commit_waiting(store, WINDOW_SECONDS, deferred=deferred)
    except (GitmemError, OSError):
        return None


def save_failure(repo: Repo, error: Exception) -> None:
    """Save the reason why a commit failed. Never raise an error."""
    message = error.message if isinstance(error, GitmemError) else str(error)
    text = " ".join(message.split())[:SENTENCE_MAX]
    content = text.encode("utf-8", "backslashreplace") + b"\n"
    local_files.try_replace(os.path.join(repo.state, FAILED), content)


def last_failure(repo: Repo) -> str:
    """Return why the last commit failed; empty if it succeeded."""
    from .text.sanitize import sanitize_for_model

    content = local_files.read(os.path.join(repo.state, FAILED))[: SENTENCE_MAX * 4]
    return sanitize_for_model(content.decode("utf-8", "replace").strip())
