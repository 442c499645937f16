"""The root commits of the user's own history: what tells one project from another."""

from __future__ import annotations

import os

from .run import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..place import Place


def root_commits(place: Place) -> set[str]:
    """The commits without parents that HEAD reaches; none without commits, or in a shallow clone."""
    if os.path.exists(os.path.join(place.common, "shallow")):
        return set()
    found = run(place.git_dir, ["rev-list", "--max-parents=0", "HEAD", "--"], check=False)
    return set(found.out.decode().split()) if found.code == 0 else set()
