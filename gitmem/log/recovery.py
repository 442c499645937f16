"""Recovery: past tips of the log's ref, whether their commits are complete, lines that its history dropped, and what is damaged."""

from __future__ import annotations

from ..git import plumbing
from ..git.files import shallow_commits
from ..git.history import removals
from ..git.objects import TREE_MODE, TreeEntry
from ..outcome import Struct
from . import forgetting, ledger, log_refs, ref, tree_union
from . import lines as form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from ..git.port import Git
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
        todo = [entry]
        while todo:
            at = todo[-1]
            if at.oid in self._objects:
                todo.pop()
                continue
            try:
                inner = self.git.tree(at.oid).values() if at.is_tree else ()
                if not at.is_tree:
                    self.git.blob(at.oid)
            except KeyError:
                self._objects[at.oid] = False
                continue
            needed = [each for each in inner if each.mode != "160000"]
            unknown = [each for each in needed if each.oid not in self._objects]
            todo += unknown
            if not unknown:
                self._objects[at.oid] = all(self._objects[each.oid] for each in needed)
        return self._objects[entry.oid]


class RecoveredLines(Struct):
    """The readable lines of commits; each file is read once."""

    git: Git
    _seen: set[str] = set()

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
    moves = plumbing.reflog(log.repo.common, ref.LOG_REF)
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
    for move in reversed(plumbing.reflog(log.repo.common, ref.LOG_REF)):
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
    return not forgetting.epoch_problem(log, tip, ()) and log_refs.can_merge(
        log_refs.own_projects(log), tip.projects
    )


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


class LogReadResult(Struct):
    """The result of reading a whole log.

    Attributes:
        keys: `ledger.key` of every line that the tip has or that was reported as missing there.
        commits: Commits of the tip's history whose lines are all in `keys` and whose objects are all readable.
    """

    keys: set[bytes] = set()
    commits: Collection[str] = ()


def walk_contents(
    git: Git, commit: str, missing: Callable[[str, str, bool], None] | None = None
) -> Iterator[tuple[str, TreeEntry, bytes]]:
    """Yield path, entry and content of every folder and file of a commit's tree, by days. The path of a folder ends in a slash.

    Args:
        missing: Called for each unreadable object with its id, its path, and whether it is a folder.

    Raises:
        KeyError: The commit is unreadable, or, without `missing`, any object is.
    """
    entries = tree_union.walk(git, git.commit(commit).tree, missing)
    for path, entry in sorted(entries, key=lambda each: tree_union.below_stream(each[0])):
        content = b""
        try:
            if not entry.is_tree and entry.mode != "160000":  # a submodule's commit is not in this repository
                content = git.blob(entry.oid)
        except KeyError:
            if missing is None:
                raise
            missing(entry.oid, path, False)
            continue
        yield path, entry, content


class DroppedLines(Struct):
    """Lines that a commit had in a file and the tip has nowhere; `number` is that of the first, counted from 1."""

    commit: str
    path: str
    lines: list[bytes]
    number: int


class History:
    """The history of a log, read once to find dropped lines.

    Args:
        commits: Parents before children.
        left: Objects that this partial clone does not have because the remote keeps them.

    Attributes:
        is_whole: Whether all of it was readable; final after the last line was yielded.
    """

    def __init__(self, log: LocalLog, commits: Sequence[str], left: Collection[str] = ()) -> None:
        self.is_whole = not left
        self._git: Git = log.git
        self._common = log.repo.common
        self._commits = commits
        self._seen = set(left)

    def dropped(
        self, keys: set[bytes], missing: Callable[[str, str, str], None] = lambda *_: None
    ) -> Iterator[DroppedLines]:
        """Yield the valid lines that are not in `keys`, newest commits first, and add theirs to `keys`.

        Args:
            keys: `ledger.key` of the lines of the tip.
            missing: Called for each unreadable object with its id, its position, and its expected kind.
        """
        known = removals(self._common, self._commits[::-1]) if self.is_whole else None
        self.is_whole = known is not None
        files = self._every(missing) if known is None else self._before(known)
        for commit, path, oid in files:
            try:
                content = self._git.blob(oid)
            except KeyError:
                self.is_whole = False
                missing(oid, f"{commit[:12]}:{path}", "an older file")
                continue
            if not tree_union.is_segment(path):
                continue
            gone = [line for line in tree_union.lines_of(content) if ledger.key(line) not in keys]
            gone = [line for line in gone if form.validation_error(line) is None]
            if gone:
                keys.update(map(ledger.key, gone))  # each line is reported once
                number = [line.rstrip(b"\r") for line in content.split(b"\n")].index(gone[0]) + 1
                yield DroppedLines(commit, path, gone, number)

    def _before(self, changed: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
        """Yield commit, path and id of the files as they were before commits removed lines from them.

        Also yield the entries at the tip that are not plain files, because readers of the log skip those.
        """
        tip = self._commits[-1]
        for path, entry in tree_union.walk(self._git, self._git.commit(tip).tree):
            if not entry.mode.startswith("100") and self._is_new_file(entry):
                yield tip, path, entry.oid
        for commit, path in changed:
            for parent in self._git.commit(commit).parents if not tree_union.is_too_deep(path) else ():
                found = ref.lookup(self._git, self._git.commit(parent).tree, path)
                if found is not None and self._is_new_file(found):
                    yield parent, path, found.oid

    def _is_new_file(self, entry: TreeEntry) -> bool:
        if entry.is_tree or entry.mode == "160000" or entry.oid in self._seen:
            return False
        self._seen.add(entry.oid)
        return True

    def _every(self, missing: Callable[[str, str, str], None]) -> Iterator[tuple[str, str, str]]:
        """Yield commit, path and id of every file of any commit, and report unreadable objects."""
        for commit in reversed(self._commits):
            try:
                tree = self._git.commit(commit).tree
            except KeyError:
                missing(commit, commit[:12], "a commit")
                continue

            def report(oid: str, path: str, _: bool, commit: str = commit) -> None:
                missing(oid, f"{commit[:12]}:{path}", "an older folder")

            for path, entry in tree_union.walk(self._git, tree, report, seen=self._seen):
                if not entry.is_tree and entry.mode != "160000":
                    yield commit, path, entry.oid


def damaged_copies(log: LocalLog, whole: Collection[str] = ()) -> list[str]:
    """Return the copies of remote refs, and the published ref, whose commits are unreadable.

    Args:
        whole: Commits of the log that were already read completely.
    """
    sound = CompletenessCheck(log, whole)
    found = []
    for name, oid in log.git.refs("refs/gitmem/").items():
        copied = name == ref.PUBLISHED_REF or _is_copy(name)
        if copied and sound.end(oid) != OTHER and not sound.commit(oid):
            found.append(name)
    return found


def _is_copy(name: str) -> bool:
    known = log_refs.is_synced_ref(name) or name.endswith("/accepted")
    return known and name.startswith(ref.REMOTES_PREFIX)


def damaged_objects(log: LocalLog) -> list[str]:
    """Return the unreadable objects of all known tips of the log's ref and of remotes, and of their histories."""
    git, seen, damaged = log.git, set[str](), list[str]()

    def new(oids: Iterable[str]) -> list[str]:
        found = [oid for oid in dict.fromkeys(oids) if oid not in seen]
        seen.update(found)
        return found

    commits = new([*past_tips(log), *git.refs("refs/gitmem/").values()])
    roots: list[str] = []
    while commits:
        oid = commits.pop()
        try:
            commit = git.commit(oid)
        except KeyError:
            damaged.append(oid)
            continue
        commits += new(commit.parents)
        roots.append(commit.tree)
    for root in roots:
        for _, entry in tree_union.walk(git, root, lambda oid, *_: damaged.append(oid), seen=seen):
            if not entry.is_tree and entry.mode != "160000" and not git.has(entry.oid):
                damaged.append(entry.oid)
    return damaged
