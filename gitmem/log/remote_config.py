"""Whether there is a remote at all, without a process of git for each question."""

from __future__ import annotations

import os

from ..place import read_config, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..place import Place
    from .port import Git

REMOTES = r"^remote\..*\.url$"


class HasRemote:
    """Say whether git config has a remote with a URL.

    The repository's own config is read first. Where it names no remote git is asked, once for each state of that file: an
    included or a user's config that changes meanwhile is seen by the next process.
    """

    def __init__(self, place: Place, git: Git) -> None:
        self._files = [os.path.join(place.common, "config"), os.path.join(place.git_dir, "config.worktree")]
        self._git = git
        self._stamps: object = None
        self._known = False

    def __call__(self) -> bool:
        stamps = [_stamp(path) for path in self._files]
        if self._stamps is None or self._stamps != stamps:
            self._known = self._is_plain() or bool(self._git.config(REMOTES))
            self._stamps = stamps
        return self._known

    def _is_plain(self) -> bool:
        return any(
            key.startswith("remote.") and key.endswith(".url") and value
            for key, value in read_config(read_small(self._files[0]))
        )


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
