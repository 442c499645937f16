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
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Agree to publish the log on these remotes, now and from now on."),
    ] = False,
    allow_foreign: AllowForeign = False,
    allow_large: Annotated[
        bool, typer.Option("--allow-large", help="Take in files of any size and number.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair a log branch that every clone leaves out.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree to a forced push if the repair needs one.")
    ] = False,
    timeout: Timeout = TIMEOUT,
    auto: Annotated[bool, typer.Option("--auto", hidden=True)] = False,
) -> int:
    """Fetch what other machines wrote, and push what was written here once you have agreed to publish."""
    return syncing.sync(
        at,
        *(remotes or ()),
        all=all,
        publish=publish,
        allow_foreign=allow_foreign,
        allow_large=allow_large,
        repair=repair,
        yes=yes,
        timeout=timeout,
        auto=auto,
    )
