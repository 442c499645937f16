"""`gitmem name add|remove|list`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..render import people, show
from ..surroundings import Surroundings

OneName = Annotated[str, typer.Argument(metavar="NAME", help="1 to 64 characters.")]


def add(at: Surroundings, name: OneName) -> int:
    """Add a name to the pool."""
    from gitmem.operations import names

    show.say(at.json, names.add(at.store(), at.caller_if_any(), name), people.names)
    return 0


def remove(at: Surroundings, name: OneName) -> int:
    """Take a name out of the pool; whoever has it keeps it."""
    from gitmem.operations import names

    show.say(at.json, names.remove(at.store(), at.caller_if_any(), name), people.names)
    return 0


def listing(at: Surroundings) -> int:
    """List the pool, least recently used first."""
    from gitmem.operations import names

    show.say(at.json, names.listing(at.store()), people.names)
    return 0
