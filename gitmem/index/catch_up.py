"""Catching up: read only the files that differ from what has been read.

Neither ancestry nor the old tree is needed, so a replayed, rewound or repaired
tip is nothing special. Lines are only ever added; where one is gone from the
log (a redaction, a rewound ref, a withdrawn entry) everything is read anew.
"""

from __future__ import annotations

from ..log import ref
from ..log.ref import LOG_REF
from ..log.union import canon
from ..sha256 import sha256
from . import lost, schema
from .engine import sqlite3
from .schema import Index, Row, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..log.log import Log
    from ..log.spool import Spool

KEY_BYTES = 16
LINES_AT_ONCE = 10_000  # added together: one file at a time would take twice as long
BODY_MAX_BYTES = 256 * 1024
AT = b'{"at":"'


class _LostLineError(Exception):
    """A line that the index has is in the log no more."""


def catch_up(index: Index, log: Log, *, progress: Callable[[int], None] | None = None) -> None:
    """Bring the index to the ref's tip and the spools.

    Args:
        progress: Called now and then with the number of lines read so far.

    Raises: sqlite3.DatabaseError where the index file is damaged or cannot be written.
    """
    if index.is_shaped() and _is_current(index, log):
        return
    db = index.db
    db.execute("BEGIN IMMEDIATE")
    try:
        if not index.is_shaped():
            index.reshape()
        try:
            _Reader(index, log, progress).read()
        except _LostLineError:
            is_aside = lost.put_aside(index, log)
            index.reshape()
            _Reader(index, log, progress).read()
            lost.keep(index, is_aside)
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if isinstance(error, KeyError):
            raise ref.missing_object(error, "nothing was changed") from error
        raise


def read_commit(
    index: Index,
    log: Log,
    commit: str,
    *,
    until: bytes | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Fill an index that holds nothing with what stood in the log at one of its commits; no spool counts.

    Args:
        until: The `at` of the last moment that counts: later lines are left out. Lines without a time are kept.
        progress: As for `catch_up`.

    Raises: StoreError where an object of the log is missing.
    """
    index.db.execute("BEGIN")
    index.reshape()
    try:
        reader = _Reader(index, log, progress, until)
        reader.read_tree(commit)
    except KeyError as error:
        raise ref.missing_object(error, "nothing was changed") from error
    index.db.execute("COMMIT")


def is_current(index: Index, log: Log) -> bool:
    """Whether the index has just what the ref and the spools have."""
    return index.is_shaped() and _is_current(index, log)


def _is_current(index: Index, log: Log) -> bool:
    names = _spool_names(log)  # before the tip: a file that is gone by now is in the commit that we see
    return index.tip == log.git.tip(LOG_REF) and set(names) == _known_spool_names(index, log)


def _spool_names(log: Log) -> dict[tuple[str, str], tuple[Spool, str]]:
    return {
        schema.spool_row(spool.folder, name): (spool, name) for spool in log.spools for name in spool.names()
    }


def _known_spool_names(index: Index, log: Log) -> set[tuple[str, str]]:
    return schema.known_spool_files(index.db, [spool.folder for spool in log.spools])


class _Reader:
    """One pass over what differs, inside the transaction of `catch_up`."""

    def __init__(
        self, index: Index, log: Log, progress: Callable[[int], None] | None, until: bytes | None = None
    ) -> None:
        self.index = index
        self.db = index.db
        self.log = log
        self.git = log.git
        self.progress = progress
        self.until = until
        self.done = 0
        self.waiting: list[tuple[int, bytes]] = []

    def read(self) -> None:
        spooled = _spool_names(self.log)
        known = _known_spool_names(self.index, self.log)
        entries = self._read_spools({row: spooled[row] for row in sorted(spooled.keys() - known)})
        tip = self.git.tip(LOG_REF)
        if tip is not None and tip != self.index.tip:
            self.read_tree(tip)
        elif tip is None and self.index.tip is not None:
            raise _LostLineError
        for parent, name in known - spooled.keys():
            self._forget_spool_file(parent, name)
        for (parent, name), content in entries:
            self._spool_file(parent, name, content)

    def read_tree(self, commit: str) -> None:
        self._folder("", self.git.commit(commit).tree, top=True)
        self._flush()
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('tip', ?)", (commit,))

    def _read_spools(
        self, files: Mapping[tuple[str, str], tuple[Spool, str]]
    ) -> list[tuple[tuple[str, str], list[bytes]]]:
        found: list[tuple[tuple[str, str], list[bytes]]] = []
        for row, (spool, name) in files.items():
            try:
                found.append((row, [line for _, line in spool.read(name).lines]))
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                found.append((row, []))  # not ours: known, so that it is not opened again and again
        return found

    def _spool_file(self, parent: str, name: str, content: Sequence[bytes]) -> None:
        (least,) = self.db.execute("SELECT min(0, min(id)) FROM file").fetchone()
        file = (least or 0) - 1
        self.db.execute("INSERT INTO file VALUES (?, ?, ?, '')", (file, parent, name))
        add_lines(self.index, file, content)

    def _forget_spool_file(self, parent: str, name: str) -> None:
        (file,) = self.db.execute(
            "SELECT id FROM file WHERE parent = ? AND name = ?", (parent, name)
        ).fetchone()
        if self.db.execute("SELECT 1 FROM line WHERE file = ? LIMIT 1", (file,)).fetchone():
            raise _LostLineError
        self.db.execute("DELETE FROM file WHERE id = ?", (file,))

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
            key = schema.as_text(name) + ("/" if entry.is_tree else "")
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
                self._segment(file, self.git.blob(entry.oid), is_new=known_oid is None)
        if known:
            raise _LostLineError

    def _segment(self, file: int, content: bytes, *, is_new: bool) -> None:
        found = canon(content).split(b"\n")[:-1]
        if is_new:
            self._add(file, found)
            return
        old = {key for (key,) in self.db.execute("SELECT key FROM line WHERE file = ?", (file,))}
        keyed = {key_of(line): line for line in found}
        if not old <= keyed.keys():
            raise _LostLineError
        self._add(file, [line for key, line in keyed.items() if key not in old])

    def _add(self, file: int, found: Sequence[bytes]) -> None:
        if self.until is not None:
            found = [line for line in found if not line.startswith(AT) or line[len(AT) :][:27] <= self.until]
        self.waiting += [(file, line) for line in found]
        if len(self.waiting) >= LINES_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        _add_all(self.index, self.waiting)
        self.done += len(self.waiting)
        self.waiting = []
        if self.progress is not None:
            self.progress(self.done)


def add_lines(index: Index, file: int, found: Sequence[bytes]) -> None:
    """Add lines of a file, and what the views derive from those that are new.

    Equal bytes are one line; one that only a spool had so far now belongs to the file.
    """
    _add_all(index, [(file, line) for line in found])


def _add_all(index: Index, found: Sequence[tuple[int, bytes]]) -> None:
    values: list[tuple[int, bytes, object, object, str]] = []
    records = {}
    for file, line in found:
        key = key_of(line)
        try:
            record = index.read(line)
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            record = None  # a reader that stumbles over a line costs that line
        if record is None:
            body = line[:BODY_MAX_BYTES].decode("utf-8", "replace")
            values.append((file, key, "", "", body))
        else:
            records[key] = (line, record)
            values.append((file, key, record["at"], record["kind"], line.decode()))
    (before,) = index.db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    index.db.executemany(
        "INSERT INTO line (file, key, at, kind, body) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET file = excluded.file WHERE line.file < 0",
        values,
    )
    rows = [
        Row(id, *records[key])
        for id, key in index.db.execute("SELECT id, key FROM line WHERE id > ?", (before,))
        if key in records
    ]
    for view in index.views:
        mine = [row for row in rows if row.record["kind"] in view.kinds]
        if mine:
            _feed(index.db, view, mine)


def _feed(db: sqlite3.Connection, view: View, rows: Sequence[Row]) -> None:
    """Give rows to a view. A row that it can't take costs that row in this view, and is noted in `skipped`."""
    db.execute("SAVEPOINT feed")
    try:
        view.add(db, rows)
    except Exception as error:
        if schema.is_of_the_file(error):
            raise
        db.execute("ROLLBACK TO feed")
        db.execute("RELEASE feed")
        if len(rows) == 1:
            db.execute("INSERT OR IGNORE INTO skipped VALUES (?)", (rows[0].id,))
            return
        middle = len(rows) // 2
        _feed(db, view, rows[:middle])
        _feed(db, view, rows[middle:])
    else:
        db.execute("RELEASE feed")


def key_of(line: bytes) -> bytes:
    """Return the `key` of a line in the table of lines."""
    return sha256(line).digest()[:KEY_BYTES]


def rebuild_damaged(index_path: str, error: sqlite3.DatabaseError) -> bool:
    """Put the file away if the error says that it is damaged. True when it is worth opening again."""
    if not schema.is_corruption(error):
        return False
    schema.discard(index_path)
    return True
