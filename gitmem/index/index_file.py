"""The index file: its core tables, the views of the packages above, and how it is opened and rebuilt.

`file` has the path and object id of every folder and segment that was read. `line` has every line once, even if several
files have it. A `View` derives tables of its own from lines of some kinds.
"""

from __future__ import annotations

import os

from .. import local_files
from ..text.digests import sha256
from . import engine
from .engine import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..repo import Repo
    from .entities import Reader, View

BUSY_MILLISECONDS = engine.READER_MILLISECONDS
CORE_VERSION = 2
KEPT = ("lost", "before", "before_file")  # tables of `lost_lines`, which `reshape` keeps
LOST = "CREATE TABLE lost (key BLOB PRIMARY KEY, epoch INTEGER, path TEXT, body TEXT)"
LAZY = "memory_words*"  # what the search makes when it is used
CORE = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    # A folder's path ends in `/`, the root's is empty. Files of write-ahead logs have negative ids, see `generations`.
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
)


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
            text = repr([CORE_VERSION, CORE, [(view.version, view.ddl) for view in self.views]])
            db = sqlite3.connect(":memory:", isolation_level=None)
            for statement in (*CORE, *(each for view in self.views for each in view.ddl)):
                db.execute(statement)
            self._shape = int.from_bytes(text.encode(), "big") % 0x7FFFFFFF, _digest(db)
            db.close()
        return self._shape

    def is_shaped(self) -> bool:
        """Return whether the tables have the expected shape.

        Raises:
            sqlite3.DatabaseError: They say so, and have another one.
        """
        return has_shape(self.db, self.shape())

    def reshape(self) -> None:
        """Empty all tables except `KEPT`; readers see the old content until the caller's transaction commits."""
        tables = self.db.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')"
            " AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
        ).fetchall()
        for type, name, sql in tables:
            if name not in KEPT or type != "table" or (name == "lost" and sql != LOST):
                name = name.replace('"', '""')
                self.db.execute(f'DROP {type} IF EXISTS "{name}"')
        for statement in CORE:
            self.db.execute(statement)
        for view in self.views:
            for statement in view.ddl:
                self.db.execute(statement)
        self.db.execute(f"PRAGMA user_version = {self.shape()[0]}")

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
    (text,) = db.execute(
        "SELECT group_concat(sql) FROM sqlite_master WHERE sql <> ?"
        " AND NOT (type IN ('table', 'index') AND name GLOB ? AND replace(sql, 'PRIMARY KEY(', '') NOT LIKE '%(%(%')",  # an expression has parentheses
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
    """Return the path of this machine's index: a host and a container that share the folder have one each."""
    kept = "".join(char if char.isalnum() or char in "-_." else "_" for char in machine)[:60]
    return os.path.join(repo.state, f"index-{kept or 'machine'}.sqlite3")


def open_index(
    repo: Repo,
    machine: str,
    views: Iterable[View],
    read: Reader,
) -> Index:
    """Open the index of this clone for reading and writing; if that is impossible, as `open_copy` does."""
    where = path(repo, machine)
    for attempt in range(2 if where not in engine.UNUSABLE else 0):
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
    is_usable = where not in engine.UNUSABLE and is_sound(where)
    for options in ("mode=ro", "mode=ro&immutable=1") if is_usable else ():
        source = None
        try:
            before = _stamp(where)
            uri = f"file:{_quoted(where)}?{options}"
            source = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=engine.COPY_SECONDS)
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


def in_memory(views: Iterable[View], read: Reader) -> Index:
    """Return an empty index of this process alone, in case no file can be written."""
    return Index(
        sqlite3.connect(":memory:", uri=True, isolation_level=None, check_same_thread=False),
        views,
        read,
        writable=False,
    )


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
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
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
        uri, uri=True, isolation_level=None, timeout=engine.OPTIONAL_READ_SECONDS, check_same_thread=False
    )


def attach(db: sqlite3.Connection, where: str, name: str) -> None:
    """Attach an index file, to be read only, to a connection that `in_memory` has opened.

    Raises:
        sqlite3.OperationalError: It cannot be opened.
    """
    if not is_sound(where):
        raise sqlite3.OperationalError("unable to open database file")
    db.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
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
