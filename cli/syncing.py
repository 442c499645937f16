"""Syncs with the usual remote: by `gitmem sync`, beside another command, and by autosync in the background (`gitmem background autosync`)."""

from __future__ import annotations

import os
import time

from gitmem.errors import UsageError

from . import background
from .environment import Environment, external_wals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.sync.sync_remotes import SyncResult


def confirm(at: Environment, question: str, refused: UsageError) -> None:
    """Ask at the terminal whether to go on.

    Args:
        refused: What to say if nobody can be asked, with the command that goes on. An agent does not get that: its user decides.

    Raises:
        UsageError: The answer is no (`not-confirmed`), or nobody can be asked.
    """
    from .render import output

    by_agent = at.is_agent()
    answer = None if by_agent else output.ask(question)
    if answer:
        return
    if answer is False:
        raise UsageError("You said no. Nothing was written.", code="not-confirmed", next=[])
    if by_agent:
        refused.hint, refused.next = "Ask your user first; then add --yes.", []
    raise refused


def sync_usual(at: Environment, timeout: float) -> SyncResult:
    """Sync with the usual remote; if nothing is new, that costs only one query of the remote."""
    from gitmem.sync import sync_remotes as operation

    repo = at.repo

    def meanwhile() -> list[str]:
        from .render import repository  # noqa: F401  (needed in a moment, and the remote takes its time)

        return [each for folders in external_wals(repo) for each in folders]

    looked = operation.check_noop(repo, meanwhile, time.time(), timeout)
    if looked is not None and looked.unchanged:
        return operation.noop_result(repo, looked, time.time(), os.urandom(1)[0] / 255)
    return operation.sync(at.store(long_lived=True), timeout=timeout, looked=looked)


def sync_after_command(at: Environment) -> tuple[list[str], bool, str]:
    """Sync with the usual remote, without consenting to anything.

    Returns:
        The errors, as sentences; whether our lines are safe there nevertheless; the command to run otherwise, or "".
    """
    from gitmem.errors import GitmemError
    from gitmem.sync import sync_remotes

    try:
        synced = sync_remotes.sync(at.store())
    except GitmemError as error:
        return [f"Not synced: {error.message}"], False, "gitmem sync"
    good = ("synced", "up-to-date")
    again = synced.next[0] if synced.status == 2 else "gitmem sync"
    if at.is_agent() and synced.status == 2:
        sync_remotes.reword_for_agent(synced)
        again = ""  # its user decides
    failures = [
        f"Not synced with {each.name}: {each.message}" for each in synced.remotes if each.state not in good
    ]
    return failures, all(each.safe for each in synced.remotes), again


LIMIT_SECONDS = 300  # for one sync with all its git processes; each of them has its own timeout
GIT_SECONDS = 30.0


def run_autosync(at: Environment) -> int:
    """Run the background process: sync once if it is due, and print nothing.

    Returns:
        0, whatever the result of the sync.

    Raises:
        StoreError: git does not trust this repository, or a commit may contain it. Nothing was written.
    """
    from gitmem.sync import sync_remotes

    repo = at.repo
    sync_remotes.refuse_untrusted(repo)
    again = [*at.same_repo_options, "background", "autosync"]
    _detach()
    if sync_remotes.run_autosync(repo, lambda: _sync_in_time(at)):
        background.start(again)
    return 0


def _detach() -> None:
    """Leave the session of the starting process, such as a shell, and its folder, which may be removed."""
    try:
        os.chdir(os.sep)
        os.setsid()
    except (OSError, AttributeError):  # already in a session of its own, or another system
        return


def _sync_in_time(at: Environment) -> SyncResult:
    """Sync, and end all git processes at the time limit.

    Raises:
        TimeoutError: It took longer than `LIMIT_SECONDS`.
    """
    import signal

    def stop(number: int, frame: object) -> None:
        raise _SyncTimeout if number != signal.SIGTERM else SystemExit(0)

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGTERM, signal.SIGALRM)]
    try:
        signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
        return sync_usual(at, GIT_SECONDS)
    except _SyncTimeout:
        raise TimeoutError from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


class _SyncTimeout(BaseException):
    """Not an Exception: code between could handle that as an error of the disk."""
