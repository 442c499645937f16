"""`gitmem converged`."""

from __future__ import annotations

from typing import Annotated

import typer

from gitmem.errors import UsageError

from .. import frequent
from ..options import SyncToo, Thread
from ..surroundings import Surroundings


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
    return frequent.converged(at, id or thread or "", wait=wait, strict=strict, sync=sync)
