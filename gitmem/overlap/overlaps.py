"""The answer about branches that change the same files."""

from __future__ import annotations

from ..git.branch_changes import CONFLICT, SLOW, UNKNOWN
from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..git.branch_changes import Merge
    from .branches import Branch
    from .shared_files import Shared

OVERLAPS_MAX = 100
PATHS_MAX = 20  # of one pair


class Side(Outcome):
    """One of two branches.

    Attributes:
        revision: What git calls it; None for a detached HEAD, and before the first commit.
        sessions: The names of the sessions that work on it.
    """

    def __init__(self, branch: Branch) -> None:
        self.branch = decoded(branch.name)
        self.revision = decoded(branch.revision) if branch.revision is not None else None
        self.commit = branch.tip
        self.sessions = [one.name for one in branch.sessions]


class Overlap(Outcome):
    """Two branches that change the same files.

    Attributes:
        conflicts: Whether merging their commits conflicts; None if that is not known, as for uncommitted changes.
        conflicting: The files that conflict, at most `PATHS_MAX`, sorted; `more_conflicting` counts the others.
        files: All files that both change, at most `PATHS_MAX`, sorted; `more` counts the others.
        uncommitted: Those of `files` that at least one side has not committed.
    """

    def __init__(self, one: Branch, other: Branch, shared: Shared, merge: Merge | None) -> None:
        self.sides = [Side(one), Side(other)]
        state = merge.state if merge is not None else UNKNOWN
        is_known = state < SLOW and not shared.uncommitted
        self.conflicts = state == CONFLICT if is_known or state == CONFLICT else None
        self.conflicting = [decoded(path) for path in merge.paths[:PATHS_MAX]] if merge is not None else []
        self.more_conflicting = merge.count - len(self.conflicting) if merge is not None else 0
        self.files = [decoded(path) for path in shared.paths]
        self.uncommitted = [decoded(path) for path in shared.uncommitted]
        self.more = shared.count - len(shared.paths)


class Overlaps(Outcome):
    """The pairs of branches that change the same files: those that conflict first.

    Attributes:
        compared: The number of branches that were compared.
        conflicts: The number of pairs that conflict.
        sent: The ids of the signals that told sessions of conflicts.
        warnings: What was not compared, and why.
    """

    def __init__(self, default: str | None, compared: int, found: Sequence[Overlap]) -> None:
        self.default_branch = decoded(default) if default is not None else None
        self.compared = compared
        self.conflicts = sum(each.conflicts is True for each in found)
        self.overlaps = list(found[:OVERLAPS_MAX])
        self.more = len(found) - len(self.overlaps)
        self.sent: list[str] = []
        self.warnings: list[str] = []
        self.next: list[str] = []


def decoded(text: str) -> str:
    """Return a name of git's as text that can be written: bytes that are not UTF-8 are replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
