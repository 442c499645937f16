"""The parts of the write-ahead logs that the index has not read yet."""

from __future__ import annotations

from ..git.files import LOG_REF
from .index_file import has_lines, read_files, row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ..log.local_log import LocalLog
    from ..log.write_ahead import WalFile, WriteAheadLog
    from .index_file import Index, Row


class LostLineError(Exception):
    """A line of the index is no longer in the log."""


def sizes(files: Iterable[WalFile]) -> dict[Row, int]:
    """Return the size of each non-empty file."""
    return {row_of(file.folder, file.name): file.size for file in files if file.size}


def waiting(log: LocalLog) -> dict[Row, tuple[WriteAheadLog, WalFile]]:
    """Return every file that waits for a commit."""
    return {
        row_of(file.folder, file.name): (wal, file) for wal in log.wals for file in wal.files() if file.size
    }


def has_read_all(db: sqlite3.Connection, folders: Iterable[str], sizes: dict[Row, int]) -> bool:
    """Return whether the index has read exactly the entries that wait in these folders.

    A file is removed after the index has read its commit; then its row in the index has no lines.
    """
    found = read_files(db, folders)
    gone = [found.pop(place)[0] for place in found.keys() - sizes.keys()]
    if {place: size for place, (_, _, size) in found.items()} != sizes:
        return False
    return not any(has_lines(db, file) for file in gone)


def is_current(index: Index, log: LocalLog) -> bool:
    """Return whether the index has exactly the content of the ref and of the write-ahead logs."""
    if not index.is_shaped():
        return False
    files = [
        file for wal in log.wals for file in wal.files()
    ]  # before the tip: a file is removed only after its commit
    folders = [wal.folder for wal in log.wals]
    return index.tip == log.git.tip(LOG_REF) and has_read_all(index.db, folders, sizes(files))


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
