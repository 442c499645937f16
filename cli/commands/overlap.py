"""`gitmem overlap`."""

from __future__ import annotations

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .. import shared_options as shared

CONFLICTS = 1


def overlap(
    at: Environment,
    branch: Annotated[str | None, typer.Argument(metavar="BRANCH", help=shared.OVERLAP_BRANCH.help)] = None,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify", help="Tell the sessions on branches that conflict; each pair once a day at most."
        ),
    ] = False,
) -> int:
    """List branches and worktrees that change the same files; exit with 1 if two of them conflict."""
    from gitmem.history import overlap as overlaps

    from ..render import claims as render

    found = overlaps.overlap(at.store(), branch, notify=at.caller() if notify else None)
    output.answer(at.json, found, render.overlap)
    return CONFLICTS if found.conflicts else 0
