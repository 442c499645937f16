"""`gitmem agents-md`."""

from __future__ import annotations

import os

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output, repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer


def agents_md(
    at: Environment,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The file (default: AGENTS.md of this working tree)."),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Add the instructions to FILE between markers, or update them."),
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the instructions from FILE.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 if the instructions are missing or of another version.")
    ] = False,
) -> int:
    """Print gitmem's instructions for agents, or write them to AGENTS.md."""
    from gitmem.clients import agents_md as operation

    wanted = [verb for verb, is_wanted in
              ((operation.write, write), (operation.remove, remove), (operation.check, check)) if is_wanted]  # fmt: skip
    if len(wanted) > 1 or (file is not None and not wanted):
        raise UsageError(
            "--write, --remove and --check are mutually exclusive. Nothing was written."
            if wanted
            else f"No action given for {file}. Nothing was written.",
            hint="Choose one: --write adds the instructions, --remove removes them, --check checks them.",
            next=["gitmem agents-md --write"],
        )
    if not wanted:
        found = operation.show()
        if at.json:
            output.answer(True, found, repository.agents_md_block)
        else:  # the lines alone, so that they can be piped into a file
            output.write_lines([str(found.text).rstrip("\n")])
        return 0
    if file is None:
        path = operation.default(at.trusted_repo().worktree)
        named = os.path.relpath(path, at.folder)
    else:
        path, named = os.path.join(at.folder, file), file
        operation.refuse_outside(path, _worktree(at), writes=write)
    found = wanted[0](path, named, typed=file is not None)
    output.answer(at.json, found, repository.agents_md_block)
    return int(check and found.state != "current")


def _worktree(at: Environment) -> str | None:
    """Return the top of the work tree; None outside of one, where FILE can still be given."""
    try:
        return at.trusted_repo().worktree
    except UsageError:
        return None
