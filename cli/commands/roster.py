"""`gitmem roster` and `gitmem whoami`."""

from __future__ import annotations

from ..render import out, people
from ..surroundings import Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import Everyone


def roster(
    at: Surroundings,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A name, or something like it.")
    ] = None,
    all: Everyone = False,
) -> None:
    """List the sessions: who is at work, on what, where, and seen when."""
    from gitmem.operations import roster as operation

    out.answer(
        at.json, operation.roster(at.store(), query, all=all, caller=at.caller_if_any()), people.roster
    )


def whoami(at: Surroundings) -> None:
    """Who you are here, and what others see of you."""
    from gitmem.operations import roster as operation

    at.store().asks_once = True
    out.answer(at.json, operation.whoami(at.store(), at.caller()), people.whoami)
