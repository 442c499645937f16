"""Insert lines into the index: into the table of lines, and the new ones into the views."""

from __future__ import annotations

import gc

from ..digests import hash_function_for, sha256
from . import index_file
from .rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from .index_file import Index, View
    from .rows import Group

KEY_BYTES = 16
BODY_MAX_BYTES = 256 * 1024
MANY = 1_000  # lines of a batch that gets a larger SQLite log
PAGES = 4_000  # of SQLite's own log: 16 MB. With the default of 1,000 a batch waits for the disk twice more
_INSERT = (
    "INSERT INTO line (file, key, at, kind, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET file = excluded.file WHERE line.file < 0"
)


def lines(index: Index, file: int, found: Sequence[bytes], groups: Sequence[Group] | None = None) -> None:
    """Insert the lines of a file, and update the views with the new ones.

    Equal bytes are one line. A line that waited for its commit until now becomes one of this file.
    """
    lines_of_files(index, [(file, line) for line in found], groups)


def lines_of_files(
    index: Index, found: Sequence[tuple[int, bytes]], groups: Sequence[Group] | None = None
) -> None:
    """Insert lines as `lines` does, each with the number of its file.

    Args:
        groups: The result of `index.read` for the lines, if known.
    """
    if not found:
        return
    with WithoutCollector():
        _add(index, found, groups)


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


def _add(index: Index, found: Sequence[tuple[int, bytes]], groups: Sequence[Group] | None) -> None:  # noqa: C901  (one pass that binds columns fast)
    db = index.db
    if len(found) >= MANY:
        # SQLite's log is checkpointed by the next committer, or when the index is closed: see `StoreIndex.tidy_index`.
        db.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
    if groups is None:
        groups = _read(index, [line for _, line in found])
    # The lines of a group get consecutive numbers; lines that are not records come last.
    order = [number for _, numbers, _, _ in groups for number in numbers]
    ats = [record["at"] for _, _, records, _ in groups for record in records]
    kinds = [kind for kind, numbers, _, _ in groups for _ in numbers]
    bodies = [found[number][1].decode() for number in order]
    if len(order) < len(found):
        others = sorted(set(range(len(found))).difference(order))
        order += others
        bodies += [found[number][1][:BODY_MAX_BYTES].decode("utf-8", "replace") for number in others]
        ats += [""] * len(others)
        kinds += [""] * len(others)
    found = [found[number] for number in order]
    lines = [line for _, line in found]
    hashed = hash_function_for(len(lines))
    keys = [hashed(line).digest()[:KEY_BYTES] for line in lines]
    (before,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    files = [file for file, _ in found]
    # sqlite3 binds a bytearray four times as fast as bytes.
    db.executemany(_INSERT, zip(files, map(bytearray, keys), ats, kinds, bodies, strict=True))
    (last,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    ids = {}
    if last - before < len(lines):  # some were there already, or are duplicates
        ids = {key: id for id, key in db.execute("SELECT id, key FROM line WHERE id > ?", (before,))}
    rows, start = Rows({}), 0
    for kind, numbers, records, columns in groups:
        end = start + len(numbers)
        if last - before == len(lines):
            rows.add(kind, range(before + 1 + start, before + 1 + end), lines[start:end], records, columns)
        else:
            for key, line, record in zip(keys[start:end], lines[start:end], records, strict=True):
                if key in ids:
                    rows.add(kind, [ids.pop(key)], [line], [record], None)
        start = end
    for view in index.views:
        mine = Rows({kind: of for kind, of in rows.by_kind.items() if kind in view.kinds})
        if mine:
            _feed(db, view, mine)


def _read(index: Index, lines: Sequence[bytes]) -> Sequence[Group]:
    """Return the result of `index.read`. Lines that equal those of `index.preloaded` are not parsed again."""
    if index.preloaded is None:
        return index.read(lines)
    preloaded, (kind, _, records, columns) = index.preloaded
    try:
        start = lines.index(preloaded[0])
    except ValueError:
        return index.read(lines)
    end = start + len(preloaded)
    if lines[start:end] != preloaded:
        return index.read(lines)
    others = [*range(start), *range(end, len(lines))]
    read = index.read([lines[number] for number in others])
    moved: list[Group] = [
        (of, [others[number] for number in numbers], found, fields) for of, numbers, found, fields in read
    ]
    return [(kind, range(start, end), records, columns), *moved]


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
        _feed(db, view, Rows.of_rows(every[:middle]))
        _feed(db, view, Rows.of_rows(every[middle:]))
    else:
        db.execute("RELEASE feed")


def key_of(line: bytes) -> bytes:
    """Return the `key` of a line in the table of lines."""
    return sha256(line).digest()[:KEY_BYTES]
