"""The command line. No other package reads the environment or prints.

Importing it keeps modules of a project out of this process, before anything else is imported: a project may have the user
set `PYTHONPATH=src`, and have `src/json.py`; `python -m` adds the current folder itself.
"""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    sys.exit("gitmem needs Linux or macOS. On Windows, use WSL.")

COMPLETION = "_GITMEM_COMPLETE"  # the variable of a shell that asks typer for completions


def _leave_out_projects() -> None:
    """Remove from `sys.path` the folders of PYTHONPATH and the current one, except those of Python and of this program."""
    given, first = os.environ.get("PYTHONPATH"), [] if sys.flags.safe_path else sys.path[:1]
    try:
        at = os.getcwd()
        theirs = {os.path.abspath(each) for each in given.split(os.pathsep)} if given else set()
    except OSError:  # the current folder was removed
        at, theirs = "", set((given or "").split(os.pathsep))
    theirs.update(each for each in first if each in ("", at))
    if theirs:
        site = sys.modules.get("site")
        kept, python = (
            [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))],
            os.path.dirname(os.__file__),
        )
        kept += [*site.getsitepackages(), site.USER_SITE] if site is not None else []
        sys.path[:] = [
            each for each in sys.path if each not in theirs or (each or at) in kept or each.startswith(python)
        ]


_leave_out_projects()
