"""`gitmem import lumenflow`."""

from __future__ import annotations

from ..environment import Environment
from ..render import output, repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AllowSecret, ShowProgress


def lumenflow(
    at: Environment,
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A LumenFlow project folder, or its .lumenflow/memory.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done without doing it.")
    ] = False,
    allow_secret: AllowSecret = False,
    progress: ShowProgress = False,
) -> None:
    """Import LumenFlow's memory and signals with their ids and times. Idempotent."""
    import os

    from gitmem.importers.lumenflow import import_files

    at.store(long_lived=True).progress = output.progress(progress)
    found = import_files.import_folder(
        at.store(),
        at.caller(dry_run=dry_run),
        os.path.join(at.folder, folder),
        dry_run=dry_run,
        allow_secret=allow_secret,
        typed=folder,
    )
    output.answer(at.json, found, repository.imported)
