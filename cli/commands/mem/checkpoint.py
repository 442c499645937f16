"""`gitmem mem checkpoint`."""

from __future__ import annotations

from ...render import out
from ...render.mem import checkpoint as render
from ...surroundings import Surroundings
from ...values import typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AllowSecret, Quiet, Session, Wu


def checkpoint(
    at: Surroundings,
    note: Annotated[
        str, typer.Argument(metavar="[NOTE]", help="How far the work is; - reads standard input.")
    ] = "",
    progress: Annotated[str | None, typer.Option("--progress", metavar="TEXT", help="What is done.")] = None,
    next_steps: Annotated[
        str | None, typer.Option("--next-steps", metavar="TEXT", help="What is to be done.")
    ] = None,
    trigger: Annotated[
        str | None, typer.Option("--trigger", metavar="TEXT", help="What led to it, such as pre-compact.")
    ] = None,
    wu: Wu = None,
    session: Session = None,
    no_diff_stat: Annotated[
        bool, typer.Option("--no-diff-stat", help="Leave out what git says of the work tree.")
    ] = False,
    allow_secret: AllowSecret = False,
    quiet: Quiet = False,
) -> None:
    """Write down how far the work is. Git's diff stat goes with it, and `gitmem mem recover` shows it to whoever goes on."""
    from gitmem.operations.memory import checkpoint as operation

    created = operation.checkpoint(
        at.store(), at.caller(), typed(note, "note"), progress=progress,
        next_steps=next_steps, trigger=trigger, wu=wu, session=session, diff_stat=not no_diff_stat,
        allow_secret=allow_secret,
    )  # fmt: skip
    if quiet and not at.json:
        out.say_lines([created.node.id])
    else:
        out.answer(at.json, created, render.created)
