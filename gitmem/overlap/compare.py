"""Compare branches: the files that two of them change, and where merging them conflicts.

Nothing of the user's is written: git works in a temporary repository (`git/scratch.py`), without the network.
"""

from __future__ import annotations

import time

from ..errors import GitmemError, StoreError, UsageError
from ..git import branch_changes as changes
from ..git.scratch import ScratchRepository, make_parent
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import branches, notices
from .cache import OverlapCache
from .overlaps import PATHS_MAX, Overlap, Overlaps, decoded
from .shared_files import SharedFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..agents.caller import Caller
    from ..store import Store
    from .branches import Branch
    from .shared_files import Shared

    Pair = tuple[str, str]

SECONDS = 10.0  # for all runs of git
PAIRS_MAX = 2_000  # that git merges in one call


class Comparison:
    """One comparison of a clone's branches.

    Args:
        store: The open store.
        seconds: The limit for all runs of git together.
        pairs_max: The greatest number of pairs that git merges.
    """

    def __init__(self, store: Store, *, seconds: float = SECONDS, pairs_max: int = PAIRS_MAX) -> None:
        self.store = store
        self.warnings: list[str] = []
        self._until = time.monotonic() + seconds
        self._pairs_max = pairs_max
        self._refs = branches.Refs(store)
        self.default = self._refs.default
        self._default_tips = self._refs.default_tips()
        self._cache = OverlapCache(store.repo.state, self._default_tips)
        self._scratch: ScratchRepository | None = None
        self.branches: list[Branch] = []

    def remaining(self) -> float:
        """Return the seconds that are left for git."""
        return self._until - time.monotonic()

    def run(self) -> list[tuple[Branch, Branch, Shared, changes.Merge | None]]:
        """Return the pairs that change the same files.

        Raises:
            UsageError: `no-default-branch`: there are several branches, and nothing says which is the default one.
            StoreError: git can't be used, or gitmem's folder can't be written.
        """
        try:
            return self._compare()
        finally:
            if self._scratch is not None:
                self._scratch.__exit__()

    def _compare(self) -> list[tuple[Branch, Branch, Shared, changes.Merge | None]]:
        if len(self._refs.names()) > 1:
            branches.need_default(self._refs)
        commits = self._refs.commits()
        self._learn_tips(commits)
        held = branches.sessions_by_branch(self.store)
        places, warnings = branches.checkouts(self.store, self.remaining)
        self.warnings += warnings
        self._learn_tips([place.head for place in places if place.head is not None])
        now = self.store.now() // 1_000_000
        self.branches, more = branches.select(self._refs, self._cache.tips, held, places, now)
        if more:
            self.warnings.append(
                f"{more} recent branches were left out: at most {branches.BRANCHES_MAX} are compared."
            )
        for branch in self.branches:
            branch.changed = self._changed(branch)
        shared = SharedFiles(self.branches, PATHS_MAX, self.remaining)
        if shared.is_cut:
            self.warnings.append("Not all pairs of branches were compared: they share too many files.")
        merges = self._merges(shared.committed())
        self._cache.tips = {
            oid: tip for oid, tip in self._cache.tips.items() if oid in {*commits, *self._tips()}
        }
        self._cache.write(self._tips())
        found = []
        for (one, other), each in shared.pairs.items():
            a, b = self.branches[one], self.branches[other]
            merge = merges.get((a.tip or "", b.tip or "")) if each.committed else None
            if merge is None or merge.state != changes.CONTAINED or each.uncommitted:
                found.append((a, b, each, merge))
        return found

    def _tips(self) -> set[str]:
        return {branch.tip for branch in self.branches if branch.tip is not None}

    def scratch(self) -> ScratchRepository:
        """Return the temporary repository, which is made at the first call."""
        if self._scratch is None:
            repo = self.store.repo
            try:
                made = ScratchRepository(repo.common, make_parent(repo.state))
                self._scratch = made.__enter__()
            except OSError as error:
                raise StoreError(
                    f"Branches cannot be compared: {repo.state} cannot be written ({error.strerror}). Nothing was changed.",
                    hint="Check its permissions and the disk.",
                    next=["gitmem doctor"],
                ) from error
            for oid in self._default_tips[:1]:
                self._scratch.use_attributes(oid)
        return self._scratch

    def _learn_tips(self, oids: Sequence[str]) -> None:
        new = [oid for oid in dict.fromkeys(oids) if oid not in self._cache.tips]
        if new:
            self._cache.tips |= changes.tips(self.scratch(), new, SECONDS)

    def _seconds(self) -> float:
        return max(0.01, self.remaining())

    def _changed(self, branch: Branch) -> list[str]:
        """Return the files that a branch changed since its merge base with the default branch."""
        tip = branch.tip
        if tip is None or tip in self._default_tips or branch.name == self.default:
            return []
        known = self._cache.files
        if tip not in known:
            if tip not in self._cache.tips:
                self.warnings.append(f"{sanitize(branch.name)} was left out: its commit is missing here.")
                return []
            if self.remaining() <= 0:
                self.warnings.append(f"{sanitize(branch.name)} was left out: there was no time.")
                return []
            try:
                known[tip] = self._files_since_base(tip)
            except changes.TooManyFilesError:
                known[tip] = None
            except (KeyError, GitmemError):
                self.warnings.append(f"{sanitize(branch.name)} was left out: git could not compare it.")
                return []
        files = known[tip]
        if files is None:
            self.warnings.append(
                f"{sanitize(branch.name)} was left out: it changes more than {changes.FILES_MAX:,} files,"
                f" or has no commit in common with {sanitize(self.default or '')}."
            )
        return files or []

    def _files_since_base(self, tip: str) -> list[str] | None:
        base = changes.merge_base(self.scratch(), tip, self._default_tips, self._seconds())
        if base is None:
            return None
        files = changes.changed_files(self.scratch(), base, tip, self._seconds())
        if files is None:
            raise KeyError(tip)
        return files

    def _merges(self, wanted: Sequence[Shared]) -> Mapping[Pair, changes.Merge]:
        """Return the merges of the pairs, from the cache or from git; pairs that were not merged are missing."""
        pairs = [self._pair(each) for each in wanted]
        merges = self._cache.merges
        same = {pair: changes.Merge(changes.CONTAINED) for pair in pairs if pair[0] == pair[1]}
        new = [pair for pair in dict.fromkeys(pairs) if pair not in merges and pair not in same]
        if new:
            try:
                found = changes.merges(
                    self.scratch(), new[: self._pairs_max], self._cache.tips, self.remaining
                )
                merges.update(found)
            except changes.NoMergeTreeError:
                self.warnings.append(
                    f"Conflicts were not checked: git {changes.STDIN_SINCE} or newer is needed, and this is"
                    f" {sanitize(self.store.git.version())}."
                )
                return same
        missing = sum(
            pair not in same and (pair not in merges or merges[pair].state >= changes.SLOW)
            for pair in dict.fromkeys(pairs)
        )
        if missing:
            self.warnings.append(
                f"{missing} pairs of branches were not merged: there was no time, or objects are missing here."
                " The next call continues."
            )
        return {**merges, **same}

    def _pair(self, shared: Shared) -> Pair:
        return self.branches[shared.one].tip or "", self.branches[shared.other].tip or ""


def overlap(
    store: Store,
    branch: str | None = None,
    *,
    notify: Caller | None = None,
    seconds: float = SECONDS,
    pairs_max: int = PAIRS_MAX,
) -> Overlaps:
    """Return the pairs of branches that change the same files, those that conflict first.

    Args:
        branch: Only pairs with this branch.
        notify: Who tells the sessions on branches that conflict; None to tell nobody.
        seconds: The limit for all runs of git together.
        pairs_max: The greatest number of pairs that git merges.

    Raises:
        UsageError: `no-default-branch`; `unknown-branch`: it was not compared. Nothing was written.
        StoreError: git can't be used, gitmem's folder can't be written, or a signal can't be recorded.
    """
    comparison = Comparison(store, seconds=seconds, pairs_max=pairs_max)
    rows = comparison.run()
    names = [each.name for each in comparison.branches]
    if branch is not None and branch not in names:
        raise UsageError(
            f"{sanitize(branch)[:200]} was not compared: it is unknown, the default branch without uncommitted files, or"
            " has neither a commit in 14 days nor a session. Nothing was written.",
            code="unknown-branch",
            suggestions=[decoded(name) for name in names][:5],
            next=["gitmem overlap"],
        )
    found = [(Overlap(*row), row) for row in rows if branch is None or branch in (row[0].name, row[1].name)]
    found.sort(key=lambda each: _rank(each[0]))
    overlaps = [each for each, _ in found]
    outcome = Overlaps(comparison.default, len(names), overlaps)
    outcome.warnings = comparison.warnings
    if notify is not None:
        conflicts = [_conflict(*row) for each, row in found if each.conflicts]
        outcome.sent, warnings = notices.tell_all(store, notify, conflicts)
        outcome.warnings += warnings
    outcome.next = _next(overlaps, is_told=notify is not None)
    return outcome


def _conflict(one: Branch, other: Branch, _: Shared, merge: changes.Merge | None) -> notices.Conflict:
    assert merge is not None  # it conflicts
    names, files = [decoded(one.name), decoded(other.name)], list(map(decoded, merge.paths))
    return notices.Conflict(names, files, [*one.sessions, *other.sessions], merge.count, merge.digest)


def _rank(found: Overlap) -> tuple[int, int, list[str]]:
    worst = {True: 0, None: 1, False: 2}[found.conflicts]
    count = len(found.conflicting) + found.more_conflicting or len(found.files) + found.more
    return worst, -count, [side.branch for side in found.sides]


def _next(found: Sequence[Overlap], *, is_told: bool) -> list[str]:
    if not found:
        return ["gitmem roster"]
    worst = found[0]
    steps = []
    if not is_told and worst.conflicts and any(side.sessions for side in worst.sides):
        steps.append("gitmem overlap --notify")
    one, other = (side.revision for side in worst.sides)
    path = (worst.conflicting or worst.files)[0]
    if one and other and f"{one}{other}{path}".isprintable() and "\ufffd" not in f"{one}{other}{path}":
        steps.append(command("git", "diff", f"{one}...{other}", "--", path))
    return steps or ["gitmem roster"]
