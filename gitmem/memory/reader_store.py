"""The store as one reader sees it: the nodes that are private to it are rows of the same tables as those of the log.

Their lines stay in this clone, in files of their own that are never committed. The rows are marked by `node.private`, and a query of
the memory includes them without asking. `for_reader` alone decides who the reader is. Whatever makes something for others
reads the store itself, which has the log alone.
"""

from __future__ import annotations

import os

from .. import local_files, records
from ..errors import StoreError, UsageError
from ..index import catch_up, entities, index_file
from ..index.entities import View
from ..log.lines import CommitMessage, LogEntry
from ..log.local_log import Appended
from ..log.write_ahead import WriteAheadLog
from ..outcome import command
from ..store import Store
from ..text.digests import sha256
from . import node_tables, relations, stored_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..agents.caller import Caller
    from ..index.index_file import Index
    from ..log import write_ahead
    from ..repo import Repo

BYTES_MAX = 4 * 1024 * 1024  # of the private lines of one reader: all of them are read by each command
SEGMENT = "private"  # an entry must name a segment; these have none
STREAM = records.STREAMS["node"]


class PrivateLines:
    """The lines of one reader's private nodes.

    Args:
        folder: Their folder.
        now: Returns the wall clock in microseconds since the epoch.
        bytes_max: The most bytes of lines.

    Attributes:
        damaged: The number of damaged parts that `read` has met.
    """

    def __init__(self, folder: str, now: Callable[[], int], bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.wal = WriteAheadLog(folder, now, check_owner=True)
        self.damaged = 0

    def read(self) -> list[bytes]:
        """Return the lines, each once.

        Raises:
            StoreError: The folder is open to others, or has more than twice the most bytes (`private-nodes`).
        """
        files = self.files()
        if sum(file.size for file in files) > 2 * self.bytes_max:
            raise StoreError(
                f"Too many private nodes: {self.wal.folder} has more than {2 * self.bytes_max} bytes. Nothing was read.",
                hint="Move its files away, and create the nodes that you need again.",
                code="private-nodes",
                next=["gitmem doctor"],
            )
        self.damaged = 0
        found: dict[bytes, None] = {}
        for file in files:
            try:
                content = self.wal.read(file)
            except (OSError, ValueError):
                self.damaged += 1
                continue
            if content is not None:
                self.damaged += bool(content.damaged)
                found |= dict.fromkeys(self._lines(payload for payload, _ in content.entries))
        return list(found)

    def files(self) -> list[write_ahead.WalFile]:
        """Return their files.

        Raises:
            StoreError: The folder is open to others (`private-nodes`).
        """
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

    def append(self, lines: Sequence[tuple[str, bytes]], message: CommitMessage) -> None:
        """Append lines, synced to the disk.

        Raises:
            StoreError: Nothing was recorded.
        """
        size = sum(file.size for file in self.files()) + sum(len(line) for _, line in lines)
        if size > self.bytes_max:
            raise StoreError(
                f"Too many private nodes: {size} bytes; at most {self.bytes_max} are valid. Nothing was recorded.",
                hint="Record what others may know without --private.",
                code="private-nodes",
            )
        self.wal.append(LogEntry(lines, message, token=SEGMENT))


def root(repo: Repo) -> str:
    """Return the folder of the private nodes of this user, which may be missing."""
    return os.path.join(repo.state, f"private-{os.getuid()}")


def folder_of(repo: Repo, reader: str) -> str:
    """Return the folder of a reader's private nodes: an agent identity's, or that of a session without one."""
    return os.path.join(root(repo), sha256(reader.encode()).hexdigest()[:32])


def is_private(store: Store, text: str) -> bool:
    """Return whether an id, or the beginning of one, is that of a private node of this user, whoever its reader is."""
    top = root(store.repo)
    for name in sorted(local_files.names_in(top)):
        try:
            lines = PrivateLines(os.path.join(top, name), store.now).read()
        except StoreError:
            continue
        found = (records.read_kind("node", line) for line in lines if text.encode() in line)
        if any(record is not None and record["id"].startswith(text) for record in found):
            return True
    return False


def naming_error(id: str) -> UsageError:
    """Return the error for a line of the log that would name a private node."""
    return UsageError(
        f"Private node: {id}; only private nodes can name it. Nothing was written.",
        hint="A new private node may name it: `gitmem mem create --private`. Relations are in the log.",
        code="private-nodes",
        next=[f"gitmem show {id}"],
    )


FIRST_LINE = 1 << 40  # the number of the first private line: above those of all lines of the log
LOG = "log"  # the schema of the index of the log, beside that of the private lines


class ReaderStore(Store):
    """The store as one reader sees it: `db` has its private nodes, and `record` keeps lines that change these out of the log.

    It has the same state as the store of the clone, not a copy of it.

    Args:
        shared: The store of the clone.
        reader: The reader: an agent identity, or a session without one.
        creates: Whether new nodes are private, too.
    """

    __slots__ = ("_creates", "_is_attached", "_joined", "_joined_to", "_reader", "lines", "shared")

    def __init__(self, shared: Store, reader: str, *, creates: bool = False) -> None:
        self.__dict__ = shared.__dict__
        self.shared = shared
        self.lines = PrivateLines(folder_of(shared.repo, reader), shared.now)
        self._reader = reader
        self._creates = creates
        self._joined: Index | None = None
        self._joined_to: tuple[object, ...] = ()
        self._is_attached = False

    def db(self) -> sqlite3.Connection:
        """Return the index, caught up as `Store.db` does, with the rows of the private nodes; it is only read.

        Raises:
            StoreError: The private nodes cannot be read.
        """
        shared = super().db()
        self._is_attached = shared is self.index.db and self.index.writable
        state = (shared, catch_up.last_line(shared), *((file.path, file.size) for file in self.lines.files()))
        if self._joined is None or self._joined_to != state:
            self._leave()
            self._joined, self._joined_to = self._join(shared), state
            self._left.append(self._joined)  # to be closed with the others
        return self._joined.db

    def _join(self, shared: sqlite3.Connection) -> Index:
        """Return an index in memory with the rows of both; that of the log is attached, or else copied."""
        nodes = entities.view(node_tables.NODE, lambda: stored_nodes.FOLD)
        between = View(node_tables.RELATION_KINDS, node_tables.RELATION_DDL, relations.add_relations)
        found = index_file.in_memory((nodes, between), records.read)
        try:
            if not self._is_attached:  # in memory itself, or in a transaction that only its connection sees
                shared.backup(found.db)
                before = catch_up.last_line(found.db)
                catch_up.insert_lines(found, catch_up.OWN_FILE, self.lines.read())
                stored_nodes.mark_private(found.db, self._reader, before)
                return found
            found.reshape()
            catch_up.insert_lines_above(found, FIRST_LINE, self.lines.read())
            stored_nodes.mark_private(found.db, self._reader, FIRST_LINE)
            index_file.attach(found.db, index_file.path(self.repo, self.machine), LOG)
            stored_nodes.unite(found.db, LOG)
            relations.unite_superseded(found.db, LOG)
        except BaseException:
            found.close()
            raise
        return found

    def _leave(self) -> None:
        """Join the rows again when they are asked for."""
        if self._joined is not None:
            self._joined.close()
            self._left.remove(self._joined)
        self._joined = None

    def parts(self) -> tuple[Store, ...]:
        """Return the stores whose full-text indexes have all words: a private node is in no index on the disk."""
        from . import fts

        db = self.db()
        if not self._is_attached:
            return (self,)
        if not fts.is_started(db):
            fts.start(db, FIRST_LINE)
        return self.shared, self

    def replace_index(self, error: sqlite3.DatabaseError) -> None:
        """Replace the index of the log as `Store.replace_index` does."""
        self._leave()
        super().replace_index(error)

    def record(
        self, lines: Sequence[tuple[str, bytes]], message: CommitMessage, *, deferred: bool = False
    ) -> Appended:
        """Record lines: those that change private nodes in the files of the reader, all others in the log, which learns nothing of these.

        Raises:
            UsageError: Some lines change private nodes and others do not, or a line of the log would name one. Nothing was
                written.
            StoreError: Nothing was recorded.
        """
        own = [(stream, line) for stream, line in lines if stream == STREAM]
        if not self._changes_private(line for _, line in own):
            return super().record(lines, message, deferred=deferred)
        if self.collecting is not None:
            raise UsageError(
                "Private nodes cannot be written in a batch. Nothing was written.",
                hint="Write them before or after it.",
                code="private-nodes",
            )
        rest = [each for each in lines if each[0] != STREAM]  # what keeps the name of the session
        if rest:
            name = message.author.rpartition(" <")[0]
            super().record(rest, CommitMessage(message.author, f"{name}: is at work"), deferred=deferred)
        self.log.make_state()
        self.lines.append(own, message)
        return Appended(None)

    def _changes_private(self, lines: Iterable[bytes]) -> bool:
        """Return whether these lines change private nodes, rather than others.

        Raises:
            UsageError: They change both, or a line would tell others of a private node.
        """
        if self._creates:
            return True
        private = stored_nodes.private_ids(self.db())
        changed: set[str] = set()
        for line in lines:
            if (relation := records.read_kind("relation", line)) is not None:
                if relation["to_id"] in private and relation["from_id"] not in private:
                    raise naming_error(relation["to_id"])
                changed.add(relation["from_id"])
            elif (patch := records.read_kind("patch", line)) is not None:
                changed.update(patch["node_ids"])
        if changed.isdisjoint(private):
            return False
        if not changed <= private:
            raise UsageError(
                "Some of these nodes are private and others are not. Nothing was written.",
                hint="Change them by two commands.",
                code="private-nodes",
                next=[command("gitmem", "show", min(changed & private))],
            )
        return True


def for_reader(store: Store, find_caller: Callable[[], Caller | None]) -> Store:
    """Return the store as a caller sees it: with its private nodes if it has some. It is found only if somebody has some."""
    if isinstance(store, ReaderStore) or not os.path.lexists(root(store.repo)):
        return store
    caller = find_caller()
    if caller is None or not os.path.lexists(folder_of(store.repo, caller.reader)):
        return store
    return _reader_store(store, caller.reader)


def for_new(store: Store, caller: Caller) -> Store:
    """Return the store in which the nodes that a caller creates are private."""
    return _reader_store(
        store.shared if isinstance(store, ReaderStore) else store, caller.reader, creates=True
    )


def _reader_store(shared: Store, reader: str, *, creates: bool = False) -> Store:
    """Return the one store of its kind: a process that lives long joins the rows once."""
    key = reader, creates
    if key not in shared.readers:
        shared.readers[key] = ReaderStore(shared, reader, creates=creates)
    return shared.readers[key]


def parts(store: Store) -> tuple[Store, ...]:
    """Return the stores whose full-text indexes have the words of all nodes of a store."""
    return store.parts() if isinstance(store, ReaderStore) else (store,)


def by_place(store: Store, ids: Sequence[str]) -> list[list[str]]:
    """Return the nodes of the log, and the private ones, as two lists, without an empty one: one record changes only one of them."""
    private = stored_nodes.private_ids(store.db())
    lists = [id for id in ids if id not in private], [id for id in ids if id in private]
    return [each for each in lists if each]
