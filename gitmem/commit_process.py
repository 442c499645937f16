"""When what is recorded is committed, and the process that does it: one for a clone, alive for about a window.

`<state>/committer.lock` is locked while it lives; its content is the process id. `<state>/commit-failed` has why the last
commit did not come about, one line, until one does. `<state>/committer.off` is there where ended processes are never
removed from the process table (a container without init): commands commit by themselves there.
"""

from __future__ import annotations

import os
import time

from . import atomic_write
from .errors import GitmemError, StoreError
from .repo import read_small

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
COMMIT_SECONDS = 5.0  # how long an answer that names its commit waits for another process that commits
AGAIN_SECONDS = 1.0  # one answer looks many times: what can't be committed now is left for a while
OVERDUE_SECONDS = 10.0  # beyond the window: then there is no committer, and a reader commits
REAPED_SECONDS = 30  # some systems take note of ended processes only after seconds
LOOK, LATER, NOW = 0, 1, 2  # somebody looks for news; there is something to sync; it is not to wait
# The lines of signals that others wait for, as their JSON form has it; a quote inside of a text is escaped there.
_STREAM = "signals"
_URGENT = (b'"requires_ack":true', b'"intent":"PROPOSE"', b'"intent":"AGREE"', b'"intent":"REJECT"',
           b'"intent":"COUNTER"')  # fmt: skip
TRIES_MAX = 5  # of one process, where the commit fails; the next command starts another one


def window(settings: Mapping[str, str], given: str | None = None) -> float:
    """Return after how many seconds what is recorded is to be committed.

    Args:
        settings: git's settings, with keys in small letters.
        given: A value that wins over them, such as of GITMEM_COMMIT_AFTER. What is no number of seconds is ignored.
    """
    for value in (given, settings.get(SETTING)):
        try:
            seconds = float((value or "").strip().removesuffix("s"))
        except ValueError:
            continue
        if 0 <= seconds <= WINDOW_SECONDS_MAX:
            return seconds
    return WINDOW_SECONDS


def soon(lines: Iterable[tuple[str, bytes]]) -> int:
    """`NOW` where one of the lines is a proposal, a decision, or asks for one; else `LATER`."""
    for stream, line in lines:
        if stream == _STREAM and any(words in line for words in _URGENT):
            return NOW
    return LATER


def is_wanted(place: Repo) -> bool:
    """Return whether a committer is to be started: none is alive, and ended processes do not stay here for good."""
    if is_off(place):
        return False
    from .log.lock import Lock

    path = os.path.join(place.state, LOCK)
    try:
        lock = Lock(path)
        if not lock.take():
            return False
        lock.release()
    except StoreError:
        return False
    return not _notice_zombie(place, read_small(path))


def is_off(place: Repo) -> bool:
    """Return whether commands have to commit by themselves, as ended processes stay here for good."""
    return read_small(os.path.join(place.state, OFF)).strip() == b"off"


def _notice_zombie(place: Repo, pid: bytes) -> bool:
    """Return whether process 1 never takes note of committers that have ended: one is still there after a while.

    The first that is seen is written down with the time; whoever finds it as it was later than `REAPED_SECONDS` knows.
    """
    path = os.path.join(place.state, OFF)
    noted, _, since = read_small(path).strip().partition(b" ")
    now = time.time()
    if noted and _is_zombie(noted) and since.isdigit():
        if now - int(since) < REAPED_SECONDS:
            return False
        content = b"off\n"
    elif _is_zombie(pid):
        content = pid.strip() + b" %d\n" % now
    else:
        if noted:
            atomic_write.drop(path)
        return False
    try:
        atomic_write.replace(path, content)
    except OSError:
        return False
    return content == b"off\n"


def _is_zombie(content: bytes) -> bool:
    """Return whether the last committer has ended and nobody has taken note of it: its parent never will."""
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
    """Commit what waits when it has waited for the window, until nothing waits; unless another process does.

    Args:
        store: The clone's store. Its `commit_after` is the window.
        pause: Waits so many seconds.
    """
    from .log.lock import Lock

    path = os.path.join(store.place.state, LOCK)
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
        # A writer that found the lock taken has started nobody: look again.
        if not failures and not store.waits():
            return


def _commit(store: StoreIndex) -> bool:
    """Commit what waits. False where that failed; why is kept."""
    try:
        return commit_waiting(store) is not None or not store.waits()
    except (GitmemError, OSError):
        return False


def _note_pid(path: str) -> None:
    try:
        with open(path, "r+b") as file:
            file.write(b"%d\n" % os.getpid())
            file.truncate()
    except OSError:
        return  # only a container without init needs it


def commit_overdue(store: StoreIndex) -> None:
    """Commit what no committer has come for. Who can't is none the worse: the index has its lines."""
    if store.is_committing or time.monotonic() < store.commit_again or not _is_overdue(store):
        return
    from .log import committer

    store.is_committing = True
    try:
        rows = committer.rows_waiting(store.log)
        if commit(store, 0.0, swaps=committer.SWAPS_OF_A_READER) is not None:
            store.wrote = max(store.wrote, soon(rows))
            return
    except (GitmemError, OSError):
        pass  # whoever may write will say what is wrong
    finally:
        store.is_committing = False
    store.commit_again = time.monotonic() + AGAIN_SECONDS


def _is_overdue(store: StoreIndex) -> bool:
    files = store.log.waiting()
    if not files or not store.commit_after:
        return bool(files)
    from .log import wal_files

    oldest = time.time() - store.commit_after - OVERDUE_SECONDS
    return any(wal_files.changed(file) < oldest for file in files)


def commit_at_once(store: StoreIndex) -> str | None:
    """Commit what was just recorded, which no failure undoes: then it waits, and `store.commit_failed` says why."""
    try:
        return commit(store, COMMIT_SECONDS)
    except GitmemError as error:
        store.commit_failed = error
        return None


def commit(
    store: StoreIndex, seconds: float, *, deferred: bool = False, swaps: int | None = None
) -> str | None:
    """Commit what waits: a commit that has all of it, or None where something still waits.

    Args:
        store: The clone's store.
        seconds: How long to wait for another process that commits.
        deferred: Also where nothing but deferred entries wait.
        swaps: How often to try to move the ref.

    Raises: StoreError; then everything waits as before.
    """
    from .log import committer

    store.log.committer = store.log.committer or store.committer()
    found = committer.commit_within(store.log, seconds, deferred=deferred, swaps=swaps)
    if found is not None:
        store.commit_failed = None
        store.keep_up()
    return found


def commit_waiting(store: StoreIndex, seconds: float = 0.0, *, deferred: bool = False) -> str | None:
    """Commit what waits, and keep why where that fails: see `commit`.

    Raises: StoreError; then everything waits as before.
    """
    try:
        found = commit(store, seconds, deferred=deferred)
    except (GitmemError, OSError) as error:
        fail(store.place, error)
        raise
    if found is not None:
        atomic_write.drop(os.path.join(store.place.state, FAILED))
    return found


def commit_first(store: StoreIndex, *, deferred: bool = False) -> str | None:
    """Commit what waits, for an answer that is better with it and right without: see `commit_waiting`. Never an error."""
    try:
        return commit_waiting(store, WINDOW_SECONDS, deferred=deferred)
    except (GitmemError, OSError):
        return None


def fail(place: Repo, error: Exception) -> None:
    """Keep why a commit did not come about. Never an error."""
    message = error.message if isinstance(error, GitmemError) else str(error)
    text = " ".join(message.split())[:SENTENCE_MAX]
    try:
        atomic_write.replace(
            os.path.join(place.state, FAILED), text.encode("utf-8", "backslashreplace") + b"\n"
        )
    except OSError:
        return


def last_failure(place: Repo) -> str:
    """Return why the last commit did not come about; empty where it did."""
    from .text.sanitize import sanitize_for_model

    content = read_small(os.path.join(place.state, FAILED))[: SENTENCE_MAX * 4]
    return sanitize_for_model(content.decode("utf-8", "replace").strip())
