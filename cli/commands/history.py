"""`gitmem thread`, `gitmem show`, `gitmem log` and `gitmem converged`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output, signals
from ..values import duration, note_workspaces, number, parse_moment
from .inbox import note_unknown_sender

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AnyId, From, Pager, SyncToo, Thread, ThreadId, ThreadLimit, Wu

ENTRIES = 20
SYNC_EVERY_SECONDS = 5.0


def thread(at: Environment, id: AnyId, limit: ThreadLimit = None, pager: Pager = False) -> None:
    """Show a thread and the decision of each recipient. Does not mark signals as delivered."""
    from gitmem.signals import threads

    at.store().asks_once = True
    most = None if at.json and limit is None else number("--limit", limit, threads.LIMIT)
    found = threads.thread(at.store(), id, at.caller_if_any(), limit=most)
    output.answer(at.json, found, signals.thread, page=at.pager(pager))


def show(at: Environment, id: AnyId, pager: Pager = False) -> int:
    """Show one record in full, and its commit. Does not mark signals as delivered."""
    if id.startswith("mem-"):
        from .mem import listing

        return listing.show(at, id, pager=pager)
    from gitmem.signals import history

    found = history.show(at.store(), id)
    note_workspaces(at, [found.record.get("workspace_id")])
    output.answer(at.json, found, signals.one, page=at.pager(pager))
    return 0


def log(
    at: Environment,
    n: Annotated[
        str | None, typer.Option("-n", metavar="N", help="Maximum number of records (default: 20).")
    ] = None,
    wu: Wu = None,
    thread: Thread = None,
    from_: From = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="1h|ISO",
            help="Only records after this time: ISO or a duration such as 1h.",
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            "--role", metavar="ROLE", help="Only signals of or for a role, and sessions that state it."
        ),
    ] = None,
    receipts: Annotated[
        bool, typer.Option("--receipts", help="Include receipts, reads of nodes and renewals.")
    ] = False,
    audits: Annotated[
        bool,
        typer.Option(
            "--audits", help="Only passes of gates and guards, releases of others' claims, and --insist."
        ),
    ] = False,
    pager: Pager = False,
) -> None:
    """Show the history of the log, newest last."""
    from gitmem import commit_process
    from gitmem.signals import history

    most = number("-n", n, ENTRIES)
    commit_process.try_commit_waiting(at.store())  # afterwards `git log gitmem/log` shows the same records
    oldest = parse_moment(since) if since is not None else None
    found = history.log(
        at.store(),
        n=most,
        wu=wu,
        thread=thread,
        from_=from_,
        since=oldest,
        role=role,
        receipts=receipts,
        audits=audits,
    )
    note_unknown_sender(at, from_)
    output.answer(at.json, found, signals.format_history, page=at.pager(pager))


def converged(
    at: Environment,
    id: ThreadId = None,
    thread: Thread = None,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="30s", help="Wait up to this long for agreement."),
    ] = None,
    sync: SyncToo = False,
) -> int:
    """Exit 0 if all parties of a thread agreed to this proposal, or to any if the id is of something else; else 1."""
    if (id is None) == (thread is None):
        raise UsageError("Expected one thread or signal id.", next=["gitmem converged --help"])
    import time

    from gitmem import commit_process
    from gitmem.signals import change_watcher, threads

    from .. import autosync
    from ..syncing import sync_after_command

    waker = change_watcher.ChangeWatcher(at.store(), change_watcher.NeverSet(), events=False)
    deadline = time.monotonic() + (duration(wait, "--wait") if wait is not None else 0.0)
    sync_at = time.monotonic() if sync or wait is not None else deadline
    failures: list[str] = []
    while True:
        if time.monotonic() >= sync_at:
            if sync:
                failures, _, _ = sync_after_command(at)
            else:
                autosync.start(at, commit_process.IF_DUE)
            sync_at = time.monotonic() + SYNC_EVERY_SECONDS
        seen = waker.stamp()  # before the read: a signal that arrives during it counts as a change
        with at.store().one_look():
            found = threads.converged(at.store(), id or thread or "", caller=at.caller_if_any())
        if found.is_settled or time.monotonic() >= deadline:
            break
        waker.wait(seen, min(deadline, sync_at) - time.monotonic())
    if at.json:
        found.warnings += failures
    else:
        output.note(failures)
    output.answer(at.json, found, signals.converged)
    return 0 if found.converged else 1
