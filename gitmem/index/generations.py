"""What the index still has to read of the write-ahead logs."""

from __future__ import annotations

from ..git.read_ref import LOG_REF
from .query import has_lines, read_files, row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ..log.local_log import LocalLog
    from ..log.wal import WriteAheadLog
    from ..log.wal_files import WalFile
    from .query import Row
    from .schema import Index


class LostLineError(Exception):
    """A line of the index is no longer in the log."""


def sizes(files: Iterable[WalFile]) -> dict[Row, int]:
    """Return the size of each file that has anything in it."""
    return {row_of(file.folder, file.name): file.size for file in files if file.size}


def waiting(log: LocalLog) -> dict[Row, tuple[WriteAheadLog, WalFile]]:
    """Return every file that waits for a commit."""
    return {
        row_of(file.folder, file.name): (wal, file) for wal in log.wals for file in wal.files() if file.size
    }


def has_all(db: sqlite3.Connection, folders: Iterable[str], sizes: dict[Row, int]) -> bool:
    """Return whether the index has read just what waits in these folders.

    A file goes after the index has read its commit: what is left of it in the index then is a row without lines.
    """
    found = read_files(db, folders)
    gone = [found.pop(place)[0] for place in found.keys() - sizes.keys()]
    if {place: size for place, (_, _, size) in found.items()} != sizes:
        return False
    return not any(has_lines(db, file) for file in gone)


def is_current(index: Index, log: LocalLog) -> bool:
    """Return whether the index has just what the ref and the write-ahead logs have."""
    if not index.is_shaped():
        return False
    files = [
        file for wal in log.wals for file in wal.files()
    ]  # before the tip: what is gone by then is in it
    folders = [wal.folder for wal in log.wals]
    return index.tip == log.git.tip(LOG_REF) and has_all(index.db, folders, sizes(files))


class Tails:
    """What the write-ahead logs have that the index lacks. It is read before the ref: what is gone by then is in the ref.

    Args:
        db: The index, inside the transaction of `catch_up`.
        log: The clone's log.

    Raises: LostLineError where an entry that the index has is void now.
    """

    def __init__(self, db: sqlite3.Connection, log: LocalLog) -> None:
        self.db = db
        found = waiting(log)
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
        from ..log import entry

        try:
            tail = wal.read(file, start)
        except (OSError, ValueError):
            self._new.append(
                (place, start, file.size, [])
            )  # none of ours: known, so that it is not opened again
            return
        if tail is None:
            self._kept.discard(place)
            return
        if tail.voids and start:
            raise LostLineError
        lines = []
        for payload, _ in tail.entries:
            try:
                lines += entry.lines_of(payload)
            except ValueError:
                continue
        self._new.append((place, tail.end, file.size, lines))

    def apply(self) -> list[tuple[int, bytes]]:
        """Note what was read: the lines that it has, each with its file. It comes after the ref was read.

        Raises: LostLineError where an entry is neither waiting nor in the log.
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
