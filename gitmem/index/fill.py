"""Fill an empty index with the files of one commit, which the caller reads."""

from __future__ import annotations

from . import index_file, insert
from .engine import sqlite3
from .index_file import Index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .index_file import Reader
    from .rows import Record, View

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
        insert.lines_of_files(self.index, found, records)

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
            (insert.key_of(line),),
        ).fetchone()
        return found


def _is_read(path: str) -> bool:
    return "/" in path and not path.startswith("projects/")
