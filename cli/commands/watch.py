"""`gitmem watch`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import frequent
from ..surroundings import Surroundings


def watch(
    at: Surroundings,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="WHO", help="Whose signals: a session id, identity or live name."),
    ] = None,
    sync: Annotated[
        str | None, typer.Option("--sync", metavar="10s", help="Sync with the remote, so often.")
    ] = None,
    exec_: Annotated[
        str | None,
        typer.Option(
            "--exec", metavar="CMD", help="Run it by sh for each signal sent to you; JSON on stdin."
        ),
    ] = None,
    exec_limit: Annotated[
        str | None, typer.Option("--exec-limit", metavar="60s", help="How long CMD may take; 60s.")
    ] = None,
    write: Annotated[
        str | None, typer.Option("--write", metavar="FILE", help="Keep the last signals in a file, too.")
    ] = None,
) -> int:
    """Show signals as they come, each once, until Ctrl-C; with --json one a line."""
    return frequent.watch(at, session=session, sync=sync, exec_=exec_, exec_limit=exec_limit, write=write)
