"""`gitmem sync`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import syncing
from ..options import TIMEOUT, AllowForeign, Timeout
from ..surroundings import Surroundings


def sync(
    at: Surroundings,
    remotes: Annotated[
        list[str] | None, typer.Argument(metavar="REMOTE", help="Remotes; the branch's upstream if none.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All remotes.")] = False,
    allow_foreign: AllowForeign = False,
    timeout: Timeout = TIMEOUT,
    auto: Annotated[bool, typer.Option("--auto", hidden=True)] = False,
) -> int:
    """Fetch what other machines wrote, and push what was written here."""
    return syncing.sync(
        at, *(remotes or ()), all=all, allow_foreign=allow_foreign, timeout=timeout, auto=auto
    )
