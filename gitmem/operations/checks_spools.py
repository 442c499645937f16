"""Doctor's look at spool folders outside of repositories: lines of another repository, or of one that is gone."""

from __future__ import annotations

import os

from ..log import spool_owner
from ..log.spool_files import is_private
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.spool import Spool
    from .findings import Findings
    from .store import Store


def strange(spool: Spool, found: Findings) -> None:
    """Report lines of another repository in the folder that this one's path leads to."""
    found.problem(
        "spool-of-another-repository",
        f"Accepted lines wait here that are of another repository ({_whose(spool.folder)}); none of them is committed here.",
        spool.folder,
        "Move the folder to where it can't be found by this path, or delete it if nobody needs what is in it.",
        command("ls", "-l", spool.folder),
    )


def of_others(store: Store, found: Findings) -> None:
    """Report what waits in this user's spool folders for repositories that are not where they were."""
    known = {os.path.realpath(spool.folder) for spool in store.log.spools}
    for parent in store.log.spool_parents:
        try:
            folders = [os.path.join(parent, name) for name in sorted(os.listdir(parent))]
        except OSError:
            continue
        for folder in folders:
            if os.path.realpath(folder) in known or not is_private(folder) or not _waits(folder):
                continue
            known.add(os.path.realpath(folder))
            path = spool_owner.path_in(folder)
            if path and not os.path.isdir(path):
                found.note(
                    "spool-left",
                    f"Accepted lines wait for a repository that is no longer at {path}.",
                    folder,
                    "Put that repository back where it was and run gitmem there, or delete the folder.",
                )


def _waits(folder: str) -> bool:
    return any(name.endswith(".spool") and not name.startswith("tmp-") for name in os.listdir(folder))


def _whose(folder: str) -> str:
    return spool_owner.path_in(folder) or "nothing says which"
