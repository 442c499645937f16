"""The index file: its core tables, how it is opened and rebuilt, and snapshots of it.

`file` has the path and object id of every folder and segment that was read. `line` has every line once, even if several
files have it. A `View` derives tables of its own from lines of some kinds.

The rows of `file` with a negative id show how far the write-ahead logs were read: `parent` is the folder and two
slashes, `name` the name of the file, `oid` two numbers: the offset behind the last record that was read, and the
size of the file then. A snapshot is the index as it is, for queries that must be fast: without updating it first.

SQLite is imported without its Python wrapper, which also loads datetime and collections.abc: a third of an empty Python.
"""

from __future__ import annotations

import os

from .. import local_files
from ..errors import GitmemError, StoreError
from ..git.files import LOG_REF, plain_tip
from ..log import write_ahead
from ..log.lines import HEAD_BYTES
from ..outcome import Struct
from ..text.digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import TypeVar

    from ..log.local_log import LocalLog
    from ..log.write_ahead import WalFile, WriteAheadLog
    from ..repo import Repo
    from .entities import Reader, View

    Row = tuple[str, str]
    T = TypeVar("T")
else:
    try:
        import _sqlite3 as sqlite3
    except ImportError:  # not CPython
        import sqlite3

READER_MILLISECONDS = 3_000  # then a reader continues with an index of its own in memory
AFTER_COMMIT_MILLISECONDS = 1_000  # then the next reader updates the index
COPY_SECONDS = 0.5
CACHE_KILOBYTES = 16 * 1024  # of an index that spills
TIDY_MILLISECONDS = 100  # timeout for readers to end; else the next committer checkpoints SQLite's log
OPTIONAL_READ_SECONDS = 0.1  # for an optional read of the present index
UNUSABLE: set[str] = set()  # damaged files that this process could not remove
STEPS_AT_ONCE = 1_000  # of SQLite's virtual machine, between two looks at a `StepLimit`


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error says that another process holds a lock on the file."""
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))


class BusyWait(Struct):
    """A context with the lock timeout for work after a commit. A timeout ends the context without an error."""

    db: sqlite3.Connection

    def __enter__(self) -> None:
        self.db.execute(f"PRAGMA busy_timeout = {AFTER_COMMIT_MILLISECONDS}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.db.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
        return isinstance(error, sqlite3.DatabaseError) and is_busy(error)


class StepLimit(Struct):
    """Runs queries until a number of steps is used up. It counts steps, not time.

    A query counts as at least 1,000 steps, which is about the cost of starting it.

    Attributes:
        most: Steps in all; 20,000,000 take about a second.
    """

    _db: sqlite3.Connection
    _left: int

    def ask(self, question: Callable[..., T], *given: object) -> T | None:
        """Return the result of a query with these values; None if the budget is used up."""
        if self._left <= 0:
            return None
        self._left -= STEPS_AT_ONCE
        self._db.set_progress_handler(self._is_over, STEPS_AT_ONCE)
        try:
            return question(*given)
        except sqlite3.OperationalError:
            if self._left > 0:
                raise
            return None
        finally:
            self._db.set_progress_handler(None, 0)

    def _is_over(self) -> bool:
        self._left -= STEPS_AT_ONCE
        return self._left <= 0


CORE_VERSION = 4
KEPT = ("lost", "before", "before_file")  # tables of `lost_lines`, which `reshape` keeps
LOST = "CREATE TABLE lost (key BLOB PRIMARY KEY, epoch INTEGER, path TEXT, body TEXT)"
LAZY = "memory_words*"  # what the search makes when it is used
CORE = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    # A folder's path ends in `/`, the root's is empty. Files of write-ahead logs have negative ids, see `WalTails`.
    "CREATE TABLE file (id INTEGER PRIMARY KEY, parent TEXT, name TEXT, oid TEXT, UNIQUE (parent, name))",
    # `key` is the start of the line's SHA-256: equal bytes in two files are one line.
    "CREATE TABLE line (id INTEGER PRIMARY KEY, file INTEGER, key BLOB UNIQUE, at TEXT, kind TEXT, body TEXT)",
    # Lines that a view could not process: they are kept, and `doctor` reports their number.
    "CREATE TABLE skipped (line INTEGER PRIMARY KEY)",
    # Ids of files start above 1: otherwise the first file after one of a write-ahead log would get the id 0.
    "INSERT INTO file VALUES (1, NULL, '', '')",
    "CREATE INDEX line_file ON line (file)",
    "CREATE INDEX line_kind_at ON line (kind, at)",
    # The lines of entities, see `entities`.
    "CREATE TABLE entity_line (kind TEXT, id TEXT, line INTEGER, event TEXT, sender TEXT, session TEXT,"
    " PRIMARY KEY (kind, id, line)) WITHOUT ROWID",
    "CREATE INDEX entity_line_of ON entity_line (kind, line)",
    # What attestations have of lines with a salt, for those with their texts.
    "CREATE TABLE salted (digest BLOB PRIMARY KEY, line INTEGER) WITHOUT ROWID",
    # See `catch_up`: lines that no attestation covers yet, with the number of their file; and lines of which one is awaited no more, but
    # which speak for another writer that has not allowed it: `speaks` has these addresses.
    "CREATE TABLE held (key BLOB PRIMARY KEY, digest BLOB, writer TEXT, file INTEGER, line BLOB, speaks TEXT) WITHOUT ROWID",
    "CREATE INDEX held_file ON held (file)",
    "CREATE INDEX held_digest ON held (digest)",
    "CREATE INDEX held_speaks ON held (speaks, writer)",
    # What was attested before it has arrived, perhaps never: a row for 22 characters of the log.
    "CREATE TABLE awaited (digest BLOB, writer TEXT, PRIMARY KEY (digest, writer)) WITHOUT ROWID",
    # The lines that writers have forgotten, and those in the log that count in their reduced form, by the keys that they have there.
    "CREATE TABLE forgotten (digest BLOB, writer TEXT, PRIMARY KEY (digest, writer)) WITHOUT ROWID",
    "CREATE TABLE whole (key BLOB PRIMARY KEY, digest BLOB, file INTEGER) WITHOUT ROWID",
    # See `grants`: who may write as addresses of a writer, "" for all of them, and as whom a writer goes on.
    "CREATE TABLE granted (words TEXT, other TEXT, writer TEXT, PRIMARY KEY (words, other, writer)) WITHOUT ROWID",
    "CREATE TABLE accepted (writer TEXT, other TEXT, at TEXT, PRIMARY KEY (writer, other)) WITHOUT ROWID",
)
OF_LINES = (
    "meta",
    "file",
    "line",
    "salted",
    "held",
    "awaited",
    "forgotten",
    "whole",
    "granted",
    "accepted",
)  # not made from the lines that count


class Index:
    """An open index.

    Args:
        views: The views to keep. If they have an attribute `shape`, it is used without asking them.
        read: Returns the record of a line, None if it is not one.
        writable: Whether this process may write the file.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        views: Iterable[View],
        read: Reader,
        *,
        writable: bool = True,
    ) -> None:
        self.db = connection
        self.views = views
        self.read = read
        self.writable = writable
        # Whether rows were made of texts that are forgotten, see `catch_up.settle`.
        self.has_forgotten = False
        self._shape: tuple[int, int] | None = getattr(views, "shape", None)

    @property
    def tip(self) -> str | None:
        """The tip that the index has read, or None before the first one."""
        row = self.db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone()
        return row[0] if row else None

    def skipped(self) -> int:
        """Return the number of lines that a view could not process."""
        return int(self.db.execute("SELECT count(*) FROM skipped").fetchone()[0])

    def shape(self) -> tuple[int, int]:
        """Return the expected `PRAGMA user_version`, and the digest of the statements that make all tables."""
        if self._shape is None:
            db = sqlite3.connect(":memory:", isolation_level=None)
            for statement in (*CORE, *(each for view in self.views for each in view.ddl)):
                db.execute(statement)
            self._shape = self._number(), _digest(db)
            db.close()
        return self._shape

    def _number(self) -> int:
        """Return the first part of `shape`, without making the tables."""
        if self._shape is not None:
            return self._shape[0]
        text = repr([CORE_VERSION, CORE, [(view.version, view.ddl) for view in self.views]])
        return int.from_bytes(text.encode(), "big") % 0x7FFFFFFF

    def is_shaped(self) -> bool:
        """Return whether the tables have the expected shape.

        Raises:
            sqlite3.DatabaseError: They say so, and have another one.
        """
        return has_shape(self.db, self.shape())

    def reshape(self, kept: Sequence[str] = KEPT) -> None:
        """Empty all tables except `kept`; readers see the old content until the caller's transaction commits."""
        tables = self.db.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')"
            " AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
        ).fetchall()
        for type, name, sql in tables:
            if name not in kept or type != "table" or (name == "lost" and sql != LOST):
                name = name.replace('"', '""')
                self.db.execute(f'DROP {type} IF EXISTS "{name}"')
        for statement in CORE:
            words = statement.split()
            if words[4 if words[1] == "INDEX" else 2] not in kept:
                self.db.execute(statement)
        for view in self.views:
            for statement in view.ddl:
                self.db.execute(statement)
        self.db.execute(f"PRAGMA user_version = {self._number()}")

    def close(self) -> None:
        """Close the connection to the index."""
        self.db.close()


def has_shape(db: sqlite3.Connection, shape: tuple[int, int]) -> bool:
    """Return whether an index has a shape, by its number.

    Raises:
        sqlite3.DatabaseError: It has this number, but other tables, views, indexes or triggers: somebody has put it there.
    """
    if db.execute("PRAGMA user_version").fetchone()[0] != shape[0]:
        return False
    if _digest(db) != shape[1]:
        raise sqlite3.DatabaseError("malformed: the schema of the index is not gitmem's")
    return True


def _digest(db: sqlite3.Connection) -> int:
    """Return a number for the statements that made all tables, views, indexes and triggers, but those made when needed."""
    (text,) = db.execute(  # in an order of its own: `reshape` keeps some tables and makes the others again
        "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_master WHERE sql <> ?"
        " AND NOT (type IN ('table', 'index') AND name GLOB ? AND replace(sql, 'PRIMARY KEY(', '') NOT LIKE '%(%(%')"  # an expression has parentheses
        " ORDER BY sql)",
        (LOST, LAZY),
    ).fetchone()
    return int.from_bytes(sha256((text or "").encode()).digest()[:6], "big")


def can_write(db: sqlite3.Connection) -> bool:
    """Return whether this gitmem can write to the log that an index has read, or the log has no tip yet."""
    row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    return row is None or bool(row[0])


def as_text(path: str) -> str:
    """Return a path as text for SQLite; bytes that are not UTF-8 are escaped."""
    return path if path.isascii() else path.encode("utf-8", "backslashreplace").decode()


def path(repo: Repo, machine: str) -> str:
    """Return the path of this machine's index: a host and a container that share the folder have one each.

    So have the users of a shared clone: each reads its own write-ahead log at once, and that of others when it is committed.
    """
    user = os.geteuid()
    guest = f"-{user}" if user != os.stat(repo.common).st_uid else ""
    return os.path.join(repo.state, f"index-{local_files.machine_part(machine)}{guest}.sqlite3")


def open_index(
    repo: Repo,
    machine: str,
    views: Iterable[View],
    read: Reader,
) -> Index:
    """Open the index of this clone for reading and writing; if that is impossible, as `open_copy` does."""
    where = path(repo, machine)
    for attempt in range(2 if where not in UNUSABLE else 0):
        connection = None
        try:
            connection = connect(where)
            index = Index(connection, views, read)
            index.is_shaped()
            return index
        except sqlite3.DatabaseError as error:
            if connection is not None:
                connection.close()
            if attempt or not is_corruption(error):
                break
            remove(where)
    return open_copy(repo, machine, views, read)


def open_copy(
    repo: Repo,
    machine: str,
    views: Iterable[View],
    read: Reader,
) -> Index:
    """Return the index of a process that cannot write the file: a copy of it in memory, else an empty one."""
    copy = copy_of(path(repo, machine))
    if copy is not None:
        index = Index(copy, views, read, writable=False)
        try:
            if index.is_shaped():
                return index
        except sqlite3.DatabaseError:
            pass  # not ours: it is not used
        copy.close()
    return in_memory(views, read)


def copy_of(where: str) -> sqlite3.Connection | None:
    """Return a copy in memory of an index file, as its writers last left it; None if that is impossible.

    A database in WAL mode is readable only next to its `-shm` file, or in a folder where one can be created. Otherwise
    the file is read without locks, if it is complete (its `-wal` is empty) and nobody writes meanwhile: SQLite does not
    check for writers if it cannot lock.
    """
    target = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    is_usable = where not in UNUSABLE and is_sound(where)
    for options in ("mode=ro", "mode=ro&immutable=1") if is_usable else ():
        source = None
        try:
            before = _stamp(where)
            uri = f"file:{_quoted(where)}?{options}"
            source = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=COPY_SECONDS)
            source.execute("SELECT 1 FROM sqlite_master").fetchone()  # without it `backup` could wait forever
            source.backup(target)
            if options == "mode=ro" or (before is not None and before == _stamp(where)):
                return target
        except sqlite3.Error:
            continue
        finally:
            if source is not None:
                source.close()
    target.close()
    return None


def _stamp(where: str) -> tuple[int, ...] | None:
    """Return values that change with a database file; None if a part of it is in its `-wal`."""
    try:
        if os.path.exists(where + "-wal") and os.stat(where + "-wal").st_size:
            return None
        found = os.stat(where)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _quoted(where: str) -> str:
    """Return a path for a URI, whatever its bytes are."""
    plain = b"/-_.~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    path = os.fsencode(os.path.abspath(where).replace(os.sep, "/"))
    return "".join(chr(byte) if byte in plain else f"%{byte:02x}" for byte in path)


def in_memory(views: Iterable[View], read: Reader, *, spills: bool = False) -> Index:
    """Return an empty index of this process alone, in case no file can be written.

    Args:
        spills: Whether what exceeds `CACHE_KILOBYTES` goes to a temporary file without a name.
    """
    where = "" if spills else ":memory:"
    connection = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    return Index(connection, views, read, writable=False)


def connect(where: str) -> sqlite3.Connection:
    """Open a file for writing. The lock timeout is set first: the pragma for WAL already needs a lock."""
    if local_files.setting(where) or local_files.owner_for(
        where
    ):  # SQLite gives the mode of this file to its `-wal` and `-shm`
        try:
            # Only a new file: closing an old one releases the POSIX locks of this process's other connections to it.
            os.close(local_files.open_file(where, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            local_files.adjust(where)
        except OSError:
            pass  # SQLite reports the error
    for each in _files(where):
        local_files.clear(each)
    connection = sqlite3.connect(where, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def connect_to_read(where: str) -> sqlite3.Connection:
    """Open a file for reading only: closing such a connection does not checkpoint SQLite's log."""
    if not is_sound(where):
        raise sqlite3.OperationalError("unable to open database file")
    uri = f"file:{_quoted(where)}?mode=ro"
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, timeout=OPTIONAL_READ_SECONDS, check_same_thread=False
    )


def attach(db: sqlite3.Connection, where: str, name: str) -> None:
    """Attach an index file, to be read only, to a connection that `in_memory` has opened.

    Raises:
        sqlite3.OperationalError: It cannot be opened.
    """
    if not is_sound(where):
        raise sqlite3.OperationalError("unable to open database file")
    db.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute(f"ATTACH ? AS {name}", (f"file:{_quoted(where)}?mode=ro",))


def is_file_error(error: Exception) -> bool:
    """Return whether an error is about the index file or this process, not about a value in a line."""
    if isinstance(error, sqlite3.DatabaseError):
        values = (
            sqlite3.DataError,
            sqlite3.IntegrityError,
            sqlite3.ProgrammingError,
            sqlite3.NotSupportedError,
        )
        return not isinstance(error, values) and str(error) != "malformed JSON"
    return isinstance(error, (OSError, MemoryError))


def is_corruption(error: sqlite3.DatabaseError) -> bool:
    """Return whether the file itself is damaged, not busy or impossible to open."""
    return (
        not isinstance(error, sqlite3.OperationalError)
        or "malformed" in str(error)
        or "disk I/O" in str(error)
    )


def remove(where: str) -> None:
    """Remove a damaged index; the next command builds it again."""
    for each in _files(where):
        local_files.remove_quietly(each)


def is_sound(where: str) -> bool:
    """Return whether the files of an index are regular: SQLite follows links, and waits for pipes."""
    return all(local_files.is_file(each, missing=True) for each in _files(where))


def _files(where: str) -> tuple[str, ...]:
    return where + "-wal", where + "-shm", where + "-journal", where


# `Index.shape` of `views.VIEWS`, a constant because that import costs more than a query. Written by `tools/compile_shape.py`.
SHAPE = (2081752417, 16065714160119)
TAIL_BYTES_MAX = 1024 * 1024  # limit for one file; a committer runs long before


class Snapshot(Struct):
    """The index at one moment, compared with the write-ahead logs at that moment. Close it.

    Attributes:
        db: The index, in a transaction: writes of others do not change it.
        is_complete: Whether the index has everything that waited.
        has_names: Whether the index has at least everything that affects names.
    """

    db: sqlite3.Connection
    is_complete: bool = True
    has_names: bool = True

    def close(self) -> None:
        """End the transaction."""
        self.db.rollback()


class Snapshots:
    """Takes snapshots of the index, one after the other, by one connection.

    Args:
        machine: The machine, as for `index_file.path`.
        shape: The `Index.shape` for the views that the caller reads.
        elsewhere: Folders of write-ahead logs outside the repository.
        nameless: The kinds whose lines do not affect names. All other lines may affect them, in any spelling.
    """

    def __init__(
        self,
        repo: Repo,
        machine: str,
        shape: tuple[int, int],
        elsewhere: Sequence[str] = (),
        nameless: Sequence[str] = (),
    ) -> None:
        self._repo = repo
        self._where = path(repo, machine)
        self._shape = shape
        # Such a line starts so after its time.
        self._starts = tuple(f'"kind":"{kind}",'.encode() for kind in nameless)
        self._folders = [os.path.join(repo.state, "wal"), *elsewhere]
        self._db: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None  # the file that the connection reads; None for a copy
        # The part of each file, from one offset to another, that was found to have no line that affects names.
        self._nameless: dict[str, tuple[int, int]] = {}

    def take(self) -> Snapshot | None:
        """Return a snapshot if the index certainly has everything except the waiting files; None if that is uncertain.

        The index may lack the ref's commit while all files that it was made of are still there. Git is not started, so
        packed refs and changed reftables count as uncertain. The write-ahead logs are listed before the ref is read,
        and the ref before the index: entries removed from one are then in the next.
        """
        files = [file for folder in self._folders for file in write_ahead.list_files(folder) if file.size]
        tip = plain_tip(self._repo.common, LOG_REF)
        try:
            status = os.stat(self._where)
        except OSError:
            status = None
        if tip is None or status is None or self._where in UNUSABLE:
            self.close()
            return None
        if self._opened != (status.st_dev, status.st_ino):
            self.close()
        # The second is for a folder that is not writable.
        for open_file in (connect_to_read, copy_of):
            failed = False
            try:
                if self._db is None:
                    self._db = open_file(self._where)
                    is_copy = open_file is copy_of
                    self._opened = None if is_copy else (status.st_dev, status.st_ino)
                found = self._compare(self._db, tip, files) if self._db is not None else None
            except (sqlite3.Error, OSError) as error:
                found = None
                failed = not (isinstance(error, sqlite3.DatabaseError) and is_busy(error))
            if found is not None:
                return found
            self.close()
            if not failed:
                break
        return None

    def close(self) -> None:
        """Close the connection."""
        if self._db is not None:
            self._db.close()
        self._db = self._opened = None
        self._nameless = {}  # with another index, files may be others too: those of a restored backup

    def _compare(self, db: sqlite3.Connection, tip: str, files: Sequence[WalFile]) -> Snapshot | None:
        """Return a snapshot if the index has this shape and fits the tip and the files; else None.

        Raises:
            sqlite3.Error: The index is unreadable.
            OSError: A file was removed, so its commit is newer than the index.
        """
        db.execute("BEGIN")
        if not has_shape(db, self._shape):
            return None
        row = db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone()
        if row is None:
            return None
        if row[0] != tip and not write_ahead.have_commit(self._repo.state, tip, row[0], files):
            return None
        known = read_files(db, self._folders)
        found = Snapshot(db)
        nameless, self._nameless = self._nameless, {}
        for file in files:
            _, end, size = known.pop(row_of(file.folder, file.name), (0, 0, -1))
            if file.size == size or file.size <= end <= os.stat(file.path).st_size:
                continue
            if file.size < end or file.folder != self._folders[0]:
                return None
            self._read_tail(found, file, end, nameless.get(file.path, (end, end)))
        if any(has_lines(db, id) for id, _, _ in known.values()):
            return None
        return found

    def _read_tail(self, found: Snapshot, file: WalFile, end: int, nameless: tuple[int, int]) -> None:
        """Clear the flags of a snapshot according to the part of a file that the index lacks.

        Args:
            end: The offset up to which the index has read the file.
            nameless: The part of the file that an earlier snapshot has read.
        """
        start = nameless[1] if nameless[0] <= end <= nameless[1] <= file.size else end
        with open(local_files.open_file(file.path, os.O_RDONLY), "rb", buffering=0) as opened:
            opened.seek(start)
            content = opened.read(min(max(file.size - start, 0), TAIL_BYTES_MAX))
        tail = write_ahead.parse_records(content, start)
        if tail.voids or len(content) == TAIL_BYTES_MAX:
            found.is_complete = found.has_names = False
        if tail.entries or start > end:
            found.is_complete = False
        for payload, _ in tail.entries:
            rows = payload.split(b"\n")[1:-1]
            if not all(row.partition(b"\t")[2].startswith(self._starts, HEAD_BYTES) for row in rows):
                found.has_names = False
        if found.has_names:
            self._nameless[file.path] = (end, tail.end)


def has_accepted(db: sqlite3.Connection, accepted: str | None) -> bool:
    """Return whether a fresh index certainly has everything that this clone has accepted; see `store.lost_records`.

    Args:
        accepted: The tip that this clone accepted last, if known.
    """
    if accepted is not None and db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone() != (
        accepted,
    ):
        return False
    made = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost'").fetchone()
    return made is None or db.execute("SELECT 1 FROM lost LIMIT 1").fetchone() is None


def mark(db: sqlite3.Connection, key: str, rows: str) -> tuple[str | None, int | None]:
    """Return what a package has noted in the index under a key, and the greatest `line` of these rows."""
    query = f"SELECT (SELECT value FROM meta WHERE key = ?), (SELECT max(line) FROM {rows})"
    found: tuple[str | None, int | None] = db.execute(query, (key,)).fetchone()
    return found


def set_mark(db: sqlite3.Connection, key: str, value: str | None) -> None:
    """Note a text in the index under a key; None removes it."""
    if value is None:
        db.execute("DELETE FROM meta WHERE key = ?", (key,))
        return
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def row_of(folder: str, name: str) -> Row:
    """Return `parent` and `name` of a file in the table `file`; bytes that are not UTF-8 are escaped."""
    return as_text(folder) + "//", as_text(name)


def read_files(db: sqlite3.Connection, folders: Iterable[str]) -> dict[Row, tuple[int, int, int]]:
    """Return row id, end and size of each file that the index has read, for a process that reads these folders.

    Another process may read other folders (with another $TMPDIR). Its files are ignored while they exist.
    """
    ours = {row_of(folder, "")[0] for folder in folders}
    found = {}
    for id, parent, name, oid in db.execute("SELECT id, parent, name, oid FROM file WHERE id < 0"):
        if parent in ours or not os.path.lexists(parent + name):
            end, _, size = oid.partition(" ")
            found[parent, name] = (id, int(end), int(size))
    return found


def has_lines(db: sqlite3.Connection, file: int) -> bool:
    """Return whether an index has lines that only wait in the file with this row id."""
    return db.execute("SELECT 1 FROM line WHERE file = ? LIMIT 1", (file,)).fetchone() is not None


class LostLineError(Exception):
    """A line of the index is no longer in the log."""


def _waiting(log: LocalLog) -> dict[Row, tuple[WriteAheadLog, WalFile]]:
    """Return every file that waits for a commit."""
    return {
        row_of(file.folder, file.name): (wal, file) for wal in log.wals for file in wal.files() if file.size
    }


def is_current(index: Index, log: LocalLog) -> bool:
    """Return whether the index has exactly the content of the ref and of the write-ahead logs."""
    if not index.is_shaped():
        return False
    # Before the tip: a file is removed only after its commit. The index has read that before; then the file's row has no lines.
    sizes = {place: file.size for place, (_, file) in _waiting(log).items()}
    if index.tip != log.git.tip(LOG_REF):
        return False
    found = read_files(index.db, [wal.folder for wal in log.wals])
    gone = [found.pop(place)[0] for place in found.keys() - sizes.keys()]
    has_read_all = {place: size for place, (_, _, size) in found.items()} == sizes
    return has_read_all and not any(has_lines(index.db, file) for file in gone)


class WalTails:
    """The lines of the write-ahead logs that the index lacks. Create it before reading the ref.

    A file is removed only after its commit, so a file that is missing here is in the ref that is read later.

    Args:
        db: The index, inside the transaction of `catch_up`.

    Raises:
        LostLineError: An entry of the index is void now.
    """

    def __init__(self, db: sqlite3.Connection, log: LocalLog) -> None:
        self.db = db
        found = _waiting(log)
        self._known = read_files(db, [wal.folder for wal in log.wals])
        self._kept = set(found)
        self._new: list[tuple[Row, int, int, list[bytes]]] = []
        for place, (wal, file) in found.items():
            _, start, size = self._known.get(place, (0, 0, -1))
            if file.size < start:
                raise LostLineError
            if file.size != size:
                self._read(place, wal, file, start)

    def _read(self, place: Row, wal: WriteAheadLog, file: WalFile, start: int) -> None:
        from ..log.lines import lines_of

        try:
            tail = wal.read(file, start)
        except (OSError, ValueError):
            self._new.append((place, start, file.size, []))  # not valid: recorded, so it is not opened again
            return
        if tail is None:
            self._kept.discard(place)
            return
        if tail.voids and start:
            raise LostLineError
        lines = []
        for payload, _ in tail.entries:
            try:
                lines += lines_of(payload)
            except ValueError:
                continue
        self._new.append((place, tail.end, file.size, lines))

    def apply(self) -> list[tuple[int, bytes]]:
        """Record how far the files were read; return the lines, each with the number of its file. Read the ref first.

        Raises:
            LostLineError: An entry is neither waiting nor in the log.
        """
        for place in self._known.keys() - self._kept:
            file = self._known[place][0]
            if has_lines(self.db, file):
                raise LostLineError
            self.db.execute("DELETE FROM file WHERE id = ?", (file,))
        found = []
        for place, end, size, lines in self._new:
            file, _, _ = self._known.get(place, (0, 0, 0))
            if not file:
                (least,) = self.db.execute("SELECT min(0, min(id)) FROM file").fetchone()
                file = (least or 0) - 1
                self.db.execute("INSERT INTO file VALUES (?, ?, ?, '')", (file, *place))
            self.db.execute("UPDATE file SET oid = ? WHERE id = ?", (f"{end} {size}", file))
            found += [(file, line) for line in lines]
        return found


def remove_if_damaged(where: str, error: BaseException) -> bool:
    """Remove an index file if an error, or else SQLite's own check, shows that it is damaged.

    Args:
        error: The error of an operation that used it.

    Returns:
        Whether it was damaged.
    """
    if not isinstance(error, Exception) or not is_sound(where):
        return False
    if not _is_damage(error) and _passes_check(where):
        return False
    remove(where)
    if os.path.lexists(where):  # it cannot be removed: this process does not use it
        UNUSABLE.add(where)
    return True


def _passes_check(where: str) -> bool:
    """Return whether SQLite's check finds no damage; True also if the file cannot be checked now."""
    try:
        db = sqlite3.connect(where, isolation_level=None, timeout=COPY_SECONDS)
        try:
            return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        finally:
            db.close()
    except sqlite3.DatabaseError as error:
        return not is_corruption(error)
    except (sqlite3.Error, UnicodeError):
        return False


def _is_damage(error: Exception) -> bool:
    """Return whether an error can only come from damaged bytes."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    if isinstance(error, sqlite3.OperationalError):
        return is_corruption(error) or "decode" in str(error)
    return is_file_error(error)


class IndexDamagedError(StoreError):
    """The index was damaged and was removed; the log is intact.

    Attributes:
        may_repeat: Whether nothing was recorded before, so the whole operation may run once more.
    """

    code = "index-damaged"

    def __init__(self, *, recorded: bool) -> None:
        super().__init__(
            "The index was damaged and has been removed. "
            + (
                "The command's records are safe; only its output is incomplete."
                if recorded
                else "Nothing was recorded; the log is intact."
            ),
            hint="The next command rebuilds the index from the log."
            + (" Do not repeat this command without checking its result first." if recorded else ""),
            next=["gitmem log" if recorded else "gitmem doctor"],
        )
        self.may_repeat = not recorded


def error_for(error: Exception, repo: Repo, machine: str, *, recorded: bool) -> IndexDamagedError | None:
    """Return the error to raise for a failure caused by a damaged index, and remove that index; else None.

    Args:
        error: The failure that ended an operation.
        repo: Where the repository is.
        machine: Name of this machine.
        recorded: Whether the operation had recorded anything.
    """
    if isinstance(error, (GitmemError, OSError)) or not remove_if_damaged(path(repo, machine), error):
        return None
    return IndexDamagedError(recorded=recorded)
