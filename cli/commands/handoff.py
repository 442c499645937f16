"""`gitmem handoff`: give your open work to another agent."""

from __future__ import annotations

from .. import shared_options as shared
from ..environment import Environment
from ..render import output
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AllowSecret, Quiet


def handoff(
    at: Environment,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help=shared.NEXT_STEPS.help)] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="NAME|role:ROLE", help=shared.HANDOFF_TO.help)
    ] = None,
    wu: Annotated[
        str | None,
        typer.Option("--wu", metavar=shared.WU.metavar, help=shared.HANDOFF_WU.help),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=shared.DRY_HANDOFF.help)] = False,
    quiet: Quiet = False,
    allow_secret: AllowSecret = False,
) -> None:
    """Offer your checkpoint, tasks, claims and open threads to another agent, who accepts them with `gitmem task take`."""
    from gitmem.handoffs import give

    from ..values import typed

    made = give.hand_over(
        at.store(),
        at.caller(),
        to,
        typed(text, "text") if text is not None else None,
        wu=wu,
        dry_run=dry_run,
        allow_secret=allow_secret,
    )
    output.answer(at.json, made, render.handoff_given, only=[made.task["task_id"]] if quiet else None)
