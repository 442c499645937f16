"""A repository: whether git trusts it, which project it belongs to, and which port reads it.

gitmem passes the repository's path to git, and git then skips its checks of `safe.directory` (other owner) and
`safe.bareRepository`. But a repository's config may name programs to run, and hooks call gitmem wherever an agent works. One
example is a container that shares a folder with its host.
"""

from __future__ import annotations

import os

from ..errors import StoreError, UsageError
from ..outcome import Struct
from ..repo import find
from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..repo import Repo
    from .config import CachedConfig as CachedConfig
    from .objects import PathChanges
    from .port import Git as Git


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
    from . import processes

    done = processes.run("", ["rev-parse", "--git-dir"], cwd=folder, check=False)
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
    from . import processes

    # HEAD of this worktree: the common folder has the main worktree's. It may have no commit yet.
    args = [f"--git-dir={repo.git_dir}", "rev-list", "--ignore-missing", "--max-parents=0", *refs, "--"]
    done = processes.run(repo.common, args, check=False)
    return set(done.out.decode("ascii").split()) if done.code == 0 else set()


def _remotes(repo: Repo) -> list[str]:
    """Return the sorted names of the remotes whose branches this clone has."""
    from . import processes

    args = ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/remotes/"]
    names = processes.run(repo.common, args, check=False).out.decode("utf-8", "surrogateescape").split("\n")
    return sorted({name.partition("/")[0] for name in names if name})


class _LazyGit(Struct):
    """A port that opens git only for queries that ref files cannot answer: most commands make none."""

    is_long_lived = False
    _repo: Repo
    _opened: Git | None = None

    def tip(self, ref: str) -> str | None:
        """See `Git.tip`."""
        plain = files.plain_tip(self._repo.common, ref) if self._opened is None else None
        return plain or self._open().tip(ref)

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], PathChanges]:
        """See `Git.behind`; the answer is cached."""
        from .branches import CachedPathChanges

        asked = list(dict.fromkeys(pairs))
        known = CachedPathChanges(self._repo, tip, asked)
        found = known.read()
        if found is None:
            found = self._open().behind(tip, asked)
            known.write(found)
        return found

    def close(self) -> None:
        """See `Git.close`."""
        if self._opened is not None:
            self._opened.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open(), name)

    def _open(self) -> Git:
        if self._opened is None:
            from .port import Git

            self._opened = Git(self._repo.common)
        return self._opened


def open_port(repo: Repo, *, long_lived: bool) -> Git:
    """Open the port to a repository's git. Both implementations write in the same way.

    Args:
        long_lived: Whether the process goes on and reads often, so that importing dulwich is worth its time. For
            one answer the git program is faster.

    Raises:
        StoreError: `dubious-ownership`, if the repository belongs to another user and git does not trust it.
    """
    reject_untrusted(repo)
    if not long_lived:
        return _LazyGit(repo)  # type: ignore[return-value]  # what it lacks it asks of the one that it opens
    from .port import DulwichGit

    return DulwichGit(repo.common)


def cached_config(repo: Repo) -> CachedConfig:
    """Return the cached git configuration of a repository; nothing is loaded before its first use."""
    from .config import CachedConfig

    return CachedConfig(repo.common, repo.state, git_dir=repo.git_dir)
