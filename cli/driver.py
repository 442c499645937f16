"""The installer of the merge driver, under whichever name it is installed: see `[tool.setuptools]`."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from gitmem.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.place import Place
    from merge_driver import install as installer
    from merge_driver.install import Status
else:
    # `cli` beside `merge_driver` in the checkout, `gitmem_cli` beside `gitmem_merge_driver` installed.
    installer = import_module(__package__.replace("cli", "merge_driver") + ".install")

PROGRAM = "gitmem-merge"


def install(place: Place) -> list[str]:
    """Have git merge the log's files by union; the files that were changed."""
    return installer.install(place, program())


def uninstall(place: Place) -> list[str]:
    return installer.uninstall(place)


def set_autosync(place: Place, value: str | None) -> list[str]:
    """Have gitmem sync by itself every so often, or not (None); the files that were changed."""
    return installer.set_autosync(place, value)


def status(place: Place) -> Status:
    return installer.status(place)


def program() -> str:
    """The absolute path of the console script that git is to run.

    Beside the script that runs now, else where this Python puts scripts.
    """
    import sysconfig

    suffix = ".exe" if os.name == "nt" else ""
    folders = [os.path.dirname(os.path.realpath(sys.argv[0])), sysconfig.get_path("scripts")]
    for folder in folders:
        path = os.path.join(folder, PROGRAM + suffix)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise StoreError(
        f"The program {PROGRAM} is not beside gitmem (looked in {' and '.join(folders)}); nothing was changed.",
        hint="Install gitmem with pip or pipx, so that its programs are there.",
        code="no-merge-program",
        next=["pip install gitmem-coord"],
    )
