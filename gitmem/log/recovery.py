"""Recovery: where the log's ref has been, which of these commits are whole, and what of their lines the log lacks."""

from __future__ import annotations

from ..git import repair
from ..git.formats import cut_commits
from ..git.port import TREE_MODE, TreeEntry
from . import ledger, log_refs, ref, tree_union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ..git.plumbing import Git
    from .local_log import LocalLog

HEADS_MAX = 1_000
# What the two ports and git write into the reflog where a commit is put on the one before.
_APPENDS = ("append", "fast-import")


OURS, BROKEN, OTHER = "ours", "broken", "other"


class Sound:
    """Which commits the log can stand on: their trees are whole, and commits lead down to the first one of every log.

    Args:
        whole: Commits that are known to be such.
    """

    def __init__(self, log: LocalLog, whole: Collection[str] = ()) -> None:
        self.git = log.git
        self._whole = whole
        self._cut = cut_commits(log.place.common)
        self._objects: dict[str, bool] = {}
        self._ends: dict[str, str] = {}

    def commit(self, oid: str) -> bool:
        return oid in self._whole or (
            self.end(oid) == OURS and self._is_whole(TreeEntry(TREE_MODE, self.git.commit(oid).tree))
        )

    def end(self, oid: str) -> str:
        """Whether commits lead to the first one of every log, to a damaged one, or to another's first one."""
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
    """The lines of commits, each file once: as much of them as can be read."""

    def __init__(self, git: Git) -> None:
        self.git = git
        self._seen: set[str] = set()

    def of_commit(self, oid: str) -> Iterator[tuple[str, bytes]]:
        """Path and line, of files that no commit before had."""
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


def heads(log: LocalLog, tip: str | None) -> list[str]:
    """Commits that the log's ref was at, newest first: ends of what it had, not those that others stood on.

    Args:
        tip: Where it is now, as far as it is anywhere.
    """
    moves = repair.reflog(log.place.common, ref.LOG_REF)
    found = [moves[-1].new] if moves else []
    for at in range(len(moves) - 1, -1, -1):
        move = moves[at]
        if at and move.old != moves[at - 1].new:
            found.append(moves[at - 1].new)
        if move.old is not None and not move.why.startswith(_APPENDS):
            found.append(move.old)
    _, commits = ledger.acknowledged(log.place)
    found += commits[:1]
    return [oid for oid in dict.fromkeys(found) if oid != tip][:HEADS_MAX]


def been_at(log: LocalLog) -> Iterator[str]:
    """Every commit that the log's ref is known to have been at, newest first, and then what a remote had."""
    for move in reversed(repair.reflog(log.place.common, ref.LOG_REF)):
        yield move.new
    yield from ledger.acknowledged(log.place)[1]
    published = log.git.refs("refs/gitmem/").get(ref.PUBLISHED_REF)
    if published is not None:
        yield published
    yield from (oid for name, oid in log.git.refs(ref.REMOTES_PREFIX).items() if log_refs.is_place(name))


def last_sound(log: LocalLog, sound: Sound, tip: str | None) -> str | None:
    """The newest commit that the log can go on from: what stands below a damaged tip, else where the ref has been."""
    seen: set[str] = set()
    for found in (_below(log, tip), been_at(log)):
        for oid in found:
            if oid not in seen and sound.commit(oid) and is_log(log, oid):
                return oid
            seen.add(oid)
    return None


def _below(log: LocalLog, tip: str | None) -> Iterator[str]:
    """A commit and what it stands on, as far as commits can be read."""
    while tip is not None:
        yield tip
        try:
            tip = next(iter(log.git.commit(tip).parents), None)
        except KeyError:
            return


def is_log(log: LocalLog, oid: str) -> bool:
    """Whether a commit that is whole ends the history of a log, of this project as far as that can be told."""
    try:
        tip = log_refs.read(log, ref.LOG_REF, oid)
    except log_refs.NotALog:
        return False
    return tip.format.epoch == 0 and log_refs.related(log_refs.own_projects(log), tip.projects)


def belongs(log: LocalLog, sound: Sound, oid: str, ours: set[str]) -> bool:
    """Whether a commit is of a log that may be united with ours, whether it is whole or not.

    Args:
        ours: The projects of our log.
    """
    try:
        root = log.git.tree(log.git.commit(oid).tree)
        if "format" not in root or sound.end(oid) == OTHER:
            return False
        theirs = ref.project_ids(log.git, root)
    except KeyError:
        return True  # as far as it can be read, which is not far
    return log_refs.related(ours, theirs)


def is_of_project(log: LocalLog, oid: str | None) -> bool:
    """Whether a commit is no log of another project, as far as that can be told."""
    try:
        root = log.git.tree(log.git.commit(oid).tree) if oid is not None else {}
        theirs = ref.project_ids(log.git, root)
    except KeyError:
        return True
    return not theirs or log_refs.related(log_refs.own_projects(log), theirs)


def projects(log: LocalLog, tip: str | None) -> set[str]:
    """The projects of the log at a commit, else those of this repository."""
    try:
        found = ref.project_ids(log.git, log.git.tree(log.git.commit(tip).tree)) if tip is not None else set()
    except KeyError:
        found = set()
    return found or log_refs.own_projects(log)
