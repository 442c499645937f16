"""The root commits of a repository, which identify the project."""

from __future__ import annotations

import os

from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..repo import Repo


def root_commits(repo: Repo) -> set[str]:
    """Return the root commits that this worktree's HEAD, the clone's branches and its remote branches reach.

    A worktree of an orphan branch (`gh-pages`) belongs to the same project as the others. A remote that shares no root
    with this clone's own branches belongs to another project (a vendor's, a template's) and does not count; branches
    named `gitmem` are logs and do not count either. The set is empty without commits, and in a shallow clone, whose
    roots are only its boundary.
    """
    if os.path.exists(os.path.join(repo.common, "shallow")):
        return set()
    branches = ["--exclude=gitmem", "--branches"]
    every = _roots(repo, [*branches, "--exclude=*/gitmem", "--remotes", "HEAD"]) or _roots(repo, ["HEAD"])
    if len(every) < 2:  # most repositories have one root
        return every
    own = _roots(repo, [*branches, "HEAD"])
    found = set(own)
    for name in _remotes(repo) if own < every else ():
        theirs = _roots(repo, ["--exclude=*/gitmem", f"--remotes={name}"])
        if not own or not own.isdisjoint(theirs):
            found |= theirs
    return found


def _roots(repo: Repo, refs: Sequence[str]) -> set[str]:
    """Return the root commits that these refs reach; empty if one of them is damaged."""
    # HEAD of this worktree: the common folder has the main worktree's. It may have no commit yet.
    args = [f"--git-dir={repo.git_dir}", "rev-list", "--ignore-missing", "--max-parents=0", *refs, "--"]
    done = run.run(repo.common, args, check=False)
    return set(done.out.decode("ascii").split()) if done.code == 0 else set()


def _remotes(repo: Repo) -> list[str]:
    """Return the sorted names of the remotes whose branches this clone has."""
    args = ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/remotes/"]
    names = run.run(repo.common, args, check=False).out.decode("utf-8", "surrogateescape").split("\n")
    return sorted({name.partition("/")[0] for name in names if name})
