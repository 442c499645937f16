"""`gitmem task tree` and `stats`: all tasks at a glance."""

from __future__ import annotations

from ..environment import Environment
from ..render import output
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import OfInitiative, Wu


def tree(
    at: Environment,
    id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Only this task and those within it; an id or a prefix."),
    ] = None,
    wu: Wu = None,
    initiative: OfInitiative = None,
    limit: Annotated[
        str | None, typer.Option("--limit", metavar="N", help="Maximum number of tasks (default: 200).")
    ] = None,
) -> None:
    """List tasks by initiative and work unit, each above those that were written within it."""
    from gitmem.tasks import task_tree

    from ..values import number

    found = task_tree.tree(
        at.store(), id, wu=wu, initiative=initiative, limit=number("--limit", limit, task_tree.LISTED)
    )
    output.answer(at.json, found, render.tree)


def stats(at: Environment, wu: Wu = None, initiative: OfInitiative = None) -> None:
    """Count tasks by state, outcome and role, and how long they wait and take."""
    from gitmem.tasks import task_stats

    output.answer(at.json, task_stats.stats(at.store(), wu=wu, initiative=initiative), render.stats)
