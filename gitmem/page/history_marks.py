"""The user's commits and branches on the page."""

from __future__ import annotations

import time

from ..commits import commit_view, made_by
from ..errors import GitmemError
from ..git import user_history
from ..overlap import compare
from ..overlap.branches import Refs
from ..overlap.overlaps import decoded
from .texts import put, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..commits.made_by import Makers
    from ..git.user_history import UserCommit
    from ..signals.many_threads import Selection
    from ..store import Store
    from .board_contract import BranchOverlap
    from .contract import BranchTip, CommitMark
    from .lanes import Lanes

COMMITS_MAX = 2_000
BRANCHES_MAX = 200
OF_COMMIT_MAX = 5  # branches that are named
OVERLAPS_MAX = 100
PATHS_MAX = 20
OVERLAP_SECONDS = 3.0
MAKER_SECONDS = 1.0  # for finding who made the commits


class HistoryMarks:
    """The commits and branches of the page.

    Attributes:
        commits: The newest, the oldest of them first.
        branches: Those whose tip is one of them, the newest first.
        omitted: How many branches are left out.
        is_cut: Whether there may be older commits.
        notes: Sentences on what could not be read.
    """

    def __init__(self, store: Store, only: Selection, lanes: Lanes) -> None:
        self._lanes = lanes
        self.commits: list[CommitMark] = []
        self.branches: list[BranchTip] = []
        self.notes: list[str] = []
        self.is_cut = False
        self.omitted = 0
        try:
            self._add(store, (only.since or 0) // 1_000)
        except GitmemError as error:
            self.notes.append(f"The commits are left out: {error.message}")

    def _add(self, store: Store, since: int) -> None:
        refs = Refs(store)
        names: dict[str, list[str]] = {}
        for name, oid in refs.local.items():
            names.setdefault(oid, []).append(name)
        for name, of in refs.remote.items():
            for remote, oid in of.items():
                if refs.local.get(name) != oid:
                    names.setdefault(oid, []).append(f"{remote}/{name}")
        head = store.head()[0]
        found = user_history.newest(
            store.repo.common, [*refs.commits(), *([head] if head else [])], COMMITS_MAX
        )
        self.is_cut = len(found) == COMMITS_MAX
        makers = self._makers(store, found)
        for commit in found:
            at = commit.seconds * 1_000
            own = [short(decoded(each)) for each in names.get(commit.oid, ())]
            self.branches += [{"name": each, "commit": commit.oid, "at": at} for each in own]
            if at >= since:
                on = own or [short(decoded(each)) for each in names.get(commit.tip, ())]
                mark: CommitMark = {
                    "id": commit.oid,
                    "at": at,
                    "author": short(commit.author),
                    "subject": short(commit.subject),
                    "branches": on[:OF_COMMIT_MAX],
                }
                self._put_maker(mark, makers.get(commit.oid))
                put(mark, "person", self._lanes.of_person(commit.mail))
                self.commits.append(mark)
        self.commits.reverse()
        self.omitted = max(0, len(self.branches) - BRANCHES_MAX)
        del self.branches[BRANCHES_MAX:]

    def _makers(self, store: Store, commits: Sequence[UserCommit]) -> dict[str, Makers]:
        """Return who made the commits that have records, as far as the time allows, the newest first."""
        db, until = store.db(), time.monotonic() + MAKER_SECONDS
        recorded = {commit for commit, _ in commit_view.known(db, [each.oid for each in commits])}
        here = made_by.MadeHere(store.repo)
        found: dict[str, Makers] = {}
        for commit in commits:
            if commit.oid in recorded:
                if time.monotonic() > until:
                    self.notes.append("Who made older commits is left out: their records are too many.")
                    break
                found[commit.oid] = made_by.find(db, commit.oid, committed=commit.seconds, here=here)
        return found

    def _put_maker(self, mark: CommitMark, found: Makers | None) -> None:
        """Set who made a commit, if that is one session: nobody is guessed."""
        if found is None or len(found.made) != 1 or not found.is_whole:
            return
        (line,) = found.made.values()
        made = line.record
        mark["agent"] = self._lanes.of(made["sender_identity"], None, made.get("sender_name"))
        put(mark, "session", made.get("sender_session"))
        put(mark, "wu", made.get("wu_id"))
        put(mark, "task", made.get("task_id"))
        if found.is_inferred:
            mark["inferred"] = True
        if not line.is_own:
            mark["foreign"] = True


def overlaps(store: Store, notes: list[str]) -> list[BranchOverlap]:
    """Return the branches that change the same files, those that conflict first.

    Args:
        store: The log.
        notes: Receives a sentence if they can't be compared, or are too many.
    """
    try:
        found = compare.overlap(store, seconds=OVERLAP_SECONDS)
    except GitmemError as error:
        notes.append(f"Branches were not compared: {error.message}")
        return []
    rows: list[BranchOverlap] = []
    for each in found.overlaps[:OVERLAPS_MAX]:
        row: BranchOverlap = {
            "branches": [short(side.branch) for side in each.sides],
            "paths": [short(path) for path in (each.conflicting or each.files)[:PATHS_MAX]],
        }
        if each.conflicts is not None:
            row["conflicts"] = each.conflicts
        rows.append(row)
    if len(found.overlaps) > len(rows):
        notes.append(f"Of the branches that overlap, {len(found.overlaps) - len(rows):,} pairs are left out.")
    return rows
