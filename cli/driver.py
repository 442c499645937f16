"""Our console scripts, and the installer of the merge driver under either package name (see `[tool.setuptools]`)."""

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
    # `cli` beside `merge_driver` in the checkout, `gitmem_cli` beside `gitmem_merge_driver` when installed.
    installer = import_module(__package__.replace("cli", "merge_driver") + ".install")

PROGRAM = "gitmem-merge"


def program() -> str:
    """Return the absolute path of the console script that git runs as merge driver.

    Raises:
        StoreError: The script does not exist.
    """
    beside = os.path.realpath(sys.argv[0])
    found = script(PROGRAM, beside)
    if found is None:
        raise StoreError(
            f"Program {PROGRAM} not found in the folder of gitmem ({beside}). Nothing was changed.",
            hint="Install gitmem with pip or pipx, which install this program too.",
            code="no-merge-program",
            next=["pip install gitmem-coord"],
        )
    return found


def script(name: str, beside: str) -> str | None:
    """Return the absolute path of one of our console scripts, or None.

    Args:
        beside: The running program. The script is in its folder, or in the folder where this Python installs scripts.
    """
    import sysconfig

    for folder in (os.path.dirname(beside), sysconfig.get_path("scripts")):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
