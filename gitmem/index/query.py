"""The index as it lies, for questions that must not cost a catch-up."""

from __future__ import annotations

import os

from ..git.tip import plain_tip
from ..log import wal_files
from . import busy, generations, schema
from .engine import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..place import Place

LOG_REF = "refs/gitmem/log"


def fresh(place: Place, machine: str, shape: int, elsewhere: Sequence[str] = ()) -> sqlite3.Connection | None:
    """The index, if it plainly has all that the ref and the write-ahead logs have; None says only: not plainly.

    Git is not started, so a packed ref is not plain, nor one in a reftable that moved.

    Args:
        shape: What `Index.version` is for the views that the caller asks.
        elsewhere: Write-ahead logs outside the repository.
    """
    where = schema.path(place, machine)
    folders = [*(os.path.join(place.state, name) for name in ("wal", "spool")), *elsewhere]
    sizes = generations.sizes(file for folder in folders for file in wal_files.listed(folder))
    tip = plain_tip(place.common, LOG_REF)  # after the files: what is gone by now is in this commit
    if tip is None or where in busy.UNUSABLE or not os.path.isfile(where):
        return None
    for opened in (_connect, schema.copy_of):  # a folder that can't be written needs the second
        connection = None
        try:
            connection = opened(where)
            if connection is not None and _has(connection, shape, tip, sizes, folders):
                return connection
            failed = False
        except sqlite3.Error:
            failed = True
        if connection is not None:
            connection.close()
        if not failed:
            break
    return None


def has_all(db: sqlite3.Connection, accepted: str | None) -> bool:
    """Return whether a fresh index plainly lacks nothing that this clone has accepted: see `operations.moved_back`.

    Args:
        accepted: The tip that this clone accepted last, where that is known.
    """
    if accepted is not None and db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone() != (
        accepted,
    ):
        return False
    made = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost'").fetchone()
    return made is None or db.execute("SELECT 1 FROM lost LIMIT 1").fetchone() is None


def _connect(where: str) -> sqlite3.Connection:
    return sqlite3.connect(where, isolation_level=None, timeout=busy.COPY_SECONDS)


def _has(
    db: sqlite3.Connection, shape: int, tip: str, sizes: dict[tuple[str, str], int], folders: Sequence[str]
) -> bool:
    if db.execute("PRAGMA user_version").fetchone()[0] != shape:
        return False
    row = db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone()
    return row == (tip,) and generations.has_all(db, folders, sizes)
