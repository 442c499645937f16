"""Syncs with the usual remote: by `gitmem sync`, beside another command, and in the background."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.sync.sync_result import SyncResult

    from .background import OpenedRepo

TIMEOUT = "30s"  # for each git process


def is_agent(at: OpenedRepo) -> bool:
    """Return whether a client's variable shows that an agent runs the command."""
    return at.client is not None or at.client_session is not None


def sync_usual(at: OpenedRepo, timeout: float) -> SyncResult:
    """Sync with the usual remote; if nothing is new, that costs only one query of the remote."""
    import os
    import time

    from gitmem.sync import sync_remotes as operation

    from .wal_folders import external_wals

    repo = at.repo

    def meanwhile() -> list[str]:
        from .render import repository  # noqa: F401  (needed in a moment, and the remote takes its time)

        written, read = external_wals(repo)
        return [*written, *read]

    looked = operation.check_noop(repo, meanwhile, time.time(), timeout)
    if looked is not None and looked.unchanged:
        return operation.noop_result(repo, looked, time.time(), os.urandom(1)[0] / 255)
    return operation.sync(at.store(long_lived=True), timeout=timeout, looked=looked)


def sync_after_command(at: OpenedRepo) -> tuple[list[str], bool, str]:
    """Sync with the usual remote, without consenting to anything.

    Returns:
        The errors, as sentences; whether our lines are safe there nevertheless; the command to run otherwise, or "".
    """
    from gitmem.errors import GitmemError
    from gitmem.sync import consent_messages, sync_remotes

    try:
        synced = sync_remotes.sync(at.store())
    except GitmemError as error:
        return [f"Not synced: {error.message}"], False, "gitmem sync"
    good = ("synced", "up-to-date")
    again = synced.next[0] if synced.status == 2 else "gitmem sync"
    if is_agent(at) and synced.status == 2:
        consent_messages.reword_for_agent(synced)
        again = ""  # its user decides
    failures = [
        f"Not synced with {each.name}: {each.message}" for each in synced.remotes if each.state not in good
    ]
    return failures, all(each.safe for each in synced.remotes), again
