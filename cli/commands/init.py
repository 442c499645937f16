"""`gitmem init`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import driver
from ..options import TIMEOUT, AllowForeign, Timeout
from ..render import show, upkeep
from ..surroundings import Surroundings
from ..values import duration


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
    allow_foreign: AllowForeign = False,
    timeout: Timeout = TIMEOUT,
) -> int:
    """Set this repository up: the log, the remote's log, and the merge driver. May be repeated."""
    from gitmem.operations import init as operation

    store = at.store(lives_on=True)
    if uninstall:
        changed = driver.uninstall(store.place)
        left = operation.uninstall(store)
        lines = upkeep.uninstalled(left, changed)
        show.say_values(at.json, {**left.as_json(), "changed": changed}, lines, left.next)
        return 0
    program = driver.program()
    found = operation.init(store, publish=publish, allow_foreign=allow_foreign, timeout=duration(timeout))
    changed = driver.install(store.place)
    values = {**found.as_json(), "program": program, "changed": changed}
    show.say_values(at.json, values, upkeep.init(found, program, changed), found.next)
    return 0
