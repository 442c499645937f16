"""Decide whether to work in a repository: `safe.directory` (other owner), `safe.bareRepository`, and more.

gitmem passes the repository's path to git, and git then skips these checks. But a repository's config may name programs
to run, and hooks call gitmem wherever an agent works. One example is a container that shares a folder with its host.
"""

from __future__ import annotations

import os

from ..errors import StoreError, UsageError
from ..repo import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo


def reject_untrusted(repo: Repo) -> None:
    """Reject repositories that git refuses to work in.

    git itself is asked, but only if the answer could be no: it reads these settings from the user's and the system's
    config and from the environment, never from the repository's own.

    Raises:
        StoreError: `dubious-ownership` or `bare-repository`.
    """
    folder = repo.worktree or repo.common
    if repo.by_folder:
        _refuse_inside(repo.git_dir)
    if _is_ours(repo, folder) and not repo.by_folder:
        return
    from . import run

    done = run.run("", ["rev-parse", "--git-dir"], cwd=folder, check=False)
    if "dubious ownership" in done.err:
        import shlex

        allow = f"git config --global --add safe.directory {shlex.quote(folder)}"
        raise StoreError(
            f"The repository {folder} belongs to another user, and git does not trust it. Nothing was read or written.",
            hint=f"If you trust it: {allow}",
            code="dubious-ownership",
            next=[allow],
        )
    if repo.by_folder and "cannot use bare repository" in done.err:
        raise StoreError(
            f"{folder} is a bare repository, and safe.bareRepository is 'explicit'. Nothing was read or written.",
            hint="If you trust it, name it in the variable GIT_DIR, as git requires.",
            code="bare-repository",
            next=["git config --show-origin safe.bareRepository"],
        )


def _refuse_inside(folder: str) -> None:
    """Reject a bare repository inside another one's worktree.

    A commit may have added it, with a config that runs programs.
    """
    try:
        around = find(os.path.dirname(folder))
    except UsageError:
        return  # no enclosing repository
    if any(_is_below(folder, top) for top in (around.common, around.git_dir)):
        return  # the enclosing repository's git folder: no commit can add files there
    if around.worktree is None or not _is_below(folder, around.worktree):
        return
    import shlex

    raise StoreError(
        f"{folder} is a bare repository inside the work tree {around.worktree}, where a commit may have put it. Nothing was "
        "read or written.",
        hint=f"If you trust it, name it in the variable GIT_DIR: GIT_DIR={shlex.quote(folder)} gitmem ...",
        code="bare-repository",
        next=[f"gitmem -C {shlex.quote(around.worktree)} doctor"],
    )


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(os.path.join(top, ""))


def _is_ours(repo: Repo, folder: str) -> bool:
    """Return whether the git folder, the worktree and a `.git` file in it belong to this user."""
    me = os.geteuid()
    paths = {repo.common, repo.git_dir, folder}
    if repo.git_dir != os.path.join(folder, ".git") and repo.worktree is not None:
        paths.add(os.path.join(folder, ".git"))
    try:
        return all(os.lstat(path).st_uid == me for path in paths if os.path.lexists(path))
    except OSError:
        return True  # removed meanwhile: opening it reports that
