"""The store as one reader sees it: the nodes that are private to it are rows of the same tables as those of the log.

They are marked by `node.private`, and a query of the memory includes them without asking. `for_reader` alone decides who the reader
is. Whatever makes something for others reads the store itself, which has the log alone.
"""

from __future__ import annotations

import os

from .. import records
from ..errors import UsageError
from ..index import entities, index_file, insert
from ..index.entities import View
from ..log.local_log import Appended
from ..outcome import command
from ..store import Store
from . import node_tables, relations, stored_nodes
from .private_nodes import STREAM, PrivateLines, folder_of, naming_error, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from ..agents.caller import Caller
    from ..index.index_file import Index
    from ..log.lines import CommitMessage

FIRST_LINE = 1 << 40  # the number of the first private line: above those of all lines of the log
LOG = "log"  # the schema of the index of the log, beside that of the private lines
_OF_INDEX_ALONE = ("meta", "file", "skipped", "superseded")


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
        (newest,) = shared.execute("SELECT max(id) FROM line").fetchone()
        state = (shared, newest, *((file.path, file.size) for file in self.lines.files()))
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
                self._insert(found)
                return found
            found.reshape()
            found.db.execute("INSERT INTO line (id) VALUES (?)", (FIRST_LINE,))
            self._insert(found)
            found.db.execute("DELETE FROM line WHERE id = ?", (FIRST_LINE,))
            index_file.attach(found.db, index_file.path(self.repo, self.machine), LOG)
            _unite(found.db)
        except BaseException:
            found.close()
            raise
        return found

    def _insert(self, index: Index) -> None:
        (before,) = index.db.execute("SELECT max(id) FROM line").fetchone()
        insert.lines(index, 1, self.lines.read())
        own = "SELECT id FROM entity_line WHERE kind = 'node' AND event = 'node' AND line > ?"
        index.db.execute(f"UPDATE node SET private = ? WHERE id IN ({own})", (self._reader, before or 0))

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
        """Record lines: those that change private nodes in the files of the reader, all others in the log.

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
        private = self.private_ids()
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
                next=[command("gitmem", "mem", "show", min(changed & private))],
            )
        return True

    def private_ids(self) -> set[str]:
        """Return the ids of the private nodes."""
        return {id for (id,) in self.db().execute("SELECT id FROM node WHERE private IS NOT NULL")}


def _unite(db: sqlite3.Connection) -> None:
    """Let the names of the memory's tables stand for the rows of the log and the private ones."""
    tables = db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in tables:
        if name not in _OF_INDEX_ALONE:
            db.execute(
                f"CREATE TEMP VIEW {name} AS SELECT * FROM {LOG}.{name} UNION ALL SELECT * FROM main.{name}"
            )
    replaced = db.execute("SELECT from_id, to_id FROM main.relation WHERE type = 'supersedes'").fetchall()
    if not replaced:
        db.execute(f"CREATE TEMP VIEW superseded AS SELECT * FROM {LOG}.superseded")
        return
    db.execute(f"CREATE TEMP TABLE superseded AS SELECT * FROM {LOG}.superseded")
    relations.update_superseded(db, {id for ends in replaced for id in ends}, ())


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
    private = store.private_ids() if isinstance(store, ReaderStore) else set()
    lists = [id for id in ids if id not in private], [id for id in ids if id in private]
    return [each for each in lists if each]
