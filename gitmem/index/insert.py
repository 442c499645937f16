"""Lines on their way into the index: the table of lines, and what the views derive from those that are new."""

from __future__ import annotations

import gc

from ..sha256 import hash_of, sha256
from . import schema
from .rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from .rows import Record
    from .schema import Index, View

KEY_BYTES = 16
BODY_MAX_BYTES = 256 * 1024


def lines(
    index: Index, file: int, found: Sequence[bytes], records: Sequence[Record | None] | None = None
) -> None:
    """Add lines of a file, and what the views derive from those that are new.

    Equal bytes are one line; one that only waited for its commit so far now belongs to the file.
    """
    lines_of_files(index, [(file, line) for line in found], records)


def lines_of_files(
    index: Index, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None] | None = None
) -> None:
    """The same of lines of several files, each with the number of its file.

    Args:
        records: What `index.read` would give of each line, where that is known.
    """
    if not found:
        return
    was_enabled = gc.isenabled()
    gc.disable()  # what is made here has no cycles, and is looked through again and again
    try:
        _add(index, found, [line for _, line in found], records)
    finally:
        if was_enabled:
            gc.enable()


def _add(
    index: Index,
    found: Sequence[tuple[int, bytes]],
    lines: Sequence[bytes],
    records: Sequence[Record | None] | None,
) -> None:
    db = index.db
    records = index.read(lines) if records is None else records
    hashed = hash_of(len(lines))
    keys = [hashed(line).digest()[:KEY_BYTES] for line in lines]
    (before,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    db.executemany(
        "INSERT INTO line (file, key, at, kind, body) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET file = excluded.file WHERE line.file < 0",
        zip(
            [file for file, _ in found],
            map(bytearray, keys),  # sqlite3 binds it four times as fast as bytes
            ["" if record is None else record["at"] for record in records],
            ["" if record is None else record["kind"] for record in records],
            [
                line[:BODY_MAX_BYTES].decode("utf-8", "replace") if record is None else line.decode()
                for line, record in zip(lines, records, strict=True)
            ],
            strict=True,
        ),
    )
    rows = Rows({})
    (last,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    ids: Iterable[int] = range(before + 1, last + 1)
    if last - before < len(lines):  # some were there, or stand twice among these
        of = dict(zip(keys, zip(lines, records, strict=True), strict=True))
        new = db.execute("SELECT id, key FROM line WHERE id > ?", (before,)).fetchall()
        ids, keys = [id for id, _ in new], [key for _, key in new]
        lines, records = [of[key][0] for key in keys], [of[key][1] for key in keys]
    for id, line, record in zip(ids, lines, records, strict=True):
        if record is not None:
            rows.add(id, line, record)
    for view in index.views:
        mine = Rows({kind: of for kind, of in rows.by_kind.items() if kind in view.kinds})
        if mine:
            _feed(db, view, mine)


def _feed(db: sqlite3.Connection, view: View, rows: Rows) -> None:
    """Give rows to a view. A row that it can't take costs that row in this view, and is noted in `skipped`."""
    db.execute("SAVEPOINT feed")
    try:
        view.add(db, rows)
    except Exception as error:
        if schema.is_of_the_file(error):
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
