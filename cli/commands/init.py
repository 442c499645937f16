"""`gitmem init`."""

from __future__ import annotations

from typing import Annotated

import typer

from gitmem.errors import UsageError

from .. import driver
from ..render import show, upkeep
from ..surroundings import Surroundings

PLACES = ("branch", "hidden")


def init(
    at: Surroundings,
    publish: Annotated[
        str | None,
        typer.Option(
            "--publish", metavar="branch|hidden", help="Where remotes keep the log, for all clones."
        ),
    ] = None,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Take out of git's config what init put in.")
    ] = False,
) -> int:
    """Set this repository up: the log, the remote's log, and the merge driver. May be repeated."""
    from gitmem.operations import init as operation

    if publish is not None and publish not in PLACES:
        raise UsageError(
            f"--publish is branch or hidden, not {publish!r}; nothing was changed.",
            code="bad-publish",
            suggestions=PLACES,
        )
    store = at.store(lives_on=True)
    if uninstall:
        found = operation.uninstall(store)
        driver.uninstall(store.place)
    else:
        found = operation.init(store, program=driver.program(), publish=publish)
        driver.install(store.place)
    show.say(at.json, found, upkeep.init)
    return 0
