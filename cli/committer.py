"""The committer: start the process that commits what commands have recorded, and be it (`gitmem commit-waiting`)."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.place import Place

    from .surroundings import Surroundings


VARIABLE = "GITMEM_COMMIT_AFTER"


def window(place: Place) -> float:
    """Return after how many seconds what a command records is to be committed; 0 for before its answer.

    Only the repository's own config is looked at: the committer asks git, and waits as long as that says.
    """
    from gitmem.operations import committing
    from gitmem.place import read_config, read_small

    given = os.environ.get(VARIABLE)
    content = b"" if given else read_small(os.path.join(place.common, "config"))
    has_setting = b"commitafter" in content.lower()
    return committing.window(dict(read_config(content)) if has_setting else {}, given)


def start(at: Surroundings) -> None:
    """Have what waits committed in the background; at once by this command, where no process can be left behind."""
    from gitmem.operations import committing

    if committing.is_wanted(at.place):
        from . import background

        background.start([*at.same_place, "commit-waiting"])
    elif committing.is_off(at.place):
        run(at, at_once=True)


def run(at: Surroundings, *, at_once: bool = False) -> None:
    """Commit what waits once it has waited for the window, unless another process does, and say nothing.

    What could not be committed waits, and doctor says why.

    Args:
        at: Where.
        at_once: Commit now, without a process of its own.
    """
    from gitmem.errors import GitmemError
    from gitmem.operations import committing

    store = at.store()
    if at_once:
        try:
            committing.commit_waiting(store)
        except (GitmemError, OSError):
            pass  # it is kept
        return
    store.commit_after = committing.window(store.settings(), os.environ.get(VARIABLE))
    committing.run(store)
    store.tidy_index()
