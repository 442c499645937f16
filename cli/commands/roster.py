"""`gitmem roster` and `gitmem whoami`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import frequent
from ..options import Everyone
from ..render import people, show
from ..surroundings import Surroundings


def roster(
    at: Surroundings,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A name, or something like it.")
    ] = None,
    all: Everyone = False,
) -> int:
    """List the sessions: who is at work, on what, where, and seen when."""
    return frequent.roster(at, query, all=all)


def whoami(at: Surroundings) -> int:
    """Who you are here, and what others see of you."""
    from gitmem.operations import roster as operation

    show.say(at.json, operation.whoami(at.store(), at.caller()), people.whoami)
    return 0
