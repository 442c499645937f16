"""Git's objects: the types of what is read and written, and the parsing and formatting of trees and commits.

Object ids are lower-case hex, paths are `/`-separated.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    Move = tuple[str, str | None, str]

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


class Signature(Struct):
    """Author or committer: `name`, `mail`, seconds since the epoch, offset from UTC as `+hhmm`."""

    name: str
    mail: str
    seconds: int
    offset: str = "+0000"


class Commit(Struct):
    """A commit as read: `message` is decoded as UTF-8, with undecodable bytes replaced."""

    tree: str
    parents: Sequence[str]
    author: Signature
    committer: Signature
    message: str


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


class PathChanges(Struct):
    """Changes of a path since a commit.

    Attributes:
        count: Number of commits that changed it.
        last: The newest of them, if known.
        gone: Whether the path no longer exists.
        at_least: Whether there may be more changes, beyond the limit of the walk.
    """

    count: int
    last: str | None
    gone: bool
    at_least: bool


class WorkTree(Struct):
    """Changes of a worktree against its HEAD: git's `stat`, and numbers of `changed` and `untracked` files.

    `stat` names at most forty files; its last line counts all of them.
    """

    stat: str
    changed: int
    untracked: int


EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
# The empty tree of each object format, by id length.
EMPTY_TREES = {40: EMPTY_TREE, 64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"}
_CRUD = str.maketrans(dict.fromkeys("<>\n\0"))
_HEX = frozenset("0123456789abcdef")


def is_oid(text: str) -> bool:
    """Return whether a text is a full object id, not a name or an option."""
    return len(text) in EMPTY_TREES and _HEX.issuperset(text)


def is_empty_tree(oid: str) -> bool:
    """Return whether an object id is that of the empty tree, in SHA-1 or SHA-256."""
    return EMPTY_TREES.get(len(oid)) == oid


def null_id(oid: str) -> str:
    """Return the null id ("no object") in the same object format as another id."""
    return "0" * len(oid)


def parse_tree(data: bytes, id_length: int = 40) -> dict[str, TreeEntry]:
    """Return one level of a tree by name. Names that are not UTF-8 keep their bytes as lone surrogates.

    Args:
        id_length: Number of hex digits of an object id in the tree's repository.
    """
    id_bytes = id_length // 2
    entries: dict[str, TreeEntry] = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        mode = data[at:space].decode("ascii").lstrip("0")
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        at = end + 1 + id_bytes
        entries[name] = TreeEntry(mode, data[end + 1 : at].hex())
    return entries


def format_tree(entries: Mapping[str, TreeEntry]) -> bytes:
    """Return the bytes of a tree, in git's order: folders sort as if their names ended in `/`."""
    rows = []
    for name, entry in entries.items():
        raw = name.encode("utf-8", "surrogateescape")
        rows.append((raw + b"/" if entry.is_tree else raw, raw, entry))
    rows.sort(key=lambda row: row[0])
    return b"".join(
        b"%s %s\0%s" % (entry.mode.encode("ascii"), raw, bytes.fromhex(entry.oid)) for _, raw, entry in rows
    )


def parse_commit(data: bytes) -> Commit:
    """Return a commit's fields.

    Raises:
        ValueError: the bytes are not a commit.
    """
    head, _, message = data.partition(b"\n\n")
    tree = ""
    parents: list[str] = []
    people: dict[bytes, Signature] = {}
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree" and not tree:
            tree = value.decode("ascii")
        elif key == b"parent":
            parents.append(value.decode("ascii"))
        elif key in (b"author", b"committer") and key not in people:
            people[key] = parse_signature(value)
    if len(tree) not in EMPTY_TREES or len(people) != 2:
        raise ValueError("no commit")
    return Commit(tree, parents, people[b"author"], people[b"committer"], message.decode("utf-8", "replace"))


def parse_signature(value: bytes) -> Signature:
    """Parse `Name <email> seconds +hhmm`; an invalid time becomes 0."""
    text = value.decode("utf-8", "replace")
    who, _, when = text.rpartition(">")
    name, _, mail = who.partition("<")
    seconds, _, offset = when.strip().partition(" ")
    if not (seconds.isdecimal() and seconds.isascii()):
        seconds, offset = "0", "+0000"
    return Signature(name.strip(), mail.partition(">")[0].strip(), int(seconds), offset)


def format_signature(signature: Signature) -> bytes:
    """Format a signature without characters that would break its line: angle brackets, newlines, invalid offsets."""
    name = signature.name.translate(_CRUD).strip() or "unknown"
    mail = signature.mail.translate(_CRUD).strip()
    offset = signature.offset
    if not (len(offset) == 5 and offset[0] in "+-" and offset[1:].isdecimal() and offset.isascii()):
        offset = "+0000"
    seconds = max(0, signature.seconds)
    return f"{name} <{mail}> {seconds} {offset}".encode("utf-8", "replace")


def format_message(message: str) -> bytes:
    """Return a commit message as bytes, without NUL, at which git would end it."""
    return message.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")


def format_commit(
    tree: str, parents: list[str], author: Signature, committer: Signature, message: str
) -> bytes:
    """Return the bytes of a commit object, as `git fast-import` writes them."""
    lines = [b"tree " + tree.encode("ascii")]
    lines += [b"parent " + parent.encode("ascii") for parent in parents]
    lines += [b"author " + format_signature(author), b"committer " + format_signature(committer)]
    return b"\n".join(lines) + b"\n\n" + format_message(message)


def path_parts(path: str) -> list[str]:
    """Return the names in a path.

    Raises:
        ValueError: git would reject the path in a tree.
    """
    parts = path.split("/")
    for part in parts:
        if part in ("", ".", "..") or part.lower() == ".git" or "\0" in part:
            raise ValueError(f"{path!r} is not a valid path in a tree")
    return parts


def plain_mode(entry: TreeEntry) -> str:
    """Return an entry's mode as git writes it today: old group-writable modes become the regular file mode."""
    mode = entry.mode.lstrip("0")
    if mode.startswith("100") and mode != "100755":
        return FILE_MODE
    return TREE_MODE if mode == TREE_MODE else mode
