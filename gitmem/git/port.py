"""Types of the port (`plumbing.Git`). Object ids are lower-case hex, paths are `/`-separated."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    Move = tuple[str, str | None, str]

TREE_MODE = "40000"
FILE_MODE = "100644"


class TreeEntry:
    """An entry of a tree: `mode` as git writes it (octal, without leading zero) and object id."""

    __slots__ = ("mode", "oid")

    def __init__(self, mode: str, oid: str) -> None:
        self.mode = mode
        self.oid = oid

    @property
    def is_tree(self) -> bool:
        """Whether the entry is a folder."""
        return self.mode == TREE_MODE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeEntry) and (self.mode, self.oid) == (other.mode, other.oid)

    def __hash__(self) -> int:
        return hash((self.mode, self.oid))

    def __repr__(self) -> str:
        return f"TreeEntry({self.mode!r}, {self.oid!r})"


class Signature:
    """Author or committer: `name`, `mail`, seconds since the epoch, offset from UTC as `+hhmm`."""

    def __init__(self, name: str, mail: str, seconds: int, offset: str = "+0000") -> None:
        self.name = name
        self.mail = mail
        self.seconds = seconds
        self.offset = offset


class Commit:
    """A commit as read: `message` is decoded as UTF-8, with undecodable bytes replaced."""

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
        changes: Path to new content (bytes), to an existing object (`TreeEntry`, a file or a whole folder), or to None
            to remove the path. Applied to the parent's tree, or to `tree` if given.
        tree: The tree to start from; None for the parent's (the empty tree without a parent).
    """

    __slots__ = ("author", "changes", "committer", "message", "tree")

    def __init__(
        self,
        changes: Mapping[str, bytes | TreeEntry | None],
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


class PathChanges:
    """Changes of a path since a commit.

    Args:
        count: Number of commits that changed it.
        last: The newest of them, if known.
        gone: Whether the path no longer exists.
        at_least: Whether there may be more changes, beyond the limit of the walk.
    """

    def __init__(self, count: int, last: str | None, gone: bool, at_least: bool) -> None:
        self.count = count
        self.last = last
        self.gone = gone
        self.at_least = at_least


class WorkTree:
    """Changes of a worktree against its HEAD: git's `stat`, and numbers of `changed` and `untracked` files.

    `stat` names at most forty files; its last line counts all of them.
    """

    def __init__(self, stat: str, changed: int, untracked: int) -> None:
        self.stat = stat
        self.changed = changed
        self.untracked = untracked


if TYPE_CHECKING:

    class ObjectReads(Protocol):
        """The reads of `plumbing.Git` that drafts and history walks need."""

        def commit(self, oid: str) -> Commit:
            """Return a commit."""
            ...

        def tree(self, oid: str) -> Mapping[str, TreeEntry]:
            """Return one level of a tree by name."""
            ...

        def heads(self, oids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
            """Return kind (`blob`, `tree`, `commit`) and size of objects; omit missing ones."""
            ...
