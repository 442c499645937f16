"""The index as it lies, for questions that must not cost a catch-up."""

from __future__ import annotations

import os

from ..git.tip import plain_tip
from . import busy, schema
from .engine import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..place import Place

LOG_REF = "refs/gitmem/log"


def fresh(place: Place, machine: str, shape: int, elsewhere: Sequence[str] = ()) -> sqlite3.Connection | None:
    """The index, if it plainly has all that the ref and the spools have; None says only: not plainly.

    Git is not started, so a packed ref is not plain, nor one in a reftable that moved. Neither is a spooled line that waits for a
    commit: the next whole command commits it.

    Args:
        shape: What `Index.version` is for the views that the caller asks.
        elsewhere: Spool folders outside the repository.
    """
    where = schema.path(place, machine)
    folders = [os.path.join(place.state, "spool"), *elsewhere]
    spooled = _spooled(folders)
    if spooled is None:
        return None
    tip = plain_tip(place.common, LOG_REF)  # after the spool: a file that is gone by now is in this commit
    if tip is None or where in busy.UNUSABLE or not os.path.isfile(where):
        return None
    for opened in (_connect, schema.copy_of):  # a folder that can't be written needs the second
        connection = None
        try:
            connection = opened(where)
            if connection is not None and _has(connection, shape, tip, spooled, folders):
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
    db: sqlite3.Connection, shape: int, tip: str, spooled: set[tuple[str, str]], folders: Sequence[str]
) -> bool:
    if db.execute("PRAGMA user_version").fetchone()[0] != shape:
        return False
    row = db.execute("SELECT value FROM meta WHERE key = 'tip'").fetchone()
    return row == (tip,) and spooled == schema.known_spool_files(db, folders)


def _spooled(folders: Sequence[str]) -> set[tuple[str, str]] | None:
    """The spool files as the index names them, or None where one of them waits for a commit."""
    found = set()
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.endswith(".spool") and not name.startswith("tmp-"):
                if not name.endswith("-ride.spool"):
                    return None
                found.add(schema.spool_row(folder, name))
    return found
