"""What gitmem asks of git: objects, one tree at a time, and a compare-and-swap on a ref.

Two implementations keep this contract (`tests/contracts/test_git_port.py`): they differ in how they read.
`inprocess` reads through dulwich, where the process lives on, and `plumbing` through the git program, for
one-shot commands. Object ids are lower-case hex, paths are `/`-separated.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    Move = tuple[str, str | None, str]
else:
    Protocol = object

TREE_MODE = "40000"
FILE_MODE = "100644"


class Entry:
    """A name's target in a tree: `mode` as git writes it (octal, no leading zero) and object id."""

    __slots__ = ("mode", "oid")

    def __init__(self, mode: str, oid: str) -> None:
        self.mode = mode
        self.oid = oid

    @property
    def is_tree(self) -> bool:
        return self.mode == TREE_MODE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and (self.mode, self.oid) == (other.mode, other.oid)

    def __hash__(self) -> int:
        return hash((self.mode, self.oid))

    def __repr__(self) -> str:
        return f"Entry({self.mode!r}, {self.oid!r})"


class Signature:
    """Who and when: `name`, `mail`, seconds since the epoch, offset from UTC as `+hhmm`."""

    __slots__ = ("mail", "name", "offset", "seconds")

    def __init__(self, name: str, mail: str, seconds: int, offset: str = "+0000") -> None:
        self.name = name
        self.mail = mail
        self.seconds = seconds
        self.offset = offset


class Commit:
    """A commit as read: `message` is decoded as UTF-8, undecodable bytes replaced."""

    __slots__ = ("author", "committer", "message", "parents", "tree")

    def __init__(
        self, tree: str, parents: Sequence[str], author: Signature, committer: Signature, message: str
    ) -> None:
        self.tree = tree
        self.parents = list(parents)
        self.author = author
        self.committer = committer
        self.message = message


class Draft:
    """A commit to be written on top of another one.

    Args:
        changes: Path to new content (bytes), to an object that exists (`Entry`,
            a file or a whole folder), or to None where the path goes away.
            Applied to the parent's tree, or to `tree` where one is given.
        tree: The tree to start from; None for the parent's (the empty tree without a parent).
    """

    __slots__ = ("author", "changes", "committer", "message", "tree")

    def __init__(
        self,
        changes: Mapping[str, bytes | Entry | None],
        author: Signature,
        committer: Signature,
        message: str,
        tree: str | None = None,
    ) -> None:
        self.changes = dict(changes)
        self.author = author
        self.committer = committer
        self.message = message
        self.tree = tree


class Behind:
    """How far a path moved on since a commit.

    Args:
        count: How many commits changed it that the other one lacks.
        last: The newest of them, where it is known.
        gone: Whether it is there no more.
        at_least: Whether there may be more, further back than was looked.
    """

    __slots__ = ("at_least", "count", "gone", "last")

    def __init__(self, count: int, last: str | None, gone: bool, at_least: bool) -> None:
        self.count = count
        self.last = last
        self.gone = gone
        self.at_least = at_least


class WorkTree:
    """What is in a worktree and not in its HEAD: git's `stat` of it, and how many files are `changed`, or `untracked`.

    `stat` names at most forty files; its last line counts all of them.
    """

    __slots__ = ("changed", "stat", "untracked")

    def __init__(self, stat: str, changed: int, untracked: int) -> None:
        self.stat = stat
        self.changed = changed
        self.untracked = untracked


class Git(Protocol):
    """The port. Every method raises `StoreError` where git itself cannot be used."""

    def tip(self, ref: str) -> str | None:
        """The commit that a ref names now, or None."""

    def refs(self, prefix: str) -> dict[str, str]:
        """Every ref whose full name starts with `prefix` (which ends in `/`), with its target."""

    def has(self, oid: str) -> bool:
        """Whether the object is in this repository, and whole enough to be read."""

    def tree(self, oid: str) -> dict[str, Entry]:
        """One level of a tree. KeyError where the object is missing."""

    def raw_tree(self, oid: str) -> bytes:
        """One level of a tree as git stores it. KeyError where the object is missing."""

    def heads(self, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Kind (`blob`, `tree`, `commit`) and size of objects, without reading them. Those that are missing are left out."""

    def blob(self, oid: str) -> bytes:
        """The content of a file. KeyError where the object is missing."""

    def commit(self, oid: str) -> Commit:
        """Read a commit. Raises: KeyError where the object is missing or is no commit."""

    def history(self, tip: str, without: Iterable[str] = ()) -> list[str]:
        """Commits that `tip` reaches and none of `without` does, parents before children."""

    def contains(self, tip: str, oid: str) -> bool:
        """Whether `oid` is `tip` or an ancestor of it."""

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Write a chain of commits, the first on `onto` (None: a root). No ref moves.

        All objects are in one pack that is fsynced before this returns, and that no gc takes until a ref has
        moved to the last commit or the port is closed. The oids, in order.
        """

    def swap(self, ref: str, old: str | None, new: str, why: str, also: Sequence[Move] = ()) -> bool:
        """Move a ref from `old` (None: it must not exist) to `new`, and say `why` in its reflog.

        False where it is not at `old`, or is locked by somebody; durable when True. So it is with those that are to move
        `also` (ref, old and new): all or none of them have moved.
        """

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        """Write one commit onto `old` and move the ref to it: its oid, or None where the race was lost.

        When it is not None, the ref has been moved and what it reached before is still reached.
        """

    def config(self, pattern: str) -> dict[str, str]:
        """The last value of every config key that matches the extended regular expression.

        Keys as `git config --get-regexp` prints them. Reads all scopes, as git would.
        """

    def version(self) -> str:
        """The version of the git program, such as `2.39.5`."""

    def head(self, git_dir: str) -> tuple[str | None, str | None]:
        """The commit that a worktree's HEAD is at, and its branch such as `main`; None for what there is not.

        Args:
            git_dir: The worktree's own git folder.
        """

    def branch(self, git_dir: str) -> str | None:
        """The branch that a worktree is on, from its HEAD file alone; None where that does not say."""

    def find_commit(self, git_dir: str, text: str) -> str | None:
        """The commit that a text such as `HEAD~3` names in a worktree, or None."""

    def behind(self, tip: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Behind]:
        """Of pairs of commit and path (a file or a folder), those whose path moved on.

        That is: it is not the same at `tip`, and commits that `tip` reaches and the pair's commit does not
        changed it. Where it was not in that commit, the first of them brought it, and does not count. A
        commit that is missing here is left out.
        """

    def commits_since(self, old: str, new: str) -> list[tuple[str, str]]:
        """Id and subject of the commits that `new` reaches and `old` does not, newest first.

        KeyError where one of them is missing.
        """

    def files_between(self, old: str, new: str) -> list[str]:
        """The files that are not the same in two commits. KeyError where one of them is missing."""

    def work_tree(self, git_dir: str, folder: str) -> WorkTree:
        """What is in a worktree and not in its HEAD; files that git ignores do not count.

        Args:
            git_dir: The worktree's own git folder.
            folder: Its top.
        """

    def break_stale_lock(self, ref: str, age_seconds: float) -> bool:
        """Remove the ref's `.lock` if it is older than that. Only the holder of our own lock may ask."""

    def close(self) -> None:
        """End helper processes and close files."""
