"""Private nodes, which never enter the log and stay in this clone, and ids of shared and private nodes."""

from __future__ import annotations

import os

from .. import atomic_write, records
from ..digests import sha256
from ..errors import StoreError, UsageError
from ..index import index_file, insert
from ..index.resolve_id import choose
from ..log.lines import LogEntry
from ..log.local_log import Appended
from ..log.wal import WriteAheadLog
from ..outcome import command
from ..records.ids import is_id
from ..store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from ..agents.caller import Caller
    from ..log import wal_files
    from ..log.lines import CommitMessage
    from ..order.node import VersionedNode
    from ..repo import Repo

    FindCaller = Callable[[], Caller | None]
    Item = TypeVar("Item")


BYTES_MAX = 4 * 1024 * 1024  # of the private lines of one reader: all of them are read by each command
SEGMENT = "private"  # an entry must name a segment; these have none
STREAM = records.STREAMS["node"]


class PrivateStore(Store):
    """The private nodes of one reader, as a store for the functions of the memory.

    It has the clock, git and settings of the clone's store, and lines and an index of its own.

    Args:
        shared: The store of the clone.
        folder: The folder of the reader's lines.
        bytes_max: The most bytes of lines.

    Raises:
        StoreError: The folder is open to others, or has more than twice the most bytes (`private-nodes`).
    """

    def __init__(self, shared: Store, folder: str, bytes_max: int = BYTES_MAX) -> None:
        self.__dict__.update(shared.__dict__)
        self.shared = shared
        self.bytes_max = bytes_max
        self.wal = WriteAheadLog(folder, shared.now, check_owner=True)
        self._ahead = self.snapshot = None
        self.after_record = None
        self._index = index_file.in_memory(shared.domain.views(shared.keys), records.read)
        self._index.reshape()
        self.damaged = 0
        self._fill()

    def _fill(self) -> None:
        files = self._files()
        if sum(file.size for file in files) > 2 * self.bytes_max:
            raise StoreError(
                f"Too many private nodes: {self.wal.folder} has more than {2 * self.bytes_max} bytes. Nothing was read.",
                hint="Move its files away, and create the nodes that you need again.",
                code="private-nodes",
                next=["gitmem doctor"],
            )
        found: list[bytes] = []
        for file in files:
            try:
                content = self.wal.read(file)
            except (OSError, ValueError):
                self.damaged += 1
                continue
            if content is not None:
                self.damaged += bool(content.damaged)
                found += self._lines(payload for payload, _ in content.entries)
        insert.lines(self.index, 1, list(dict.fromkeys(found)))

    def _files(self) -> list[wal_files.WalFile]:
        if os.path.lexists(self.wal.folder) and not self.wal.is_ours():
            raise StoreError(
                f"The folder of private nodes is open to others or not yours: {self.wal.folder}. Nothing was read.",
                hint="Its mode and that of the folder above must be 700, and both must belong to you.",
                code="private-nodes",
                next=["gitmem doctor --fix"],
            )
        return self.wal.files()

    def _lines(self, payloads: Iterable[bytes]) -> Iterator[bytes]:
        for payload in payloads:
            try:
                entry = LogEntry.decode(payload)
            except (ValueError, RecursionError):
                self.damaged += 1
                continue
            yield from (line for stream, line in entry.lines if stream == STREAM)

    @property
    def index(self) -> index_file.Index:
        """The index of the private lines alone, in memory."""
        assert self._index is not None
        return self._index

    def db(self) -> sqlite3.Connection:
        """Return the index of the private lines."""
        return self.index.db

    def replace_index(self, error: sqlite3.DatabaseError) -> None:
        """Raise the error: there is nothing else to read."""
        raise error

    def record(
        self, lines: Sequence[tuple[str, bytes]], message: CommitMessage, *, deferred: bool = False
    ) -> Appended:
        """Append lines to the private ones, synced to the disk. Private lines are never committed.

        Raises:
            StoreError: Nothing was recorded.
        """
        if self.collecting is not None:
            raise UsageError(
                "Private nodes cannot be written in a batch. Nothing was written.",
                hint="Write them before or after it.",
                code="private-nodes",
            )
        own = [(stream, line) for stream, line in lines if stream == STREAM]
        size = sum(file.size for file in self._files()) + sum(len(line) for _, line in own)
        if size > self.bytes_max:
            raise StoreError(
                f"Too many private nodes: {size} bytes; at most {self.bytes_max} are valid. Nothing was recorded.",
                hint="Record what others may know without --private.",
                code="private-nodes",
            )
        if own:
            self.shared.log.make_state()
            self.wal.append(LogEntry(own, message, token=SEGMENT))
            insert.lines(self.index, 1, [line for _, line in own])
        return Appended(None)

    def close(self, *, closes_index: bool = True) -> None:
        """Close the index of the private lines; the rest belongs to the clone's store."""
        self.index.close()


def root(repo: Repo) -> str:
    """Return the folder of the private nodes of this user, which may be missing."""
    return os.path.join(repo.state, f"private-{os.getuid()}")


def folder_of(repo: Repo, reader: str) -> str:
    """Return the folder of a reader's private nodes: an agent identity's, or that of a session without one."""
    return os.path.join(root(repo), sha256(reader.encode()).hexdigest()[:32])


def open_for(store: Store, caller: Caller) -> PrivateStore:
    """Return the private nodes of a caller, perhaps none.

    Raises:
        StoreError: They cannot be read.
    """
    return PrivateStore(store, folder_of(store.repo, caller.reader))


def is_private(store: Store, id: str) -> bool:
    """Return whether a node id belongs to a private node of this user, whoever its reader is."""
    if isinstance(store, PrivateStore):
        store = store.shared
    top = root(store.repo)
    for name in sorted(atomic_write.names_in(top)):
        try:
            own = PrivateStore(store, os.path.join(top, name))
        except StoreError:
            continue
        if own.db().execute("SELECT 1 FROM node WHERE id = ?", (id,)).fetchone():
            return True
    return False


NODE_PREFIX = "mem-"


def find_node(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the node id for an id or a unique prefix; hidden nodes count, too.

    Raises:
        UsageError: None or several match; the error has the candidates.
    """
    text = validate_id(text)
    if db.execute("SELECT 1 FROM node WHERE id = ?", (text,)).fetchone():
        return text
    start = NODE_PREFIX + text.removeprefix(NODE_PREFIX)
    rows = db.execute("SELECT id FROM node WHERE id >= ? AND id < ? LIMIT 5", (start, start + "\U0010ffff"))
    found = [str(id) for (id,) in rows] if start != NODE_PREFIX else []
    lists = ("gitmem mem list", "gitmem mem list --include-archived")
    return choose(start if found else text, found, "node", "mem show", lists, writing=writing)


def validate_id(id: object) -> str:
    """Check that an id is a string: callers of the library may pass other objects.

    Raises:
        UsageError: The id is not a string.
    """
    if not isinstance(id, str):
        raise UsageError(
            f"Invalid id of type {type(id).__name__}; it must be text such as mem-0123456789ab. "
            "Nothing was written.",
            hint="Use `.id` of a node, or `.node.id` of the result that created it.",
            code="bad-id",
        )
    return id


def is_node_in(db: sqlite3.Connection, text: str) -> bool:
    """Return whether an id, or a prefix of six characters or more after the dash, names a node of an index."""
    try:
        find_node(db, text, writing=True)
    except UsageError as error:
        return error.code == "ambiguous-id"
    return True


def find_or_accept(store: Store, text: str) -> tuple[str, str | None]:
    """Return the node id for a relation. A whole id that is not in this log is accepted, with a warning.

    A private node may name nodes of the log, but no line of the log names a private node.

    Raises:
        UsageError: As in `find`, for a prefix; or the log would name a private node.
    """
    db = store.db()
    if isinstance(store, PrivateStore) and not is_node_in(db, text):
        store = store.shared
        return find_node(store.db(), text, writing=True), None
    try:
        return find_node(db, text, writing=True), None
    except UsageError as error:
        if error.code != "unknown-id" or not is_id("mem", text):
            raise
    if is_private(store, text):
        raise UsageError(
            f"Private node: {text}; only private nodes can name it. Nothing was written.",
            hint="Use --private for the new node, too.",
            code="private-nodes",
            next=[f"gitmem mem show {text}"],
        )
    return (
        text,
        f"{text} is not in this log yet: the relation takes effect when it arrives, perhaps with `gitmem sync`.",
    )


def of_caller(store: Store, find_caller: FindCaller | None) -> PrivateStore | None:
    """Return the private nodes of a caller, or None if it has none. The caller is found only if somebody has some.

    Raises:
        StoreError: They cannot be read.
    """
    if find_caller is None or isinstance(store, PrivateStore) or not os.path.lexists(root(store.repo)):
        return None
    caller = find_caller()
    if caller is None or not os.path.lexists(folder_of(store.repo, caller.reader)):
        return None
    return open_for(store, caller)


def holding(store: Store, caller: Caller, node_ids: Sequence[str]) -> Store:
    """Return the store that has the nodes to change: the private one of the caller if they are private.

    Raises:
        UsageError: Some of them are private and others are not. Nothing was written.
    """
    own = of_caller(store, lambda: caller)
    private = [id for id in node_ids if own is not None and is_node_in(own.db(), id)]
    if own is None or not private:
        return store
    if len(private) < len(node_ids):
        raise UsageError(
            "Some of these nodes are private and others are not. Nothing was written.",
            hint="Change them by two commands.",
            code="private-nodes",
            next=[command("gitmem", "mem", "show", private[0])],
        )
    return own


def mark(nodes: Iterable[VersionedNode]) -> None:
    """Mark nodes as private, for those who show them."""
    for node in nodes:
        node.private = True


def merge(one: Sequence[Item], other: Sequence[Item], key: Callable[[Item], object]) -> Iterator[Item]:
    """Yield the items of two lists by a key; the order within each list stays."""
    first, second = list(one), list(other)
    while first and second:
        yield (first if key(first[0]) <= key(second[0]) else second).pop(0)  # type: ignore[operator]  # keys are comparable
    yield from first
    yield from second
