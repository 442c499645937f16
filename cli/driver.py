"""The installer of the merge driver, under whichever name it is installed (see `[tool.setuptools]`), and our console scripts."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from gitmem.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from merge_driver import install

    installer = install
else:
    # `cli` beside `merge_driver` in the checkout, `gitmem_cli` beside `gitmem_merge_driver` installed.
    installer = import_module(__package__.replace("cli", "merge_driver") + ".install")

PROGRAM = "gitmem-merge"


def program() -> str:
    """The absolute path of the console script that git is to run. StoreError where there is none."""
    beside = os.path.realpath(sys.argv[0])
    found = script(PROGRAM, beside)
    if found is None:
        raise StoreError(
            f"The program {PROGRAM} is not beside gitmem ({beside}); nothing was changed.",
            hint="Install gitmem with pip or pipx, so that its programs are there.",
            code="no-merge-program",
            next=["pip install gitmem-coord"],
        )
    return found


def script(name: str, beside: str) -> str | None:
    """The absolute path of a console script of ours; None where there is none.

    Args:
        beside: The program that runs now. Where it is not in the same folder, it may be where this Python puts scripts.
    """
    import sysconfig

    suffix = ".exe" if os.name == "nt" else ""
    for folder in (os.path.dirname(beside), sysconfig.get_path("scripts")):
        path = os.path.join(folder, name + suffix)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
