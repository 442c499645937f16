"""Update the index: read only the files that differ from those already read.

This needs neither ancestry nor the old tree, so replayed, rewound and repaired tips need no special code. Lines are
only ever added. Where the log has lost a line (a redaction, a rewound ref, a withdrawn entry) everything is read again.
"""

from __future__ import annotations

from ..errors import StoreError
from ..log import ref
from ..log.ref import LOG_REF
from ..log.union import canonical
from . import generations, index_file, insert
from .generations import LostLineError as _LostLineError
from .query import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.local_log import LocalLog
    from ..outcome import Progress
    from .engine import sqlite3
    from .index_file import Index

LINES_AT_ONCE = 10_000  # inserted together; one file at a time takes twice as long
AT = b'{"at":"'


def catch_up(index: Index, log: LocalLog, *, progress: Progress | None = None) -> None:
    """Update the index to the ref's tip and the write-ahead logs.

    Args:
        progress: Called now and then with the lines read so far, and with all.

    Raises:
        sqlite3.DatabaseError: The index file is damaged or not writable.
        StoreError: An object of the log is missing.
    """
    if generations.is_current(index, log):
        return
    db = index.db
    db.execute("BEGIN IMMEDIATE")
    try:
        if not index.is_shaped():
            index.reshape()
        try:
            _Reader(index, log, progress).read()
        except _LostLineError:
            from . import lost_lines

            is_aside = lost_lines.set_tables_aside(index, log)
            index.reshape()
            _Reader(index, log, progress).read()
            lost_lines.store_missing(index, is_aside)
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if isinstance(error, KeyError):
            raise ref.missing_object(error, "nothing was changed") from error
        raise


def preview(index: Index, log: LocalLog) -> Snapshot | None:
    """Return a snapshot with the lines that wait in the write-ahead logs, by a transaction that is never committed.

    Returns:
        None if the index lacks more than these lines.

    Raises:
        sqlite3.DatabaseError: The index file is damaged, busy or not writable.
    """
    if not (index.writable and index.is_shaped()):
        return None
    index.db.execute("BEGIN IMMEDIATE")
    try:
        tails = generations.WalTails(index.db, log)
        if log.git.tip(LOG_REF) == index.tip:
            insert.lines_of_files(index, tails.apply())
            return Snapshot(index.db)
    except _LostLineError:
        pass
    except BaseException:
        index.db.rollback()
        raise
    index.db.rollback()
    return None


def read_commit(
    index: Index,
    log: LocalLog,
    commit: str,
    *,
    until: bytes | None = None,
    progress: Progress | None = None,
) -> None:
    """Fill an empty index with the lines of one commit of the log, without the write-ahead logs.

    Args:
        until: The last `at` to include. Lines without a time are included.
        progress: As for `catch_up`.

    Raises:
        StoreError: An object of the log is missing.
    """
    index.db.execute("BEGIN")
    index.reshape()
    try:
        reader = _Reader(index, log, progress, until)
        reader.read_tree(commit)
    except KeyError as error:
        raise ref.missing_object(error, "nothing was changed") from error
    index.db.execute("COMMIT")


class _Reader:
    """One pass over everything that differs, inside the transaction of `catch_up`."""

    def __init__(
        self, index: Index, log: LocalLog, progress: Progress | None, until: bytes | None = None
    ) -> None:
        self.index = index
        self.db = index.db
        self.log = log
        self.git = log.git
        self.progress = progress
        self.until = until
        self.done = self.total = 0
        self.segments: list[tuple[int, str, bool]] = []  # to read: number, object id, whether the file is new
        self.waiting: list[tuple[int, bytes]] = []

    def read(self) -> None:
        tails = generations.WalTails(self.db, self.log)
        tip = self.git.tip(LOG_REF)
        if tip is not None and tip != self.index.tip:
            self.read_tree(tip)
        elif tip is None and self.index.tip is not None:
            raise _LostLineError
        self.waiting = tails.apply()
        self._flush()

    def read_tree(self, commit: str) -> None:
        tree = self.git.commit(commit).tree
        self._folder("", tree, top=True)
        if self.progress is not None:
            self.total = sum(self._count_new(*segment) for segment in self.segments)
            self.progress("indexing lines", 0, self.total)
        for file, oid, is_new in self.segments:
            self._segment(file, self.git.blob(oid), is_new=is_new)
        self._flush()
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?)", (self._format(tree),))
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('tip', ?)", (commit,))

    def _format(self, tree: str) -> str:
        """Return the id of the tip's `format` if this gitmem can write to the log, else ""; see `index_file.can_write`."""
        entry = self.git.tree(tree).get("format")
        known = self.db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if entry is None or known == (entry.oid,):
            return entry.oid if entry is not None else ""
        try:
            form = ref.read_format(self.git, {"format": entry})
            if form is None:
                return ""
            form.refuse_newer()
        except StoreError:
            return ""
        return entry.oid

    def _folder(self, path: str, oid: str, *, top: bool = False) -> None:
        entries = self.git.tree(oid)
        known = {
            name: (file, known_oid)
            for file, name, known_oid in self.db.execute(
                "SELECT id, name, oid FROM file WHERE parent = ? AND id > 0", (path,)
            )
        }
        for name, entry in entries.items():
            if top and (name == "projects" or not entry.is_tree):
                continue
            if not entry.is_tree and not (name.endswith(".jsonl") and entry.mode.startswith("100")):
                continue
            key = index_file.as_text(name) + ("/" if entry.is_tree else "")
            file, known_oid = known.pop(key, (None, None))
            if known_oid == entry.oid:
                continue
            if file is None:
                cursor = self.db.execute(
                    "INSERT INTO file (parent, name, oid) VALUES (?, ?, ?)", (path, key, entry.oid)
                )
                file = int(cursor.lastrowid or 0)
            else:
                self.db.execute("UPDATE file SET oid = ? WHERE id = ?", (entry.oid, file))
            if entry.is_tree:
                self._folder(path + key, entry.oid)
            else:
                self.segments.append((file, entry.oid, known_oid is None))
        if known:
            raise _LostLineError

    def _count_new(self, file: int, oid: str, is_new: bool) -> int:
        """Return about how many lines of a segment are new."""
        known = self.db.execute("SELECT count(*) FROM line WHERE file = ?", (file,)).fetchone()[0]
        return max(0, self.git.blob(oid).count(b"\n") - (0 if is_new else known))

    def _segment(self, file: int, content: bytes, *, is_new: bool) -> None:
        found = canonical(content).split(b"\n")[:-1]
        if is_new:
            self._add(file, found)
            return
        old = {key for (key,) in self.db.execute("SELECT key FROM line WHERE file = ?", (file,))}
        keyed = {insert.key_of(line): line for line in found}
        if not old <= keyed.keys():
            raise _LostLineError
        self._add(file, [line for key, line in keyed.items() if key not in old])

    def _add(self, file: int, found: Sequence[bytes]) -> None:
        if self.until is not None:
            found = [line for line in found if not line.startswith(AT) or line[len(AT) :][:27] <= self.until]
        self.waiting += [(file, line) for line in found]
        if len(self.waiting) >= LINES_AT_ONCE // (1 if self.progress is None else 4):
            self._flush()

    def _flush(self) -> None:
        insert.lines_of_files(self.index, self.waiting)
        self.done += len(self.waiting)
        self.waiting = []
        if self.progress is not None:
            self.progress("indexing lines", self.done, max(self.done, self.total))


def rebuild_damaged(index_path: str, error: sqlite3.DatabaseError) -> bool:
    """Remove the index file if the error shows damage; return whether opening it again makes sense."""
    if not index_file.is_corruption(error):
        return False
    index_file.remove(index_path)
    return True
