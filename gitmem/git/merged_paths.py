"""The paths that a commit in progress changes itself, not with what is merged, picked, reverted or rebased."""

from __future__ import annotations

import os

from ..repo import read_small
from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..repo import Repo

# What git names in each of these operations. The other side of a revert is the state before the reverted commit.
_OTHERS = ("CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD^")
PARENTS_MAX = 16  # heads of a merge


def own(repo: Repo, staged: Sequence[str], index: str | None = None) -> list[str]:
    """Return the staged paths whose content is that of no side of the operation that is in progress; else all.

    Args:
        repo: The worktree in which git commits.
        staged: The paths that differ from HEAD.
        index: The file that git commits, if it is not the worktree's own.
    """
    heads = os.fsdecode(read_small(os.path.join(repo.git_dir, "MERGE_HEAD"), 4_096)).split()
    env = {"GIT_INDEX_FILE": index} if index else None
    found = list(staged)
    for other in (*heads[:PARENTS_MAX], *_OTHERS):
        args = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", other, "--"]
        done = run.run(repo.git_dir, args, env_extra=env, check=False) if found else None
        if done is not None and done.code == 0:  # otherwise there is no such side
            differing = set(os.fsdecode(done.out).split("\0"))
            found = [each for each in found if each in differing]
    return found
