"""Squash: apply the additions of commits to another tip, as one commit. Works by subtrees; never reads whole trees.

Added content is in the last tree and not in the trees that the commits are based on; trees in between are not read.
"""

from __future__ import annotations

from ..git.objects import Commit, Draft, Signature, TreeEntry
from ..git.port import bases
from ..outcome import Struct
from . import ref, tree_union
from .committer import most_telling, summary
from .lines import count_records
from .union import canonical, lines, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from ..git.objects import Commit
    from ..git.port import Git
    from .tree_union import Changes

    File = tuple[str, TreeEntry, Sequence[TreeEntry]]

    class Known(Protocol):
        """Content that is not added again, such as the lines of outboxes."""

        def lines(self, path: str) -> set[bytes]:
            """Return the known lines of a segment."""
            ...

        def has(self, path: str, entry: TreeEntry) -> bool:
            """Return whether exactly this file is known."""
            ...


EACH_MAX = 200  # limit of commits; with more of them it is not checked which ones added something

SUBJECTS_MAX = 1_000
MESSAGE_BYTES_MAX = 1024 * 1024
_SUBJECT_CHARS_MAX = 100


def squash(git: Git, commits: Sequence[str], onto: str, known: Known | None = None) -> str:
    """Apply the additions of commits to `onto`, as one commit. No ref moves; removals are ignored.

    Leading commits that are already based on `onto` are kept, unless `known` is given or they add a folder that other
    clones refuse.

    Args:
        commits: Parents before children, as from `Git.history`: everything that the last one reaches, down to commits
            of another history. Merges are allowed.
        onto: The commit to build on.
        known: Content to leave out, such as the lines of outboxes.

    Returns:
        The new tip.

    Raises:
        KeyError: An object is missing.
    """
    kept = 0
    may_keep = known is None and not _adds_deep_folders(git, commits, onto)
    while may_keep and kept < len(commits) and git.commit(commits[kept]).parents == [onto]:
        onto = commits[kept]
        kept += 1
    found = Squash(git, git.commit(onto).tree, known)
    found.add_commits(commits[kept:])
    return found.write(onto)


def _adds_deep_folders(git: Git, commits: Sequence[str], onto: str) -> bool:
    """Return whether the last commit has folders that are nested too deep and that `onto` lacks."""
    if not commits:
        return False
    return tree_union.has_deep_folders(git, "", git.commit(commits[-1]).tree, [git.commit(onto).tree])


class Squash(Struct):
    """A tree, and the changes of one commit on top of it.

    Attributes:
        changes: Changes of the tree.
        described: The commits that the message describes.
    """

    git: Git
    tree: str
    known: Known | None = None
    changes: Changes = {}
    described: list[Commit] = []
    _count: int = 0  # number of added records, without those of trees and files that were added unread
    _whole: list[TreeEntry] = []
    _touched: set[str] = set()  # folders in which something was added
    _puts: int = 0
    _skipped: bool = False  # whether something to add was already there
    _added: set[tuple[str, ...]] = set()  # folders that were added: path, tree, and the trees before

    def add_commits(
        self, commits: Sequence[str], files: Iterable[File] | None = None, *, each_max: int | None = None
    ) -> None:
        """Add the content of commits, and list them for the message.

        Args:
            commits: As for `squash`.
            files: The changed files, if known: path, new entry and old entries.
            each_max: Of at most so many commits, list only those that added something, which reads the tree of each;
                default `EACH_MAX`.
        """
        if not commits:
            return
        found = [self.git.commit(oid) for oid in commits]
        puts, self._skipped = self._puts, False
        if files is None:
            before = [self.git.commit(oid).tree for oid in bases(self.git, commits)]
            self._add_tree(found[-1].tree, before, here=self.tree)
        for path, entry, olds in files or ():
            self._add(path, entry, olds)
        if self._puts == puts:
            return
        if self._skipped and 1 < len(found) <= (EACH_MAX if each_max is None else each_max):
            found = self._commits_that_add(found)
        plain = [commit for commit in found if len(commit.parents) < 2]
        self.described += plain or found

    def _commits_that_add(self, commits: Sequence[Commit]) -> list[Commit]:
        """Return the commits that add something, or all if none adds anything by itself."""
        top = Squash(self.git, self.tree, self.known)
        found = []
        for each in commits:
            before = top._puts
            top._add_tree(
                each.tree, [self.git.commit(parent).tree for parent in each.parents], here=self.tree
            )
            if top._puts != before:
                found.append(each)
        return found or list(commits)

    def _add_tree(self, tree: str, before: Sequence[str], path: str = "", here: str | None = None) -> None:
        """Add the content that a tree has and none of the trees `before`. The files of new subtrees are added unread.

        Args:
            before: The trees that its commits are based on.
            path: The path of the folder, with a final slash.
            here: The folder at this path in the target tree, without later changes. Entries that it has are skipped.
        """
        if (path, tree, *before) in self._added:
            self._skipped = True
            return
        self._added.add((path, tree, *before))
        folder = self.git.tree(here) if here is not None else {}
        fixed = False
        for name, entry, there in tree_union.differing_entries(self.git, tree, before):
            own = folder.get(name)
            olds = [old for old in there if old.is_tree == entry.is_tree]
            if own == entry or (entry.is_tree and tree_union.is_too_deep(f"{path}{name}/")):
                self._skipped = True
            elif not path and name in tree_union.FIXED:
                fixed = True
            elif not olds and self._is_free(path + name, entry):
                self._put(path + name, entry)
                self._whole.append(entry)
            elif entry.is_tree:
                below = own.oid if own is not None and own.is_tree else None
                self._add_tree(entry.oid, [old.oid for old in olds], f"{path}{name}/", below)
            else:
                self._add(path + name, entry, olds)
        if fixed:
            self._add_fixed(tree)

    def _is_free(self, path: str, entry: TreeEntry) -> bool:
        """Return whether a path is unused, so that a file or tree can be added there unread."""
        if self.known is not None or path in self._touched or self._get(path) is not None:
            return False
        if entry.is_tree:
            return not tree_union.has_deep_folders(self.git, f"{path}/", entry.oid)
        return tree_union.is_plain_segment(path, entry)

    def _add(self, path: str, entry: TreeEntry, before: Sequence[TreeEntry]) -> None:
        """Add the content that a file has and none of the files `before`, which were at its path."""
        here = self._get(path)
        segment = tree_union.is_plain_segment(path, entry)
        odd = isinstance(here, TreeEntry) and (here.is_tree or (segment and not here.mode.startswith("100")))
        if here == entry or odd:
            self._skipped = True  # entries that cannot be combined are left to the union
        elif segment:
            self._add_lines(path, entry, before, self._content(here))
        elif self.known is not None and self.known.has(path, entry):
            self._skipped = True
        else:
            best = (
                tree_union.greatest(self.git, [here, entry]) if isinstance(here, TreeEntry) else here or entry
            )
            if best != here:
                self._put(path, best)

    def _add_lines(self, path: str, entry: TreeEntry, before: Sequence[TreeEntry], here: bytes) -> None:
        """Add the lines of a segment to its present content `here`."""
        content = self.git.blob(entry.oid)
        old = [lines(self.git.blob(each.oid)) for each in before if each.mode.startswith("100")]
        known = self.known.lines(path) if self.known is not None else set()
        added = lines(content).difference(*old)
        fresh = added.difference(known, lines(here))
        self._skipped = self._skipped or len(fresh) < len(added)
        united = union(here, *fresh)
        if len(united) > ref.UNION_BYTES_MAX and united != content:
            self._add_overflow_segment(path, canonical(content), count_records(fresh))
        elif fresh:  # reuse an equal file: usual if only one clone writes it
            self._put(path, entry if united == content else united, count_records(fresh))

    def write(self, onto: str) -> str:
        """Write the commit on top of `onto`, whose tree this is. Return its id, or `onto` if nothing was added."""
        if not self.changes:
            return onto
        first, last = self.described[0], self.described[-1]
        author = Signature(first.author.name, first.author.mail, last.author.seconds, last.author.offset)
        text = message(self.described, self.count() if len(self.described) > 1 else 0)
        draft = Draft(self.changes, author, last.committer, text)
        return self.git.write([draft], onto)[0]

    def count(self) -> int:
        """Return the number of added records."""
        of_folders = (tree_union.new_lines(self.git, each.oid, []) for each in self._whole if each.is_tree)
        of_files = (count_records(lines(self.git.blob(each.oid))) for each in self._whole if not each.is_tree)
        return self._count + sum(of_folders) + sum(of_files)

    def _put(self, path: str, change: bytes | TreeEntry | None, count: int = 0) -> None:
        self.changes[path] = change
        self._count += count
        self._puts += 1
        self._touched.update(_folders_of(path))

    def _get(self, path: str) -> bytes | TreeEntry | None:
        if path in self.changes:
            return self.changes[path]
        for folder in _folders_of(path):
            whole = self.changes.get(folder)
            if isinstance(whole, TreeEntry):
                return ref.lookup(self.git, whole.oid, path[len(folder) + 1 :]) if whole.is_tree else None
        return ref.lookup(self.git, self.tree, path)

    def _content(self, here: bytes | TreeEntry | None) -> bytes:
        return self.git.blob(here.oid) if isinstance(here, TreeEntry) else here or b""

    def _add_overflow_segment(self, path: str, content: bytes, count: int) -> None:
        """Add a segment to a path that has no room for it, as the union of the trees does: the longer content stays there.

        Two contents that do not fit together have more than `UNION_BYTES_MAX`, and the shorter one moves on: so each
        further path has a file of more than half of that, and no peer can make many of them.
        """
        known = self.known.lines(path) if self.known is not None else set()
        if known.issuperset(lines(content)):
            self._skipped = True
            return
        changes: dict[str, bytes] = {}
        over = [content]
        while over:
            (moved,) = over
            here = self._get(path)
            if isinstance(here, TreeEntry) and not here.mode.startswith("100"):
                return  # nothing moves: left to the union
            old = canonical(self._content(here))
            united, over = tree_union.merge_segments([old, moved])
            if united != old:
                changes[path] = united
            if over:
                path = tree_union.overflow_path(path, *over)
        self._skipped = self._skipped or not changes
        for added, (path, united) in enumerate(changes.items()):
            self._put(path, united, 0 if added else count)

    def _add_fixed(self, tree: str) -> None:
        here = {name: entry for name in tree_union.FIXED if isinstance(entry := self._get(name), TreeEntry)}
        winners = tree_union.fixed(self.git, [here, self.git.tree(tree)])
        for name, entry in winners.items():
            if here.get(name) != entry:
                self._put(name, entry)


def _folders_of(path: str) -> list[str]:
    """Return the folders of a path, innermost first."""
    names = path.split("/")[:-1]
    return ["/".join(names[:end]) for end in range(len(names), 0, -1)]


def message(commits: Sequence[Commit], count: int) -> str:
    """Return the message of a squashed commit: its own if it is one commit, else a summary with a list.

    Args:
        count: The number of records that they add; unused for one commit.
    """
    if len(commits) == 1:
        return commits[0].message
    body: list[str] = []
    more = size = 0
    found: dict[str, None] = {}
    for commit in commits:
        number, listed = _listed(commit.message, SUBJECTS_MAX - len(body))
        more += number - len(listed)
        body += listed
        if size <= MESSAGE_BYTES_MAX:  # more would exceed the limit
            new = dict.fromkeys(trailers(commit.message))
            found.update(new)
            size += sum(map(len, new))
    keys: dict[str, int] = {}
    for each in found:
        keys.setdefault(each.partition(": ")[0], len(keys))
    ordered = sorted(found, key=lambda each: keys[each.partition(": ")[0]])
    head = summary(most_telling(body), count)
    if more:
        body.append(f"and {more:,} more")
    return f"{head}\n\n" + "\n".join(body) + "\n" + _fitting(ordered)


def _fitting(ordered: Iterable[str]) -> str:
    """Return a paragraph of trailers, cut to `MESSAGE_BYTES_MAX`."""
    kept, size = [], 0
    for each in ordered:
        size += len(each.encode("utf-8", "replace")) + 1
        if size > MESSAGE_BYTES_MAX:
            break
        kept.append(each + "\n")
    return "\n" + "".join(kept) if kept else ""


def _listed(text: str, most: int) -> tuple[int, list[str]]:
    """Return the subject of a message, or the list in the message of a squashed commit.

    Args:
        most: The number of items to return.

    Returns:
        The number of all items, and the first `most` of them.
    """
    subject, _, rest = text.strip("\n").partition("\n")
    shown, plus, others = subject.rpartition(" +")
    if plus and others.isdecimal():
        listed = rest.strip("\n").partition("\n\n")[0]
        if f"\n{listed}".find("\n" + shown.removesuffix("…")) >= 0:
            return listed.count("\n") + 1, [_plain(line) for line in listed.split("\n", most)[:most]]
    return 1, [_plain(subject)][:most]


def _plain(subject: str) -> str:
    kept = "".join(char for char in subject[: 4 * _SUBJECT_CHARS_MAX] if char.isprintable())
    return kept[:_SUBJECT_CHARS_MAX].strip() or "(no subject)"


def trailers(text: str) -> list[str]:
    """Return the lines `Key: value` that end a message, at most `MESSAGE_BYTES_MAX` of them."""
    _, gap, last = text.strip("\n").rpartition("\n\n")
    if len(last) > MESSAGE_BYTES_MAX:
        last = last[:MESSAGE_BYTES_MAX].rpartition("\n")[0]
    found = last.split("\n") if gap else []
    for line in found:
        key, colon, _ = line.partition(": ")
        if not colon or not key.replace("-", "").isalnum():
            return []
    return found
