"""Recovery: past tips of the log's ref, whether their commits are complete, and their lines."""

from __future__ import annotations

from ..git import repair
from ..git.formats import shallow_commits
from ..git.port import TREE_MODE, TreeEntry
from . import ledger, log_refs, ref, tree_union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ..git.plumbing import Git
    from .local_log import LocalLog

HEADS_MAX = 1_000
# Reflog messages of both ports and of git for a commit that was appended to the one before.
_APPENDS = ("append", "fast-import")


OURS, BROKEN, OTHER = "ours", "broken", "other"


class CompletenessCheck:
    """Commits that the log can continue from: all their objects are readable down to the first commit of every log.

    Args:
        whole: Commits that are known to be complete.
    """

    def __init__(self, log: LocalLog, whole: Collection[str] = ()) -> None:
        self.git = log.git
        self._whole = whole
        self._cut = shallow_commits(log.repo.common)
        self._objects: dict[str, bool] = {}
        self._ends: dict[str, str] = {}

    def commit(self, oid: str) -> bool:
        """Return whether a commit's history and tree are complete."""
        return oid in self._whole or (
            self.end(oid) == OURS and self._is_whole(TreeEntry(TREE_MODE, self.git.commit(oid).tree))
        )

    def end(self, oid: str) -> str:
        """Return where a history ends: OURS (the first commit of every log), BROKEN (a damaged one) or OTHER."""
        todo = [oid]
        while todo:
            at = todo[-1]
            if at in self._ends:
                todo.pop()
                continue
            if at in self._whole:
                self._ends[at] = OURS
                continue
            try:
                parents = self.git.commit(at).parents
            except KeyError:
                self._ends[at] = BROKEN
                continue
            unknown = [parent for parent in parents if parent not in self._ends]
            todo += unknown
            if not unknown:
                ends = {self._ends[parent] for parent in parents}
                if not parents:
                    ends = {OURS if at == ref.genesis(at) or at in self._cut else OTHER}
                self._ends[at] = next(end for end in (BROKEN, OURS, OTHER) if end in ends)
        return self._ends[oid]

    def _is_whole(self, entry: TreeEntry) -> bool:
        if entry.oid not in self._objects:
            try:
                inner = self.git.tree(entry.oid).values() if entry.is_tree else ()
                if not entry.is_tree:
                    self.git.blob(entry.oid)
                whole = all(each.mode == "160000" or self._is_whole(each) for each in inner)
            except KeyError:
                whole = False
            self._objects[entry.oid] = whole
        return self._objects[entry.oid]


class RecoveredLines:
    """The readable lines of commits; each file is read once."""

    def __init__(self, git: Git) -> None:
        self.git = git
        self._seen: set[str] = set()

    def of_commit(self, oid: str) -> Iterator[tuple[str, bytes]]:
        """Yield path and line of the files that no earlier commit had."""
        try:
            tree = self.git.commit(oid).tree
        except KeyError:
            return
        for path, entry in tree_union.walk(self.git, tree, lambda *_: None, seen=self._seen):
            try:
                content = self.git.blob(entry.oid) if tree_union.is_plain_segment(path, entry) else b""
            except KeyError:
                continue
            for line in tree_union.lines_of(content):
                yield path, line


def history_ends(log: LocalLog, tip: str | None) -> list[str]:
    """Return past tips of the log's ref, newest first: ends of its histories, not commits that others were appended to.

    Args:
        tip: The present tip, which is left out; None if the ref is missing or unreadable.
    """
    moves = repair.reflog(log.repo.common, ref.LOG_REF)
    found = [moves[-1].new] if moves else []
    for at in range(len(moves) - 1, -1, -1):
        move = moves[at]
        if at and move.old != moves[at - 1].new:
            found.append(moves[at - 1].new)
        if move.old is not None and not move.why.startswith(_APPENDS):
            found.append(move.old)
    _, commits = ledger.acknowledged(log.repo)
    found += commits[:1]
    return [oid for oid in dict.fromkeys(found) if oid != tip][:HEADS_MAX]


def past_tips(log: LocalLog) -> Iterator[str]:
    """Yield all known past tips of the log's ref, newest first, then the tips that remotes had."""
    for move in reversed(repair.reflog(log.repo.common, ref.LOG_REF)):
        yield move.new
    yield from ledger.acknowledged(log.repo)[1]
    published = log.git.refs("refs/gitmem/").get(ref.PUBLISHED_REF)
    if published is not None:
        yield published
    yield from (oid for name, oid in log.git.refs(ref.REMOTES_PREFIX).items() if log_refs.is_synced_ref(name))


def last_complete(log: LocalLog, sound: CompletenessCheck, tip: str | None) -> str | None:
    """Return the newest commit that the log can continue from: below a damaged tip, else a past tip; else None."""
    seen: set[str] = set()
    for found in (_ancestors(log, tip), past_tips(log)):
        for oid in found:
            if oid not in seen and sound.commit(oid) and is_log(log, oid):
                return oid
            seen.add(oid)
    return None


def _ancestors(log: LocalLog, tip: str | None) -> Iterator[str]:
    """Yield a commit and its readable ancestors along first parents."""
    while tip is not None:
        yield tip
        try:
            tip = next(iter(log.git.commit(tip).parents), None)
        except KeyError:
            return


def is_log(log: LocalLog, oid: str) -> bool:
    """Return whether a complete commit is the tip of a log, and of this project as far as known."""
    try:
        tip = log_refs.read(log, ref.LOG_REF, oid)
    except log_refs.NotALog:
        return False
    return tip.format.epoch == 0 and log_refs.can_merge(log_refs.own_projects(log), tip.projects)


def belongs(log: LocalLog, sound: CompletenessCheck, oid: str, ours: set[str]) -> bool:
    """Return whether a commit, complete or not, is of a log that may be merged with this one.

    Args:
        ours: The projects of this log.
    """
    try:
        root = log.git.tree(log.git.commit(oid).tree)
        if "format" not in root or sound.end(oid) == OTHER:
            return False
        theirs = ref.project_ids(log.git, root)
    except KeyError:
        return True  # nothing readable contradicts it
    return log_refs.can_merge(ours, theirs)


def is_of_project(log: LocalLog, oid: str | None) -> bool:
    """Return whether a commit is not the log of another project, as far as known."""
    try:
        root = log.git.tree(log.git.commit(oid).tree) if oid is not None else {}
        theirs = ref.project_ids(log.git, root)
    except KeyError:
        return True
    return not theirs or log_refs.can_merge(log_refs.own_projects(log), theirs)


def projects(log: LocalLog, tip: str | None) -> set[str]:
    """Return the projects of the log at a commit, else those of this repository."""
    try:
        found = ref.project_ids(log.git, log.git.tree(log.git.commit(tip).tree)) if tip is not None else set()
    except KeyError:
        found = set()
    return found or log_refs.own_projects(log)
