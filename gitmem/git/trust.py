"""Whether git would work in a repository that belongs to another user (`safe.directory`).

Git would be told where the repository is, and then asks nobody; but its config may name programs to run, and
hooks call gitmem wherever an agent stands. A container that shares a folder with its host is such a case.
"""

from __future__ import annotations

import os

from ..errors import StoreError
from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..place import Place


def refuse_foreign(place: Place) -> None:
    """StoreError `dubious-ownership` where git refuses the repository as somebody else's."""
    folder = place.worktree or place.common
    if not hasattr(os, "geteuid"):  # Windows
        return
    me = os.geteuid()
    try:
        if os.stat(place.common).st_uid == me and os.stat(folder).st_uid == me:
            return
    except OSError:
        return
    done = run.run("", ["rev-parse", "--git-dir"], cwd=folder, check=False)
    if "dubious ownership" in done.err:
        import shlex

        allow = f"git config --global --add safe.directory {shlex.quote(folder)}"
        raise StoreError(
            f"The repository {folder} belongs to another user, and git does not trust it; nothing was read or written.",
            hint=f"If you trust it: {allow}",
            code="dubious-ownership",
            next=[allow],
        )
