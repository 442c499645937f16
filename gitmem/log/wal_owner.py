"""The owner of a write-ahead log outside the repository.

The folder is found by the repository's path, and another project may have that path tomorrow (`/workspace` in
containers). A file beside the entries names their repository. The folder of another repository is neither read nor
written.
"""

from __future__ import annotations

import os

from .. import state_files
from .wal_files import sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo

NAME = "repository"


class Owner:
    """The repository whose log is open."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self._roots: frozenset[str] | None = None
        self._known: dict[str, tuple[bytes, bool]] = {}

    def mark(self, folder: str) -> None:
        """Record durably that the entries in a folder belong to this repository.

        Without the mark, or with the id of a lost clone in it, nobody would commit the entries.

        Raises:
            OSError: It cannot be written.
        """
        from .. import atomic_write
        from ..git.durable import fsync_dir

        for path in (os.path.join(self.repo.state, "clone"), self.repo.state):
            fsync_dir(path)  # syncs a file as well

        rows = [
            f"clone {self._clone()}",
            f"roots {' '.join(sorted(self._root_commits()))}",
            f"folder {self._folder()}",
            f"path {self.repo.common}",
        ]
        atomic_write.replace(os.path.join(folder, NAME), os.fsencode("\n".join(rows) + "\n"), durable=True)
        for each in (folder, os.path.dirname(folder)):
            sync_folder(each)

    def matches(self, folder: str) -> bool:
        """Return whether the entries in a folder belong to this repository; False if no owner is recorded.

        They do if the clone id is the same; else if both have a common root commit; else (in an empty or shallow
        repository that gitmem has never written to) if the git folder is the same on the disk.
        """
        content = state_files.read(os.path.join(folder, NAME))
        known = self._known.get(folder)
        if known is None or known[0] != content:
            known = self._known[folder] = (content, self._is_ours(_values(content)))
        return known[1]

    def _is_ours(self, fields: dict[str, str]) -> bool:
        clone, roots = fields.get("clone"), set(fields.get("roots", "").split())
        if clone and clone == self._clone():
            return True
        ours = self._root_commits() if roots else frozenset()
        if roots and ours:
            return not ours.isdisjoint(roots)
        return not clone and not roots and fields.get("folder") == self._folder()

    def _clone(self) -> str:
        word = state_files.read(os.path.join(self.repo.state, "clone")).decode("ascii", "replace").strip()
        return word if word.isalnum() else ""

    def _root_commits(self) -> frozenset[str]:
        if self._roots is None:
            from ..git.roots import root_commits

            self._roots = frozenset(root_commits(self.repo))
        return self._roots

    def _folder(self) -> str:
        try:
            found = os.stat(self.repo.common)
        except OSError:
            return "-"
        return f"{found.st_dev}:{found.st_ino}"


def path_in(folder: str) -> str:
    """Return the git folder that the entries of a write-ahead log came from; "" if it is not recorded."""
    return _values(state_files.read(os.path.join(folder, NAME))).get("path", "")


def _values(content: bytes) -> dict[str, str]:
    rows = (row.partition(" ") for row in os.fsdecode(content).split("\n"))
    return {name: value for name, _, value in rows if name}
