"""Read the index as it is, for queries that must be fast: without updating it first.

The rows of the table `file` with a negative id show how far the write-ahead logs were read: `parent` is the folder and
two slashes, `name` the name of the file, `oid` two numbers: the offset behind the last record that was read, and the
size of the file then.
"""

from __future__ import annotations

import os

from ..git.read_ref import LOG_REF as LOG_REF
from ..git.read_ref import plain_tip
from ..log import wal_files, wal_record
from ..log.lines import HEAD_BYTES
from . import engine, index_file
from .engine import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..log.wal_files import WalFile
    from ..repo import Repo

    Row = tuple[str, str]

TAIL_BYTES_MAX = 1024 * 1024  # limit for one file; a committer runs long before
# The start, after the time, of lines that do not affect names. All other lines may affect them, in any spelling.
_NAMELESS = tuple(
    f'"kind":"{kind}",'.encode()
    for kind in ("signal", "receipt", "access", "node", "patch", "relation", "audit")
)


class Snapshot:
    """The index at one moment, compared with the write-ahead logs at that moment.

    Attributes:
        db: The index, in a transaction: writes of others do not change it.
        is_complete: Whether the index has everything that waited.
        has_names: Whether the index has at least everything that affects names.
    """

    __slots__ = ("db", "has_names", "is_complete")

    def __init__(self, db: sqlite3.Connection, *, is_complete: bool, has_names: bool) -> None:
        self.db = db
        self.is_complete = is_complete
        self.has_names = has_names


def take_snapshot(place: Repo, machine: str, shape: int, elsewhere: Sequence[str] = ()) -> Snapshot | None:
    """Return a snapshot if the index has certainly read the ref's commit; None if that is uncertain.

    Git is not started, so packed refs and changed reftables count as uncertain. The write-ahead logs are listed before
    the ref is read, and the ref before the index: entries removed from one are then in the next.

    Args:
        machine: The machine, as for `schema.path`.
        shape: The `Index.version` for the views that the caller reads.
        elsewhere: Folders of write-ahead logs outside the repository.
    """
    where = index_file.path(place, machine)
    folders = [*(os.path.join(place.state, name) for name in ("wal", "spool")), *elsewhere]
    files = [file for folder in folders for file in wal_files.list_files(folder) if file.size]
    tip = plain_tip(place.common, LOG_REF)
    if tip is None or where in engine.UNUSABLE or not os.path.isfile(where):
        return None
    for opened in (
        index_file.connect_to_read,
        index_file.copy_of,
    ):  # the second is for a folder that is not writable
        db = None
        try:
            db = opened(where)
            found = _snapshot_of(db, shape, tip, files, folders) if db is not None else None
            failed = False
        except (sqlite3.Error, OSError) as error:
            found = None
            failed = not (isinstance(error, sqlite3.DatabaseError) and engine.is_busy(error))
        if found is not None:
            return found
        if db is not None:
            db.close()
        if not failed:
            break
    return None


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


def _snapshot_of(
    db: sqlite3.Connection, shape: int, tip: str, files: Sequence[WalFile], folders: Sequence[str]
) -> Snapshot | None:
    """Return a snapshot if the index has this shape and tip and fits the files; else None.

    Raises:
        sqlite3.Error: The index is unreadable.
        OSError: A file was removed, so its commit is newer than the index.
    """
    db.execute("BEGIN")
    if db.execute("PRAGMA user_version").fetchone()[0] != shape:
        return None
    if db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone() != (tip,):
        return None
    known = read_files(db, folders)
    found = Snapshot(db, is_complete=True, has_names=True)
    for file in files:
        _, end, size = known.pop(row_of(file.folder, file.name), (0, 0, -1))
        if file.size == size or file.size <= end <= os.stat(file.path).st_size:
            continue
        if file.size < end or file.folder != folders[0]:
            return None
        _read_tail(found, file, end)
    if any(has_lines(db, id) for id, _, _ in known.values()):
        return None
    return found


def _read_tail(found: Snapshot, file: WalFile, start: int) -> None:
    """Clear the flags of a snapshot according to the part of a file that the index lacks."""
    with open(file.path, "rb") as opened:
        opened.seek(start)
        content = opened.read(TAIL_BYTES_MAX)
    tail = wal_record.parse(content, start)
    if tail.voids or len(content) == TAIL_BYTES_MAX:
        found.is_complete = found.has_names = False
    for payload, _ in tail.entries:
        found.is_complete = False
        rows = payload.split(b"\n")[1:-1]
        if not all(row.partition(b"\t")[2].startswith(_NAMELESS, HEAD_BYTES) for row in rows):
            found.has_names = False
