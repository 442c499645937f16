"""The root commits of a repository: what tells one project from another."""

from __future__ import annotations

import os

from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..place import Place


def root_commits(place: Place) -> set[str]:
    """The commits without parents that the HEAD of this worktree reaches.

    None where there is no commit yet, or in a shallow clone, whose roots are only where it was cut.
    """
    if os.path.exists(os.path.join(place.common, "shallow")):
        return set()
    # Of this worktree: the common folder's HEAD is the main worktree's.
    args = [f"--git-dir={place.git_dir}", "rev-list", "--max-parents=0", "HEAD", "--"]
    done = run.run(place.common, args, check=False)
    return set(done.out.decode("ascii").split()) if done.code == 0 else set()
