"""`gitmem converged`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..surroundings import Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import SyncToo, Thread

SYNC_EVERY_SECONDS = 5.0


def converged(
    at: Surroundings,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="A thread, or a signal of it.")] = None,
    thread: Thread = None,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="30s", help="Look again until they agree, so long at most."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Each AGREE must come after every proposal of the others.")
    ] = False,
    sync: SyncToo = False,
) -> int:
    """Exit 0 when every recipient of the thread's first signal stands at AGREE, else 1."""
    if (id is None) == (thread is None):
        raise UsageError("converged wants one thread or signal id.", next=["gitmem converged --help"])
    import time

    from gitmem.operations import threads, waking

    from .. import autosync
    from ..render import mail, out
    from ..syncing import sync_too
    from ..values import duration

    waker = waking.Waker(at.store(), waking.Never(), events=False)
    deadline = time.monotonic() + (duration(wait) if wait is not None else 0.0)
    sync_at = time.monotonic() if sync or wait is not None else deadline
    failures: list[str] = []
    while True:
        if time.monotonic() >= sync_at:
            if sync:
                failures, _, _ = sync_too(at)
            else:
                autosync.start(at, autosync.LOOK)
            sync_at = time.monotonic() + SYNC_EVERY_SECONDS
        seen = waker.stamp()  # before looking: what comes in between is a change
        found = threads.converged(at.store(), id or thread or "", strict=strict, caller=at.caller_if_any())
        if found.converged or time.monotonic() >= deadline:
            break
        waker.wait(seen, min(deadline, sync_at) - time.monotonic())
    if at.json:
        found.warnings += failures
    else:
        out.note(failures)
    out.answer(at.json, found, mail.converged)
    return 0 if found.converged else 1
