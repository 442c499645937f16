"""Check the refs of a remote (shared refs, outboxes) before any of their content is accepted.

A ref that fails is left out and reported. It never blocks the other refs. Project ids are only ever added: a commit that replaces
them with ids of another project, on top of this log's history, is pushed damage (`ProjectIds`), which must be repaired and not
be treated as another project's log.
"""

from __future__ import annotations

import heapq
import math

from ..git import fetch
from ..git.fetch import MISSING, is_too_much
from ..git.port import STEPS_MAX, STEPS_MIN, HistoryWalk
from ..outcome import Struct
from . import forgetting, log_refs, ref
from .tree_checks import ANCESTORS_MAX, LIMITS, LimitExceeded, Rejected, TreeCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from ..git.objects import Commit, TreeEntry
    from ..git.port import Git
    from .local_log import LocalLog
    from .log_refs import LogTip


NAMED_BYTES_MAX = 256 * 1024  # limit for a commit that is read only to name its author


class LeftOut(Struct):
    """A ref that is not read.

    Attributes:
        ref: Its name on the remote.
        commit: Its tip.
        author: The author that the commit names; "" if it cannot be read. Anybody can write any name there.
        kind: `newer` (the format of a newer gitmem), `foreign` (another project's log), `large` (more than one sync
            accepts), or `invalid`.
        why: The reason, as the rest of a sentence.
        is_commit: Whether the tip is a commit, as far as known; else it is a tag, a tree or a blob.
        is_fetched: Whether the tip was fetched.
    """

    ref: str
    commit: str
    author: str
    kind: str
    why: str
    is_commit: bool = True
    is_fetched: bool = True

    def sentence(self, remote: str) -> str:
        """Return the description for a message."""
        by = f", by {self.author}" if self.author else ", author unknown" if self.is_commit else ""
        by += "" if self.is_fetched else " (not fetched)"
        at = f"{'commit' if self.is_commit else 'object'} {self.commit[:12]}{by}"
        text = f"{self.ref} of {remote} ({at}) was ignored: {self.why.rstrip('.')}."
        if self.why == MISSING:
            text += f" Its administrator can remove the ref with `git update-ref -d {self.ref} {self.commit}`; a sync of each clone then restores the lines."
        return text


def describe_left_out(git: Git, name: str, oid: str, kind: str, why: str, *, is_fetched: bool) -> LeftOut:
    """Make the description of a ref that is left out."""
    found = LeftOut(name, oid, author_of(git, oid) if is_fetched else "", kind, why)
    found.is_fetched = is_fetched
    if is_fetched and not found.author:
        form = git.heads([oid]).get(oid, ("commit", 0))[0]
        if form != "commit":
            found.is_commit, found.why = False, f"it is a {form}, not a commit"
    return found


def author_of(git: Git, oid: str) -> str:
    """Return the author that a commit names, or "" if the commit is unreadable or larger than `NAMED_BYTES_MAX`."""
    if git.heads([oid]).get(oid, ("", 0))[1] > NAMED_BYTES_MAX:
        return ""
    try:
        author = git.commit(oid).author
    except KeyError:
        return ""
    return f"{author.name} <{author.mail}>"


FOLDER_BYTES_MAX = 64 * 1024  # of a root tree or `projects/` that nothing has checked
LOST_PROJECTS = "its project ids are those of another project, and its history is that of this log"


class ProjectIds(Struct):
    """The project ids of a clone, of its log and of the histories of other logs; each is read once."""

    log: LocalLog
    _own: set[str] | None = None
    _of: dict[str, set[str]] = {}

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
            if oid not in self.unfetchable and not fetch.is_incomplete(common, oid)
        }
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

    def is_log_history(self, name: str, oid: str) -> bool:
        """Return whether the commits of a history have valid sizes and start with the first commit of every log."""
        return self._check_commits(name, oid) and log_refs.is_rooted(self.log, oid, self.known)

    def _check_commits(self, name: str, oid: str) -> bool:
        """Check the sizes of a commit of a ref and of its history before any is read."""
        if oid in self.unfetchable:
            self.leave_out(name, oid, INVALID, self.unfetchable[oid])
            return False

        def look() -> None:
            self.trees.commits([oid], name)
            self._check_history(name, oid)

        return self._passes(name, oid, look)

    def _check_trees(self, name: str, oid: str) -> bool:
        """Check the tree of a commit that passed `_check_commits`: file sizes, names and modes."""
        known = self._known_trees()
        return self._passes(name, oid, lambda: self.trees.trees([self.log.git.commit(oid).tree], known, name))

    def _passes(self, name: str, oid: str, look: Callable[[], None]) -> bool:
        """Run a check of a ref; leave the ref out if it fails. Return whether it passed."""
        if fetch.is_incomplete(self.log.repo.common, oid):
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
        self.left_out[name] = describe_left_out(
            self.log.git, name, oid, kind, why, is_fetched=oid not in self.unfetchable
        )

    def _reason(self, tip: LogTip) -> tuple[str, str]:
        """Return the kind and the reason why a log is not accepted; "" if it is."""
        form = tip.format
        if ref.FORMAT < form.format <= ref.FORMAT_MAX and self._is_well_formed(tip):
            return NEWER, f"it has format {form.format}; upgrade gitmem (this one reads format {ref.FORMAT})"
        if form.format != ref.FORMAT:
            return INVALID, f"its format is {str(form.format)[:24]}; only {ref.FORMAT} is valid"
        known = [self.accepted.oid] if self.accepted is not None else []
        is_large = tip.name in self.left_out
        if why := forgetting.epoch_problem(self.log, tip, [*known, *self.known], count=not is_large):
            return INVALID, f"its {why}"
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
