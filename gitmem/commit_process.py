"""The process that commits what waits: when it is wanted, and what it leaves for others.

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
    from collections.abc import Iterable

    from .repo import Repo

LOCK, FAILED, OFF = "committer.lock", "commit-failed", "committer.off"
WINDOW_SECONDS = 1.0
WINDOW_SECONDS_MAX = 3600.0
SENTENCE_MAX = 500
COMMIT_SECONDS = 5.0  # how long an operation that returns its commit waits for another committing process
RETRY_SECONDS = 1.0  # pause after a failed commit, as one operation queries many times
OTHERS_RETRY_SECONDS = 30.0  # the same for other processes
OVERDUE_SECONDS = 10.0  # after the window; then a reader commits, as no committer is alive
REAPED_SECONDS = 30  # some systems reap ended processes only after seconds
# How urgently to sync: a reader checks for news, there is something to send, send it without delay.
IF_DUE, LATER, NOW = 0, 1, 2
# Parts of JSON lines of signals that others wait for. They cannot match in a text, where quotes are escaped.
_STREAM = "signals"
_URGENT = (b'"requires_ack":true', b'"intent":"PROPOSE"', b'"intent":"AGREE"', b'"intent":"REJECT"',
           b'"intent":"COUNTER"')  # fmt: skip
TRIES_MAX = 5  # failed commits of one process; the next command starts another process


def window(given: str | None) -> float:
    """Return the commit window: the number of seconds from a record to its commit.

    Args:
        given: The value of GITMEM_COMMIT_AFTER. An invalid number is ignored.
    """
    try:
        seconds = float((given or "").strip().removesuffix("s"))
    except ValueError:
        return WINDOW_SECONDS
    return seconds if 0 <= seconds <= WINDOW_SECONDS_MAX else WINDOW_SECONDS


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


def note_pid(path: str) -> None:
    """Note the process that commits."""
    try:
        with open(local_files.open_file(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(b"%d\n" % os.getpid())
    except OSError:
        return  # the process id is needed only in a container without init


def save_failure(repo: Repo, error: Exception) -> None:
    """Save the reason why a commit failed. Never raise an error."""
    message = error.message if isinstance(error, GitmemError) else str(error)
    text = " ".join(message.split())[:SENTENCE_MAX]
    content = text.encode("utf-8", "backslashreplace") + b"\n"
    local_files.try_replace(os.path.join(repo.state, FAILED), content)


def has_failed_since(repo: Repo, moment: float) -> bool:
    """Return whether a commit failed after a moment, in seconds since the epoch, and none succeeded since."""
    return local_files.modified(os.path.join(repo.state, FAILED)) > moment


def last_failure(repo: Repo) -> str:
    """Return why the last commit failed; empty if it succeeded."""
    from .text.sanitize import sanitize_for_model

    content = local_files.read(os.path.join(repo.state, FAILED))[: SENTENCE_MAX * 4]
    return sanitize_for_model(content.decode("utf-8", "replace").strip())
