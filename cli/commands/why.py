"""`gitmem why`."""

from __future__ import annotations

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .. import shared_options as shared


def why(
    at: Environment,
    target: Annotated[str, typer.Argument(metavar="FILE[:LINE]|COMMIT", help=shared.WHY_TARGET.help)],
    no_inferred: Annotated[
        bool, typer.Option("--no-inferred", help="Leave out what is only inferred, by time and paths.")
    ] = False,
) -> None:
    """Show why a line or commit is as it is: who made it, on which task, what was agreed and known, and whether that holds."""
    from gitmem.history import why as operation

    from .. import after_command
    from ..render import claims as render

    is_early = after_command.look_before_answer(at)
    found = operation.why(at.store(), target, folder=at.folder, inferred=not no_inferred, is_early=is_early)
    output.answer(at.json, found, render.why)
