"""Which implementation of git's port a process gets."""

from __future__ import annotations

import os

from ..git import held
from ..git.cached_config import CachedConfig as CachedConfig
from ..git.port import Behind as Behind
from ..git.port import Entry as Entry
from ..git.port import Git as Git
from ..git.trust import refuse_foreign as refuse_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..place import Place


def open_port(place: Place, *, lives_on: bool) -> Git:
    """The port to a repository's git.

    Args:
        lives_on: The process reads and writes often: worth the import of dulwich. One that answers once
            and ends is quicker with the git program.

    Raises: StoreError `dubious-ownership`, where it is another user's and git does not trust it.
    """
    refuse_foreign(place)
    held.look_after(os.path.join(place.common, "objects"))
    if lives_on:
        from ..git.inprocess import DulwichGit

        return DulwichGit(place.common)
    from ..git.plumbing import PlumbingGit

    return PlumbingGit(place.common)
