"""Insert lines into the index: into the table of lines, and the new ones into the views."""

from __future__ import annotations

import gc

from ..text.digests import hash_function_for, sha256
from . import index_file
from .engine import sqlite3
from .entities import LineRow, Rows
from .index_file import Index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .entities import Reader, Record, View


KEY_BYTES = 16
BODY_MAX_BYTES = 256 * 1024
MANY = 1_000  # lines of a batch that gets a larger SQLite log
PAGES = 4_000  # of SQLite's own log: 16 MB. With the default of 1,000 a batch waits for the disk twice more
_INSERT = (
    "INSERT INTO line (file, key, at, kind, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET file = excluded.file WHERE line.file < 0"
)


def lines(index: Index, file: int, found: Sequence[bytes]) -> None:
    """Insert the lines of a file, and update the views with the new ones.

    Equal bytes are one line. A line that waited for its commit until now becomes one of this file.
    """
    lines_of_files(index, [(file, line) for line in found])


def lines_of_files(
    index: Index, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None] | None = None
) -> None:
    """Insert lines as `lines` does, each with the number of its file.

    Args:
        records: The result of `index.read` for each line, if known.
    """
    if not found:
        return
    with WithoutCollector():
        _add(index, found, [index.read(line) for _, line in found] if records is None else records)


def lines_above(index: Index, number: int, found: Sequence[bytes]) -> None:
    """Insert lines of one file, numbered above a number."""
    index.db.execute("INSERT INTO line (id) VALUES (?)", (number,))
    lines(index, 1, found)
    index.db.execute("DELETE FROM line WHERE id = ?", (number,))


def last_line(db: sqlite3.Connection) -> int:
    """Return the number of the last line; 0 if there is none."""
    (number,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    return int(number)


class WithoutCollector:
    """A context without the garbage collector.

    Insertion creates many objects without cycles, and the collector would visit all of them repeatedly.
    """

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()


def _add(index: Index, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None]) -> None:
    db = index.db
    if len(found) >= MANY:
        # SQLite's log is checkpointed by the next committer, or when the index is closed: see `Store.tidy_index`.
        db.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
    hashed = hash_function_for(len(found))
    keys = [hashed(line).digest()[:KEY_BYTES] for _, line in found]
    before = last_line(db)
    # sqlite3 binds a bytearray four times as fast as bytes.
    db.executemany(
        _INSERT,
        [
            (file, bytearray(key), record["at"], record["kind"], line.decode())
            if record is not None
            else (file, bytearray(key), "", "", line[:BODY_MAX_BYTES].decode("utf-8", "replace"))
            for (file, line), key, record in zip(found, keys, records, strict=True)
        ],
    )
    last = last_line(db)
    ids = dict(zip(keys, range(before + 1, last + 1), strict=False))
    if last - before < len(found):  # some were there already, or are duplicates
        ids = {key: id for id, key in db.execute("SELECT id, key FROM line WHERE id > ?", (before,))}
    rows = Rows()
    for (_, line), key, record in zip(found, keys, records, strict=True):
        id = ids.pop(key, None)
        if id is not None and record is not None:
            rows.add(LineRow(id, line, record))
    for view in index.views:
        mine = rows.of_kinds(view.kinds)
        if mine:
            _feed(db, view, mine)


def _feed(db: sqlite3.Connection, view: View, rows: Rows) -> None:
    """Add rows to a view. A row that the view cannot process is missing in this view and recorded in `skipped`."""
    db.execute("SAVEPOINT feed")
    try:
        view.add(db, rows)
    except Exception as error:
        if index_file.is_file_error(error):
            raise
        db.execute("ROLLBACK TO feed")
        db.execute("RELEASE feed")
        every = sorted(rows, key=lambda row: row.id)
        if len(every) == 1:
            db.execute("INSERT OR IGNORE INTO skipped VALUES (?)", (every[0].id,))
            return
        middle = len(every) // 2
        _feed(db, view, Rows(every[:middle]))
        _feed(db, view, Rows(every[middle:]))
    else:
        db.execute("RELEASE feed")


def key_of(line: bytes) -> bytes:
    """Return the `key` of a line in the table of lines."""
    return sha256(line).digest()[:KEY_BYTES]


CACHE_KILOBYTES = 16 * 1024


def open_temporary(views: Iterable[View], read: Reader) -> Index:
    """Open an empty index of this process alone, in a temporary file; in memory if no file can be created."""
    connection = sqlite3.connect("", isolation_level=None)
    try:
        connection.execute("PRAGMA cache_size = 10")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE trial (content BLOB)")
        connection.execute(
            "INSERT INTO trial VALUES (zeroblob(1048576))"
        )  # more than the cache, so SQLite creates the file
        connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    except sqlite3.OperationalError:
        connection.close()
        return index_file.in_memory(views, read)
    return Index(connection, views, read, writable=False)


class IndexFill:
    """One run of filling an index. It skips the parts of a tree that hold no lines, as `catch_up` does."""

    def __init__(self, index: Index) -> None:
        self.index = index
        index.db.execute("BEGIN")
        index.reshape()

    def folder(self, path: str, oid: str) -> None:
        """Record a folder that was read. Its path ends in a slash."""
        if _is_read(path):
            self._note(path, path.rstrip("/").rpartition("/")[0], oid)

    def segment(self, path: str, oid: str) -> int | None:
        """Record a segment and return its number for `add`; None if its lines are not read."""
        return self._note(path, path.rpartition("/")[0], oid) if _is_read(path) else None

    def _note(self, path: str, folder: str, oid: str) -> int:
        parent = index_file.as_text(folder + "/" if folder else "")
        name = index_file.as_text(path)[len(parent) :]
        cursor = self.index.db.execute(
            "INSERT INTO file (parent, name, oid) VALUES (?, ?, ?)", (parent, name, oid)
        )
        return int(cursor.lastrowid or 0)

    def add(self, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None] | None = None) -> None:
        """Add lines, each with the number of its segment; `records` as for `insert.lines_of_files`."""
        lines_of_files(self.index, found, records)

    def end(self, commit: str | None) -> None:
        """Commit the added lines.

        Args:
            commit: The commit if it was read completely; later updates start there. None makes them check every folder.
        """
        if commit is not None:
            self.index.db.execute("INSERT OR REPLACE INTO meta VALUES ('tip', ?)", (commit,))
        else:
            self.index.db.execute("UPDATE file SET oid = '' WHERE name LIKE '%/'")
        self.index.db.execute("COMMIT")

    def segment_of(self, line: bytes) -> tuple[str, str] | None:
        """Return path and object id of the segment of a line; None if the index does not have the line."""
        found: tuple[str, str] | None = self.index.db.execute(
            "SELECT f.parent || f.name, f.oid FROM line l JOIN file f ON f.id = l.file WHERE l.key = ?",
            (key_of(line),),
        ).fetchone()
        return found


def _is_read(path: str) -> bool:
    return "/" in path and not path.startswith("projects/")
