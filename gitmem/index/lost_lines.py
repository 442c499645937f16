"""Lines that the index had and the log no longer has. The index keeps them when everything is read again.

Only `doctor` uses them; they are in no other answer.
"""

from __future__ import annotations

import os

from .. import local_files
from ..log import lines as form
from ..log import recovery
from ..text.digests import sha256
from . import index_file
from .index_file import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..log.local_log import LocalLog
    from ..repo import Repo
    from .index_file import Index

KEYS_AT_ONCE = 500
COUNT_MAX = 10_000
_MAKE = index_file.LOST.replace("TABLE", "TABLE IF NOT EXISTS", 1)
_FILL = (
    "INSERT OR IGNORE INTO lost SELECT b.key, 0, CASE WHEN f.id > 0 THEN f.parent || f.name ELSE '' END, b.body"
    " FROM before b JOIN before_file f ON f.id = b.file WHERE b.key NOT IN (SELECT key FROM line)"
)


class KeptLine:
    """A line that an index has: its bytes, and the path of its segment, "" if it only waited for its commit."""

    __slots__ = ("line", "path")

    def __init__(self, line: bytes, path: str) -> None:
        self.line = line
        self.path = path


def set_tables_aside(index: Index, log: LocalLog) -> bool:
    """Set the old tables aside before everything is read again, inside the caller's transaction.

    Returns:
        Whether tables were set aside, for `store_missing`. Those of another project's log are not.
    """
    for name in index_file.KEPT[1:]:
        index.db.execute(f"DROP TABLE IF EXISTS {name}")
    if not recovery.is_of_project(log, index.tip):
        return False
    for name in ("line_file", "line_kind_at"):
        index.db.execute(f"DROP INDEX IF EXISTS {name}")
    index.db.execute("ALTER TABLE line RENAME TO before")
    index.db.execute("ALTER TABLE file RENAME TO before_file")
    return True


def store_missing(index: Index, is_aside: bool) -> None:
    """Keep those lines of the old tables that the log does not have; call it after everything was read again."""
    if not is_aside:
        return
    index.db.execute(_MAKE)
    index.db.execute(_FILL)
    index.db.execute("DELETE FROM lost WHERE key IN (SELECT key FROM line)")
    for name in index_file.KEPT[1:]:
        index.db.execute(f"DROP TABLE {name}")


def forget(db: sqlite3.Connection) -> None:
    """Drop the kept lines that their writers have forgotten."""
    try:
        rows = db.execute("SELECT key, body FROM lost").fetchall()
    except sqlite3.Error:
        return  # the table is created with the first lost line
    of = db.execute("SELECT digest FROM forgotten").fetchall()
    forgotten = {digest for (digest,) in of}
    for key, body in rows if forgotten else ():
        line = str(body).encode("utf-8", "surrogatepass")
        if sha256(form.reduced(line)).digest()[: len(key)] in forgotten:
            db.execute("DELETE FROM lost WHERE key = ?", (key,))


def lines(repo: Repo) -> Iterator[KeptLine]:
    """Yield the lines that indexes of this clone have kept. Some may be in the log again."""
    for db in _indexes(repo):
        yield from _kept(db, "SELECT key, path, body FROM lost", ())
        db.close()


def count(db: sqlite3.Connection) -> int:
    """Return how many records that are missing from the log an up-to-date index has kept, at most `COUNT_MAX`."""
    try:
        rows = db.execute(
            "SELECT body FROM lost WHERE path <> '' AND key NOT IN (SELECT key FROM line) LIMIT ?",
            (COUNT_MAX,),
        )
        found = [str(body).encode("utf-8", "surrogatepass") for (body,) in rows]
        return form.count_records(line for line in found if form.validation_error(line) is None)
    except sqlite3.Error:
        return 0  # the table is created with the first lost line


def find(repo: Repo, keys: Collection[bytes]) -> Iterator[KeptLine]:
    """Yield those lines of the given keys that an index of this clone has or has kept."""
    wanted = sorted(keys)
    for db in _indexes(repo):
        for start in range(0, len(wanted), KEYS_AT_ONCE):
            some = wanted[start : start + KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            yield from _kept(db, f"SELECT key, path, body FROM lost WHERE key IN ({marks})", some)
            yield from _kept(
                db,
                "SELECT l.key, CASE WHEN f.id > 0 THEN f.parent || f.name ELSE '' END, l.body"
                f" FROM line l JOIN file f ON f.id = l.file WHERE l.key IN ({marks})",
                some,
            )
        db.close()


def all_known_lines(log: LocalLog) -> Iterator[KeptLine]:
    """Yield the kept lines and all lines that an index has as lines of the log, for a log that is unreadable."""
    yield from lines(log.repo)
    for db in _indexes(log.repo):
        (tip,) = _one(db, "SELECT value FROM meta WHERE key = 'tip'")
        if recovery.is_of_project(log, tip):
            yield from _kept(
                db,
                "SELECT l.key, f.parent || f.name, l.body FROM line l JOIN file f ON f.id = l.file WHERE f.id > 0",
                (),
            )
        db.close()


def _one(db: sqlite3.Connection, query: str) -> Sequence[str | None]:
    try:
        return db.execute(query).fetchone() or (None,)
    except sqlite3.Error:
        return (None,)


def _indexes(repo: Repo) -> Iterator[sqlite3.Connection]:
    """Yield connections to the index files of all machines that share this folder."""
    for name in sorted(local_files.names_in(repo.state)):
        if name.startswith("index-") and name.endswith(".sqlite3"):
            db = _opened(os.path.join(repo.state, name))
            if db is not None:
                yield db


def _opened(where: str) -> sqlite3.Connection | None:
    if not index_file.is_sound(where):
        return None
    try:
        db = sqlite3.connect(where, isolation_level=None)
        try:
            db.execute("PRAGMA query_only = 1")
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return db
        except sqlite3.Error:
            db.close()
        return index_file.copy_of(where)  # the folder is not writable
    except sqlite3.Error:
        return None


def _kept(db: sqlite3.Connection, query: str, values: Collection[object]) -> Iterator[KeptLine]:
    """Yield the rows whose bytes match their key. Skip the rest if the table is damaged or has another shape."""
    try:
        for key, path, body in db.execute(query, tuple(values)):
            line = str(body).encode("utf-8", "surrogatepass")
            if sha256(line).digest()[: len(key)] == key:
                yield KeptLine(line, str(path))
    except (sqlite3.Error, UnicodeError, TypeError):
        return
