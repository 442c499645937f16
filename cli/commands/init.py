"""`gitmem init`."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gitmem.errors import StoreError, UsageError

from ..render import show, upkeep
from ..surroundings import Surroundings

PROGRAM = "gitmem-merge"


def init(
    at: Surroundings,
    publish: Annotated[
        str | None,
        typer.Option("--publish", metavar="branch|hidden", help="Where remotes keep the log, for all clones."),
    ] = None,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Take out of the git config what init put in.")
    ] = False,
) -> int:
    """Set this repository up: the log, the remote's log, and the merge driver. May be repeated."""
    from gitmem.operations import init as operation

    from merge_driver import install

    if publish not in (None, "branch", "hidden"):
        raise UsageError(f"--publish is branch or hidden, not {publish!r}.", code="bad-publish")
    raise NotImplementedError


def merge_program() -> str:
    """The absolute path of the console script that git is to run.

    Beside the script that runs now, else where this Python puts scripts.
    """
    import sysconfig

    suffix = ".exe" if os.name == "nt" else ""
    folders = [os.path.dirname(os.path.abspath(sys.argv[0])), sysconfig.get_path("scripts")]
    for folder in folders:
        path = os.path.join(folder, PROGRAM + suffix)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise StoreError(
        f"The program {PROGRAM} is not beside gitmem ({folders[0]}); nothing was changed.",
        hint="Install gitmem with pip or pipx, so that its programs are there.",
        code="no-merge-program",
        next=["pip install gitmem-coord"],
    )
