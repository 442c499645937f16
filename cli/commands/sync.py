"""`gitmem sync`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import TIMEOUT, AllowForeign, Timeout
from ..render import show, upkeep
from ..surroundings import Surroundings
from ..values import duration


def sync(
    at: Surroundings,
    remotes: Annotated[
        list[str] | None, typer.Argument(metavar="REMOTE", help="Remotes; the branch's upstream if none.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All remotes.")] = False,
    allow_foreign: AllowForeign = False,
    timeout: Timeout = TIMEOUT,
) -> int:
    """Fetch what other machines wrote, and push what was written here."""
    from gitmem.operations import sync as operation

    synced = operation.sync(
        at.store(lives_on=True),
        remotes or (),
        all=all,
        allow_foreign=allow_foreign,
        timeout=duration(timeout),
    )
    show.say(at.json, synced, upkeep.sync)
    return int(synced.status)
