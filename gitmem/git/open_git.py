"""Which implementation of git's port a process gets: by what it reads."""

from __future__ import annotations

import os

from . import read_ref
from .safe_directory import refuse_foreign as refuse_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..repo import Repo
    from .cached_config import CachedConfig as CachedConfig
    from .cached_config import ConfigSources, GitConfig
    from .plumbing import Git as Git
    from .port import Behind as Behind
    from .port import TreeEntry as TreeEntry


class _LazyGit:
    """A port that is opened with the first question that the ref's own file does not answer: most commands ask none."""

    def __init__(self, place: Repo) -> None:
        self._place = place
        self._opened: Git | None = None

    def tip(self, ref: str) -> str | None:
        """See `Git.tip`."""
        plain = read_ref.plain_tip(self._place.common, ref) if self._opened is None else None
        return plain or self._open().tip(ref)

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Behind]:
        """See `Git.behind`; git is not asked twice."""
        from .cached_path_history import KnownBehind

        asked = list(dict.fromkeys(pairs))
        known = KnownBehind(self._place, tip, asked)
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

            _take_back(self._place)
            self._opened = Git(self._place.common)
        return self._opened


def open_port(place: Repo, *, lives_on: bool) -> Git:
    """The port to a repository's git.

    Args:
        lives_on: The process reads often: worth the import of dulwich. One that answers once and ends is
            quicker with the git program. Both write in the same way.

    Raises: StoreError `dubious-ownership`, where it is another user's and git does not trust it.
    """
    refuse_foreign(place)
    if not lives_on:
        return _LazyGit(place)  # type: ignore[return-value]  # what it lacks it asks of the one that it opens
    from .inprocess import DulwichGit

    _take_back(place)
    return DulwichGit(place.common)


def _take_back(place: Repo) -> None:
    """Take back what an earlier version keeps beside the objects."""
    if os.path.isdir(os.path.join(place.common, "gitmem", "held")):
        from . import held_objects_0_1

        held_objects_0_1.take_back(place.common)


def cached_config(place: Repo) -> CachedConfig:
    """Return what reads git's configuration of a repository. Most commands ask nothing of it, and don't load it."""
    from .cached_config import CachedConfig

    def ask(
        common: str, surroundings: ConfigSources, path: str, now: Callable[[], int]
    ) -> tuple[GitConfig, dict[str, str]]:
        from . import asked_config

        return asked_config.ask(common, surroundings, path, now)

    return CachedConfig(place.common, place.state, ask)
