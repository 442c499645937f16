"""Replay: a clone's own commits, one by one, on another tip. Subtree by subtree; whole trees are never read."""

from __future__ import annotations

from ..git.port import Draft, Entry, Signature
from . import ref, trees
from .union import union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..git.port import Commit, Git
    from .trees import Changes

SINGLY_MAX = 1_000  # more commits than this become one


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
    for oid in commits:
        commit = git.commit(oid)
        added = top.add(commit)
        if added:
            changes.update(added)
            replayed.append(commit)
    if not replayed:
        return onto
    if len(replayed) == 1:
        only = replayed[0]
        return git.write([Draft(changes, only.author, only.committer, only.message)], onto)[0]
    first, last = replayed[0], replayed[-1]
    author = Signature(first.author.name, first.author.mail, last.author.seconds, last.author.offset)
    return git.write([Draft(changes, author, last.committer, _told(replayed))], onto)[0]


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
    """The tree on top of a replay, with changes that are not written yet."""

    def __init__(self, git: Git, tree: str) -> None:
        self.git = git
        self.tree = tree
        self.changes: Changes = {}

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
            if change is not None:
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
        if here is None and (not before or not segment):
            return entry
        if not segment:
            best = trees.greatest(git, [here, entry]) if isinstance(here, Entry) else here
            return None if best == here else best
        added = set(trees.lines_of(git.blob(entry.oid)))
        for old in before:
            if old.mode.startswith("100"):
                added.difference_update(trees.lines_of(git.blob(old.oid)))
        content = git.blob(here.oid) if isinstance(here, Entry) else here or b""
        if added.issubset(trees.lines_of(content)):
            return None
        return union(content, *added)

    def _fixed(self, tree: str) -> Changes:
        here = {name: entry for name in trees.FIXED if isinstance(entry := self._get(name), Entry)}
        winners = trees.fixed(self.git, [here, self.git.tree(tree)])
        return {name: entry for name, entry in winners.items() if here.get(name) != entry}
