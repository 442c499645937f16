"""Replay: a clone's own commits, one by one, on another tip. Subtree by subtree; whole trees are never read."""

from __future__ import annotations

from ..git.port import Commit, Draft, Entry, Signature
from . import overflow, ref, trees
from .union import canon, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..git.port import Git
    from .trees import Changes

SINGLY_MAX = 1_000  # more commits than this become one
FEW_MAX = 200  # so many are looked at one by one


def replay(git: Git, commits: Sequence[str], onto: str, *, singly_max: int = SINGLY_MAX) -> str:
    """Put what each of these commits added on top of `onto`: the new tip. No ref moves.

    Authors, committers, dates and messages are kept; commits that stand on `onto` already stay as they
    are; one that adds nothing is left out. What a commit took away stays.

    Args:
        commits: Parents before children, as `Git.history` gives them. Merges are flattened.

    Raises: KeyError where an object is missing.
    """
    kept = 0
    while kept < len(commits) and git.commit(commits[kept]).parents == [onto]:
        onto = commits[kept]
        kept += 1
    rest = commits[kept:]
    if len(rest) > singly_max:
        return as_one(git, rest, onto)
    top = Top(git, git.commit(onto).tree)
    drafts = []
    for oid in rest:
        commit = git.commit(oid)
        changes = top.add(commit)
        if changes:
            drafts.append(Draft(changes, commit.author, commit.committer, commit.message))
    return git.write(drafts, onto)[-1] if drafts else onto


def as_one(git: Git, commits: Sequence[str], onto: str) -> str:
    """One commit on top of `onto` with what all of these added, and their trailers."""
    top = Top(git, git.commit(onto).tree)
    changes: Changes = {}
    replayed = []
    told = [git.commit(oid) for oid in commits]
    if len(commits) > FEW_MAX and all(
        commit.parents == [before] for commit, before in zip(told[1:], commits, strict=False)
    ):
        # A line of many: what it comes to is in its last tree. What it took away again is gone from the log's tip, too.
        while told and not (changes := top.add(told[0])):
            told.pop(0)
        if not told:
            return onto
        rest = Commit(told[-1].tree, told[0].parents, told[0].author, told[0].committer, "")
        return write_one(git, {**changes, **top.add(rest)}, told, onto)
    for commit in told:
        added = top.add(commit)
        if added:
            changes.update(added)
            replayed.append(commit)
    return write_one(git, changes, replayed, onto) if replayed else onto


def write_one(git: Git, changes: Changes, commits: Sequence[Commit], onto: str) -> str:
    """Write one commit with what these added."""
    first, last = commits[0], commits[-1]
    if len(commits) == 1:
        return git.write([Draft(changes, first.author, first.committer, first.message)], onto)[0]
    author = Signature(first.author.name, first.author.mail, last.author.seconds, last.author.offset)
    return git.write([Draft(changes, author, last.committer, _told(commits))], onto)[0]


def _told(commits: Sequence[Commit]) -> str:
    """The message of a commit that stands for many: how many, of how many, and the ids in their trailers."""
    agents = len({commit.author.name for commit in commits})
    kept: dict[str, None] = {}
    for commit in commits:
        kept.update(dict.fromkeys(trailers(commit.message)))
    message = f"{len(commits):,} commits of {agents} agent{'s' if agents > 1 else ''} in one\n"
    if kept:
        message += "\n" + "".join(f"{trailer}\n" for trailer in kept)
    return message


def trailers(message: str) -> list[str]:
    """The lines `Key: value` that end a message."""
    _, gap, last = message.strip("\n").rpartition("\n\n")
    lines = last.split("\n") if gap else []
    for line in lines:
        key, colon, _ = line.partition(": ")
        if not colon or not key.replace("-", "").isalnum():
            return []
    return lines


def _is_odd(entry: Entry, segment: bool) -> bool:
    return segment and not entry.mode.startswith("100")


class Top:
    """The tree on top of a replay, with changes that are not written yet.

    Args:
        known: Lines by segment that count as there.
    """

    def __init__(self, git: Git, tree: str, known: Mapping[str, set[bytes]] | None = None) -> None:
        self.git = git
        self.tree = tree
        self.known = known or {}
        self.changes: Changes = {}
        self._last: dict[str, tuple[str, bytes, set[bytes]]] = {}

    def add(self, commit: Commit) -> Changes:
        """What changes here when the commit's own additions come on top."""
        git = self.git
        parents = [git.commit(parent).tree for parent in commit.parents]
        changes: Changes = {}
        settles = False
        for path, entry, before in trees.differing(git, commit.tree, parents):
            if path in trees.FIXED:
                settles = True
                continue
            change = self._added(path, entry, before)
            if isinstance(change, bytes) and len(change) > ref.UNION_BYTES_MAX:
                changes.update(self._beside(path, entry))
            elif change is not None:
                changes[path] = change
        if settles:
            changes.update(self._fixed(commit.tree))
        self.changes.update(changes)
        return changes

    def _get(self, path: str) -> bytes | Entry | None:
        return self.changes[path] if path in self.changes else ref.lookup(self.git, self.tree, path)

    def _added(self, path: str, entry: Entry, before: Sequence[Entry]) -> bytes | Entry | None:
        """The new content of one file, or None where it stays."""
        git, here = self.git, self._get(path)
        segment = trees.is_segment(path) and entry.mode.startswith("100")
        if here == entry or (isinstance(here, Entry) and (here.is_tree or _is_odd(here, segment))):
            return None  # what can't be put beside what is here is left to the union
        if here is None and (not before or not segment) and path not in self.known:
            return entry
        if not segment:
            best = trees.greatest(git, [here, entry]) if isinstance(here, Entry) else here
            return None if best == here else best
        old = [self._lines(path, each)[1] for each in before if each.mode.startswith("100")]
        content, lines = self._lines(path, entry)
        if (
            before == [here]
            and path not in self.known
            and lines.issuperset(old[0])
            and canon(content) == content
        ):
            return entry  # as ever where one clone writes a segment: it stands here as it did there
        added = lines.difference(self.known.get(path, ()), *old)
        content = git.blob(here.oid) if isinstance(here, Entry) else here or b""
        if added.issubset(trees.lines_of(content)):
            return None
        return union(content, *added)

    def _beside(self, path: str, entry: Entry) -> Changes:
        """Put a segment that has no room at its path where the union of the trees puts it."""
        content = canon(self.git.blob(entry.oid))
        while True:
            path = overflow.path_beside(path, content)
            here = self._get(path)
            if isinstance(here, Entry) and not here.mode.startswith("100"):
                return {}  # left to the union
            old = self.git.blob(here.oid) if isinstance(here, Entry) else here or b""
            united = union(old, content)
            if united == canon(old) or self.known.get(path, set()).issuperset(trees.lines_of(content)):
                return {}
            if not old or len(united) <= ref.UNION_BYTES_MAX:
                return {path: united}

    def _lines(self, path: str, entry: Entry) -> tuple[bytes, set[bytes]]:
        """A segment and its lines. The next commit asks for them again."""
        oid, content, lines = self._last.get(path, ("", b"", set()))
        if oid != entry.oid:
            content = self.git.blob(entry.oid)
            lines = set(trees.lines_of(content))
            self._last[path] = (entry.oid, content, lines)
        return content, lines

    def _fixed(self, tree: str) -> Changes:
        here = {name: entry for name in trees.FIXED if isinstance(entry := self._get(name), Entry)}
        winners = trees.fixed(self.git, [here, self.git.tree(tree)])
        return {name: entry for name, entry in winners.items() if here.get(name) != entry}
