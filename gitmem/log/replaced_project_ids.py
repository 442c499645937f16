"""Distinguish a log of this project whose project ids were replaced from the log of another project.

Project ids are only ever added. A commit that replaces them with ids of another project, on top of this log's history,
is pushed damage. It must be repaired and not be treated as another project's log.
"""

from __future__ import annotations

from . import log_refs, ref
from .check_budget import ANCESTORS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..git.plumbing import Git
    from ..git.port import TreeEntry
    from .local_log import LocalLog
    from .log_refs import LogTip

FOLDER_BYTES_MAX = 64 * 1024  # of a root tree or `projects/` that nothing has checked
LOST_PROJECTS = "its project ids are those of another project, and its history is that of this log"


class ProjectIds:
    """The project ids of a clone, of its log and of the histories of other logs; each is read once."""

    def __init__(self, log: LocalLog) -> None:
        self.log = log
        self._own: set[str] | None = None
        self._of: dict[str, set[str]] = {}

    def are_lost(self, tip: LogTip, accepted: LogTip | None) -> bool:
        """Return whether a log has only ids of other projects although its history is this log's.

        Args:
            accepted: The last version of the remote's shared log that passed the checks.

        Raises:
            KeyError: An object is missing.
        """
        if not tip.projects:
            return False
        git, local = self.log.git, self.log.git.tip(ref.LOG_REF)
        ours = set(accepted.projects) if accepted is not None else set()
        if local is not None:
            ours |= self.of_commit(local)
        if not ours.isdisjoint(tip.projects):
            return False
        if self._own is None:
            self._own = log_refs.own_projects(self.log)
        ours |= self._own
        if not ours.isdisjoint(tip.projects):
            return False
        if not ours:  # first contact of a shallow or empty clone: compare with the first ids of the history
            first = next((ids for ids in reversed(list(self._earlier(tip.oid))) if ids), tip.projects)
            return first.isdisjoint(tip.projects)
        tips = [local, git.tip(ref.PUBLISHED_REF), accepted.oid if accepted is not None else None]
        starts = [oid for oid in tips if oid is not None and git.has(oid)]
        return _shares_commits(git, tip.oid, starts) or any(
            not ours.isdisjoint(ids) for ids in self._earlier(tip.oid)
        )

    def _earlier(self, oid: str) -> Iterator[set[str]]:
        """Yield the project ids of a commit's ancestors along first parents, newest first."""
        for _ in range(ANCESTORS_MAX):
            parents = self.log.git.commit(oid).parents
            if not parents:
                return
            oid = parents[0]
            yield self.of_commit(oid)

    def of_commit(self, oid: str) -> set[str]:
        """Return the project ids of a commit, as `projects_of` does."""
        if (found := self._of.get(oid)) is None:
            found = self._of[oid] = projects_of(self.log.git, oid)
        return found


def projects_of(git: Git, oid: str) -> set[str]:
    """Return the project ids of a commit that nothing has checked; none if its folders are larger than any log's."""
    entry = _small_tree(git, git.commit(oid).tree).get("projects")
    return set(_small_tree(git, entry.oid)) if entry and entry.is_tree else set()


def _small_tree(git: Git, oid: str) -> Mapping[str, TreeEntry]:
    is_large = git.heads([oid]).get(oid, ("", 0))[1] > FOLDER_BYTES_MAX
    return {} if is_large else git.tree(oid)


def _shares_commits(git: Git, oid: str, starts: list[str]) -> bool:
    """Return whether a history shares more with these commits than the first commit of every log."""
    if not starts:
        return False
    own = git.history(oid, starts)
    if not own:
        return oid != ref.genesis(oid)
    inside = {*own, ref.genesis(oid)}
    return any(parent not in inside for each in own for parent in git.commit(each).parents)
