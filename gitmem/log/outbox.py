"""Outboxes: what a clone puts on a ref of a remote that nobody else writes, where others are at the shared ref.

It is made once, never moved, and named after its last commit, so that no push of it can lose a race and two
of one name are the same. Whoever folds it into the shared ref deletes it.
"""

from __future__ import annotations

from . import overflow, ref, replay, trees
from .trunk import Trunk, above
from .union import canon, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..git.port import Entry, Git
    from .log import Log
    from .places import Tip
    from .trees import Changes

# Where a remote may take one. Not every host has room beside branches and tags.
PREFIXES = ("refs/gitmem/outbox/", "refs/heads/gitmem-outbox-")
KEPT_MAX = 1_000


class Outbox:
    """One outbox of a remote.

    Attributes:
        oid: Its last commit.
        commits: What it has and the shared ref's history has not, parents before children.
        lines: The lines that those add, by segment; None where that doesn't tell all, and its tree counts.
        files: Those segments, and what was there before.
        base: The commit that they stand on.
    """

    __slots__ = ("base", "commits", "files", "lines", "oid", "tree")

    def __init__(
        self,
        oid: str,
        commits: Sequence[str],
        tree: str,
        lines: Mapping[str, set[bytes]] | None = None,
        base: str | None = None,
    ) -> None:
        self.oid = oid
        self.commits = list(commits)
        self.tree = tree
        self.lines = lines
        self.files: dict[str, tuple[Entry, Entry | None]] = {}
        self.base = base

    def is_in(self, git: Git, tree: str) -> bool:
        """Whether a tree has everything of it. KeyError where an object is missing."""
        if self.lines is not None and all(
            lines.issubset(there := lines_at(git, tree, path))
            or lines.issubset(there | self._beside(git, tree, path))
            for path, lines in self.lines.items()
        ):
            return True
        return (self.lines is None or self.is_large(git, tree)) and not trees.union_changes(
            git, tree, [self.tree]
        )

    def _beside(self, git: Git, tree: str, path: str) -> set[bytes]:
        """The lines of one of its segments that had no room beside another content, where a tree keeps them."""
        entry, _ = self.files[path]
        if ref.lookup(git, tree, path) == entry:
            return set()
        return lines_at(git, tree, overflow.path_beside(path, canon(git.blob(entry.oid))))

    def is_large(self, git: Git, tree: str) -> bool:
        """Whether a segment of it may have no room beside what a tree has there; then only the union tells."""
        return any(
            sum(len(git.blob(each.oid)) for each in (entry, ref.lookup(git, tree, path)) if each is not None)
            > ref.UNION_BYTES_MAX
            for path, (entry, _) in self.files.items()
        )


def read(
    log: Log, refs: Mapping[str, str], shared: Tip, trunk: Trunk | None = None
) -> tuple[list[Outbox], dict[str, str]]:
    """The outboxes that stand on the history of a log, and the refs that do not.

    Args:
        trunk: That history, where the caller walks it for several.
    """
    git = log.git
    trunk = trunk or Trunk(git, shared.oid)
    found = {}
    for oid in dict.fromkeys(refs.values()):
        try:
            box = log.boxes.get(oid)
            if box is None or box.base is None or trunk.above(box.base) != []:
                commits = trunk.above(oid)
                box = _plain(git, oid, commits, shared.tree) if commits is not None else None
        except KeyError:
            continue  # asked again by who can say what is missing
        if box is not None:
            found[oid] = box
    log.boxes = {**(log.boxes if len(log.boxes) < KEPT_MAX else {}), **found}
    return list(found.values()), {name: oid for name, oid in refs.items() if oid not in found}


def made(git: Git, oid: str, shared: Tip) -> Outbox:
    """The outbox that was just put on the tip `shared`."""
    commits = above(git, oid, shared.oid)
    return _plain(git, oid, commits, shared.tree) or Outbox(oid, commits, git.commit(oid).tree)


def whole(git: Git, tip: Tip, shared: Tip | None) -> Outbox:
    """The outbox that is a log of its own, which no plain line of commits connects with the shared one."""
    commits = git.history(tip.oid, [shared.oid] if shared is not None else [])
    if len(commits) > replay.SINGLY_MAX:
        commits = []  # its tree is united; the story of so many is not
    return Outbox(tip.oid, commits, tip.tree)


def _plain(git: Git, oid: str, commits: Sequence[str], shared: str) -> Outbox | None:
    """The outbox, where all that its commits did is to add lines to segments; else it is read as any other log."""
    tree = git.commit(oid).tree
    if not commits:
        return Outbox(oid, commits, tree, {}, oid)
    base = git.commit(commits[0]).parents[0]
    box = Outbox(oid, commits, tree, lines := {}, base)
    for path, entry, before in trees.differing(git, tree, [git.commit(base).tree]):
        here = ref.lookup(git, shared, path)
        if not trees.is_segment(path) or any(
            not each.mode.startswith("100") for each in (entry, here or entry)
        ):
            return None
        lines[path] = set(trees.lines_of(git.blob(entry.oid)))
        for old in before:
            lines[path].difference_update(trees.lines_of(git.blob(old.oid)))
        box.files[path] = (entry, before[0] if before else None)
    return box


def lines_at(git: Git, tree: str, path: str) -> set[bytes]:
    """The lines of one segment; none where there is no such file."""
    entry = ref.lookup(git, tree, path)
    if entry is None or not entry.mode.startswith("100"):
        return set()
    return set(trees.lines_of(git.blob(entry.oid)))


def united(boxes: Iterable[Outbox]) -> dict[str, set[bytes]]:
    """The lines of several outboxes, by segment."""
    found: dict[str, set[bytes]] = {}
    for box in boxes:
        for path, lines in (box.lines or {}).items():
            found.setdefault(path, set()).update(lines)
    return found


def commits_of(git: Git, boxes: Iterable[Outbox]) -> list[str]:
    """Their commits in the order of their dates, parents before children; the same in every clone."""
    keyed = []
    for box in boxes:
        seconds = 0
        for number, oid in enumerate(box.commits):
            seconds = max(seconds, git.commit(oid).author.seconds)
            keyed.append((seconds, box.oid, number, oid))
    return [oid for *_, oid in sorted(keyed)]


def unsent(git: Git, commits: Sequence[str], tree: str, boxes: Sequence[Outbox]) -> list[str]:
    """Of some commits, those that bring what neither a tree nor an outbox has."""
    top = replay.Top(git, tree, united(boxes))
    if commits:
        for oid in commits_of(git, [box for box in boxes if box.lines is None]):
            top.add(git.commit(oid))
    return [oid for oid in commits if top.add(git.commit(oid))]


def bring(git: Git, boxes: Sequence[Outbox], onto: str) -> str:
    """One commit on top of `onto` with what it lacks of outboxes: the new tip."""
    tree = git.commit(onto).tree
    lacking = [box for box in boxes if not box.is_in(git, tree)]
    changes: Changes = {}
    plain = [box for box in lacking if box.lines is not None]
    if _is_too_much(git, plain, tree):
        plain = []
    for path, lines in united(plain).items():
        here = ref.lookup(git, tree, path)
        whole = [box.files[path] for box in plain if path in box.files]
        if len(whole) == 1 and whole[0][1] == here:
            changes[path] = whole[0][0]
        else:
            changes[path] = union(git.blob(here.oid) if here is not None else b"", *lines)
    told = [git.commit(oid) for oid in commits_of(git, plain)]
    if told:
        onto = replay.write_one(git, changes, told, onto)
    return replay.as_one(git, commits_of(git, [box for box in lacking if box not in plain]), onto)


def _is_too_much(git: Git, boxes: Sequence[Outbox], tree: str) -> bool:
    """Whether a segment may get larger than a union makes one: then the commits are replayed, which heeds that."""
    found = united(boxes)
    here = [ref.lookup(git, tree, path) for path in found]
    size = sum(len(git.blob(entry.oid)) for entry in here if entry is not None)
    return size + sum(len(line) + 1 for lines in found.values() for line in lines) > ref.UNION_BYTES_MAX
