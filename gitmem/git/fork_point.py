"""Find the fork point of two linear histories in process; give up after 256 commits."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .port import Commit, ObjectReads

STEPS_MIN = 32
STEPS_MAX = 256  # for more commits git is faster


class HistoryWalk:
    """The history of some commits, walked only as far back as needed."""

    def __init__(self, git: ObjectReads, *tips: str) -> None:
        self.git = git
        self._reached: set[str] = set()
        self._ends = list(tips)

    def above(
        self, oid: str, *, most: int | None = None, read: Callable[[str], Commit] | None = None
    ) -> list[str] | None:
        """Return the commits from the trunk up to `oid`, parents first; None if they are not a linear history.

        Args:
            most: Maximum number of commits to walk; `STEPS_MAX` by default.
            read: Reads a commit that may not belong to the trunk.

        Raises:
            KeyError: an object is missing.
        """
        read = read or self.git.commit
        steps = STEPS_MIN
        while steps <= (STEPS_MAX if most is None else most):
            self._walk(steps)
            line: list[str] = []
            at = oid
            while at not in self._reached and len(line) < steps:
                parents = read(at).parents
                if len(parents) > 1:
                    return None
                line.append(at)
                if not parents:
                    break  # the trunk may reach further back than walked so far
                at = parents[0]
            if at in self._reached:
                return line[::-1]
            steps *= 8
        return None

    def is_near(self, oid: str) -> bool:
        """Return whether a commit is one of the last few of this history.

        Raises:
            KeyError: an object is missing.
        """
        self._walk(STEPS_MIN)
        return oid in self._reached

    def _walk(self, steps: int) -> None:
        while self._ends and len(self._reached) < steps:
            ends = [oid for oid in self._ends if oid not in self._reached]
            self._reached.update(ends)
            self._ends = [parent for oid in ends for parent in self.git.commit(oid).parents]


def bases(git: ObjectReads, commits: Sequence[str]) -> list[str]:
    """Return the parents of some commits that are not among those commits."""
    inside = set(commits)
    parents = (parent for oid in commits for parent in git.commit(oid).parents)
    return [oid for oid in dict.fromkeys(parents) if oid not in inside]
