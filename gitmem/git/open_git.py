"""Choose the implementation of git's port for a process, by how much it reads."""

from __future__ import annotations

from . import read_ref
from .safe_directory import reject_untrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..repo import Repo
    from .cached_config import CachedConfig as CachedConfig
    from .cached_config import ConfigSources, GitConfig
    from .plumbing import Git as Git
    from .port import PathChanges


class _LazyGit:
    """A port that opens git only for queries that ref files cannot answer: most commands make none."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._opened: Git | None = None

    def tip(self, ref: str) -> str | None:
        """See `Git.tip`."""
        plain = read_ref.plain_tip(self._repo.common, ref) if self._opened is None else None
        return plain or self._open().tip(ref)

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], PathChanges]:
        """See `Git.behind`; the answer is cached."""
        from .cached_path_history import CachedPathChanges

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
            from .plumbing import Git

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
    from .inprocess import DulwichGit

    return DulwichGit(repo.common)


def cached_config(repo: Repo) -> CachedConfig:
    """Return the cached git configuration of a repository; nothing is loaded before its first use."""
    from .cached_config import CachedConfig

    def ask(
        folder: str, sources: ConfigSources, path: str, now: Callable[[], int]
    ) -> tuple[GitConfig, dict[str, str]]:
        from . import asked_config

        return asked_config.ask(folder, sources, path, now)

    return CachedConfig(repo.common, repo.state, ask, git_dir=repo.git_dir)
