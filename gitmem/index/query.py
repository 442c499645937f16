"""Read the index as it is, for queries that must be fast: without updating it first.

The rows of the table `file` with a negative id show how far the write-ahead logs were read: `parent` is the folder and
two slashes, `name` the name of the file, `oid` two numbers: the offset behind the last record that was read, and the
size of the file then.
"""

from __future__ import annotations

import os

from .. import local_files
from ..git.files import LOG_REF, plain_tip
from ..log import write_ahead
from ..log.lines import HEAD_BYTES
from ..outcome import Struct
from . import engine, index_file
from .engine import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..log.write_ahead import WalFile
    from ..repo import Repo

    Row = tuple[str, str]

# `Index.shape` of `views.VIEWS`, a constant because that import costs more than a query. Written by `tools/compile_shape.py`.
SHAPE = (921540904, 218654729884886)
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
        self._where = index_file.path(repo, machine)
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
        if tip is None or status is None or self._where in engine.UNUSABLE:
            self.close()
            return None
        if self._opened != (status.st_dev, status.st_ino):
            self.close()
        # The second is for a folder that is not writable.
        for open_file in (index_file.connect_to_read, index_file.copy_of):
            failed = False
            try:
                if self._db is None:
                    self._db = open_file(self._where)
                    is_copy = open_file is index_file.copy_of
                    self._opened = None if is_copy else (status.st_dev, status.st_ino)
                found = self._compare(self._db, tip, files) if self._db is not None else None
            except (sqlite3.Error, OSError) as error:
                found = None
                failed = not (isinstance(error, sqlite3.DatabaseError) and engine.is_busy(error))
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
        if not index_file.has_shape(db, self._shape):
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
    """Return whether a fresh index certainly has everything that this clone has accepted; see `moved_back`.

    Args:
        accepted: The tip that this clone accepted last, if known.
    """
    if accepted is not None and db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone() != (
        accepted,
    ):
        return False
    made = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost'").fetchone()
    return made is None or db.execute("SELECT 1 FROM lost LIMIT 1").fetchone() is None


def row_of(folder: str, name: str) -> Row:
    """Return `parent` and `name` of a file in the table `file`; bytes that are not UTF-8 are escaped."""
    return index_file.as_text(folder) + "//", index_file.as_text(name)


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
