"""Check the refs of a remote (shared refs, outboxes) before any of their content is accepted.

A ref that fails is left out and reported. It never blocks the other refs.
"""

from __future__ import annotations

import heapq
import math

from ..git import partial
from ..git.fork_point import STEPS_MAX, STEPS_MIN, HistoryWalk
from ..git.separate_fetch import is_too_much
from . import left_out, log_refs, ref
from .check_budget import LIMITS, LimitExceeded, Rejected
from .replaced_project_ids import LOST_PROJECTS, ProjectIds, projects_of
from .tree_checks import TreeCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from ..git.plumbing import Git
    from ..git.port import Commit
    from .left_out import LeftOut
    from .local_log import LocalLog
    from .log_refs import LogTip

NEWER, FOREIGN, INVALID, LARGE = "newer", "foreign", "invalid", "large"
NO_PROJECTS = "it has no projects/, which this log had"
FOREIGN_WHY = "it is the log of another project"


class RefCheck:
    """One check of all refs of a remote.

    Args:
        accepted: The last version of the remote's shared log that passed; None at first contact.
        known: Tips of logs. Histories that contain one are not followed to the first commit.
        outboxes: Outboxes of the remote, by name.
    """

    def __init__(
        self,
        log: LocalLog,
        accepted: LogTip | None,
        known: Iterable[str],
        outboxes: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self.accepted = accepted
        self.known = [oid for oid in known if oid]
        self.outboxes = dict(outboxes or {})
        self.left_out: dict[str, LeftOut] = {}
        self.unfetchable: Mapping[str, str] = {}  # commits that git refused to fetch, with the reason
        self.ids = ProjectIds(log)
        self._listed = 0  # commits of histories that are not near, of all refs
        self._trunk: HistoryWalk | None = None
        self._trunk_of: list[str] = []
        self.trees = TreeCheck(
            log.git, log.passed_trees, allow_large=log.allow_large, limits=log.limits or LIMITS
        )

    def in_order(self, refs: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return refs in reading order: fewest new bytes first, so a large ref cannot block the others."""
        if len(refs) < 2 or self.log.allow_large:
            return list(refs.items())
        known = self._known_trees()
        common = self.log.repo.common
        there = {
            oid
            for oid in refs.values()
            if oid not in self.unfetchable and not partial.is_incomplete(common, oid)
        }
        self.trees.prefetch_sizes(there, known)
        tips = [oid for oid in dict.fromkeys(refs.values()) if oid in there]
        sizes = history_sizes(self.trees, tips, known, self._known_trunk().is_near)
        return sorted(refs.items(), key=lambda item: sizes.get(item[1], math.inf))

    def admit(self, refs: Mapping[str, str]) -> list[LogTip]:
        """Return the logs among these refs, each tip once; record why the others are left out."""
        tips: dict[str, LogTip] = {}
        for name, oid in self.in_order(refs):
            if oid in tips:
                continue
            tip = self.check(name, oid)
            if tip is not None:
                tips[oid] = tip
        return list(tips.values())

    def check(self, name: str, oid: str) -> LogTip | None:
        """Return the log at a ref, or None and record why it is left out.

        An invalid log is reported as invalid even if it also exceeds a limit, because it must be repaired.
        """
        if not self._check_commits(name, oid):
            return None
        if not self._check_trees(name, oid) and self.left_out[name].kind != LARGE:
            return None
        found, others = log_refs.logs(self.log, {name: oid}, self.known)
        if not found:
            self.leave_out(name, oid, INVALID, others[name])
            return None
        (tip,) = found
        try:
            kind, why = self._reason(tip)
        except KeyError as error:
            kind, why = INVALID, f"its object {error.args[0]} is missing or damaged"
        if why:
            self.leave_out(name, oid, kind, why)
        return tip if name not in self.left_out else None

    def is_whole(self, name: str, oid: str) -> bool:
        """Return whether the tree of an outbox has the files that each log has; else leave it out.

        Nothing checks this later: an outbox based on the shared log is read only for the lines that it adds.
        """
        if not self._check_objects(name, oid):
            return False
        git = self.log.git
        try:
            root = git.tree(git.commit(oid).tree)
        except KeyError as error:
            self.leave_out(name, oid, INVALID, f"its object {error.args[0]} is missing or damaged")
            return False
        if "format" not in root:
            self.leave_out(name, oid, INVALID, "its tree has no file `format`")
        elif self.accepted is not None and self.accepted.projects and not ref.project_ids(git, root):
            self.leave_out(name, oid, INVALID, NO_PROJECTS)
        return name not in self.left_out

    def is_base(self, name: str, oid: str, base: str) -> bool:
        """Return whether an outbox may be based on a commit, with which its files are compared; else leave it out.

        Without a shared ref the base may be the first commit of every log, whose tree is empty.
        """
        return base == ref.genesis(base) or self._check_objects(name, base, oid)

    def is_log_history(self, name: str, oid: str) -> bool:
        """Return whether the commits of a history have valid sizes and start with the first commit of every log."""
        return self._check_commits(name, oid) and log_refs.is_rooted(self.log, oid, self.known)

    def _check_objects(self, name: str, *oids: str) -> bool:
        """Check the commits, file sizes, names and modes of a ref; leave it out if the check fails."""
        return self._check_commits(name, *oids) and self._check_trees(name, *oids)

    def _check_commits(self, name: str, *oids: str) -> bool:
        """Check the sizes of commits of a ref (the last is its tip) and of its history before any is read."""
        if oids[-1] in self.unfetchable:
            self.leave_out(name, oids[-1], INVALID, self.unfetchable[oids[-1]])
            return False

        def look() -> None:
            self.trees.commits(oids, name)
            self._check_history(name, oids[-1])

        return self._passes(name, oids[-1], look)

    def _check_trees(self, name: str, *oids: str) -> bool:
        """Check the trees of commits that passed `_check_commits`."""
        git, known = self.log.git, self._known_trees()
        return self._passes(
            name, oids[-1], lambda: self.trees.trees([git.commit(each).tree for each in oids], known, name)
        )

    def _passes(self, name: str, oid: str, look: Callable[[], None]) -> bool:
        """Run a check of a ref; leave the ref out if it fails. Return whether it passed."""
        if partial.is_incomplete(self.log.repo.common, oid):
            return True  # reported when it is read
        try:
            look()
        except LimitExceeded as found:
            self.leave_out(name, oid, LARGE, f"{found}; `gitmem sync --allow-large` accepts all of it")
        except Rejected as found:
            self.leave_out(name, oid, INVALID, str(found))
        except KeyError as error:
            self.leave_out(name, oid, INVALID, f"its object {error.args[0]} is missing or damaged")
        return name not in self.left_out

    def _check_history(self, name: str, oid: str) -> None:
        """Check the sizes of the commits that a ref adds, before any of their messages is read.

        Of each ref, `STEPS_MAX` commits are followed in this process, whatever was listed for others before.

        Raises:
            Rejected: A commit is too large.
        """
        git = self.log.git

        def read(at: str) -> Commit:
            self.trees.commits([at], name)
            return git.commit(at)

        most = STEPS_MAX if self._listed > self.trees.limits.listed else STEPS_MIN
        if self._known_trunk().above(oid, most=most, read=read) is None:
            if self._listed > self.trees.limits.listed:
                raise LimitExceeded(
                    f"more than {self.trees.limits.listed:,} commits were listed for other refs"
                )
            commits = git.unread_history(oid, filter(git.has, self._known_tips()))
            self._listed += len(commits)
            self.trees.commits(commits, name)

    def _known_trunk(self) -> HistoryWalk:
        """Return the history that passed: that of the last accepted tip and of the known tips."""
        git, tips = self.log.git, self._known_tips()
        if self._trunk is None or self._trunk_of != tips:
            self._trunk, self._trunk_of = HistoryWalk(git, *filter(git.has, dict.fromkeys(tips))), tips
        return self._trunk

    def _known_tips(self) -> list[str]:
        return [*([self.accepted.oid] if self.accepted is not None else []), *self.known]

    def _known_trees(self) -> list[str]:
        """Return the trees that new content is compared with: of the local log and of the last accepted tip."""
        git, local = self.log.git, self.log.git.tip(ref.LOG_REF)
        found = [] if self.accepted is None else [self.accepted.tree]
        try:
            return [*found, git.commit(local).tree] if local is not None else found
        except KeyError:
            return found

    def leave_out(self, name: str, oid: str, kind: str, why: str) -> None:
        """Record a ref as left out. Its content no longer counts against the limits."""
        self.trees.forget(name)
        kind = LARGE if is_too_much(self.unfetchable.get(oid, "")) else kind
        self.left_out[name] = left_out.describe(
            self.log.git, name, oid, kind, why, is_fetched=oid not in self.unfetchable
        )

    def _reason(self, tip: LogTip) -> tuple[str, str]:
        """Return the kind and the reason why a log is not accepted; "" if it is."""
        form = tip.format
        if ref.FORMAT < form.format <= ref.FORMAT_MAX and self._is_well_formed(tip):
            return NEWER, f"it has format {form.format}; upgrade gitmem (this one reads format {ref.FORMAT})"
        if form.format != ref.FORMAT:
            return INVALID, f"its format is {str(form.format)[:24]}; only {ref.FORMAT} is valid"
        if form.epoch != 0:
            return INVALID, f"its epoch is {str(form.epoch)[:24]}; only 0 is valid"
        if not tip.projects and self._had_projects(tip):
            return INVALID, NO_PROJECTS
        if self.ids.are_lost(tip, self.accepted):
            return INVALID, LOST_PROJECTS
        return "", ""

    def _is_well_formed(self, tip: LogTip) -> bool:
        """Return whether a log with a newer format continues the known log."""
        if self.accepted is None:
            return bool(tip.projects)
        if self.accepted.projects and self.accepted.projects.isdisjoint(tip.projects):
            return False
        return self.log.git.contains(tip.oid, self.accepted.oid)

    def _had_projects(self, tip: LogTip) -> bool:
        """Return whether the last accepted tip, the history, or an outbox with another base has project ids."""
        git = self.log.git
        if self.accepted is not None:
            return bool(self.accepted.projects)
        at, steps = tip.oid, 0
        while steps < self.trees.limits.ancestors:
            parents = git.commit(at).parents
            if not parents:
                break
            at, steps = parents[0], steps + 1
            if self.ids.of_commit(at):
                return True
        return any(oid != tip.oid and _has_other_base(git, oid, tip.oid) for oid in self.outboxes.values())


def _has_other_base(git: Git, outbox: str, shared: str) -> bool:
    """Return whether an outbox with project ids shares at most the first commit with a shared tip."""
    try:
        if not projects_of(git, outbox):
            return False
        line = HistoryWalk(git, shared).above(outbox)
        return line is None or (bool(line) and git.commit(line[0]).parents == [ref.genesis(outbox)])
    except KeyError:
        return False


def history_sizes(
    check: TreeCheck, tips: Iterable[str], known: Sequence[str], is_known: Callable[[str], bool]
) -> dict[str, float]:
    """Return the number of new bytes that each commit leads to; infinite if a check fails.

    Args:
        known: Trees whose files are not new.
        is_known: Returns whether a commit is in a history that passed.
    """
    found: dict[str, float] = {}
    waiting: list[tuple[int, int, str, Generator[int, None, int]]] = [
        (0, at, oid, _measure(check, oid, known, is_known)) for at, oid in enumerate(tips)
    ]
    while waiting:
        size, at, oid, steps = heapq.heappop(waiting)
        try:
            heapq.heappush(waiting, (size + next(steps), at, oid, steps))
        except StopIteration as done:
            found[oid] = size + done.value
        except (Rejected, KeyError):
            found[oid] = math.inf
    return found


def _measure(
    check: TreeCheck, tip: str, known: Sequence[str], is_known: Callable[[str], bool]
) -> Generator[int, None, int]:
    """Yield the size of each commit and tree before it is read; return the size of the new files.

    The files of the commit's base count too, because an outbox is compared with it. A history whose end is not reached
    counts as the largest that is read, so that a long one comes after all that are known to be short.
    """
    trees: list[str] = []
    at, ended, unread = tip, False, check.limits.history_bytes
    for _ in range(STEPS_MIN):
        commit = yield from check.measure_commit(at)
        trees = trees or [commit.tree]
        if ended or len(commit.parents) != 1:
            trees.append(commit.tree)
            unread = 0 if ended or not commit.parents else unread
            break
        (at,) = commit.parents
        if at == ref.genesis(at):
            unread = 0
            break
        ended = is_known(at)
    files = unread
    for tree in dict.fromkeys(trees):
        files += yield from check.measure(tree, known)
    return files
