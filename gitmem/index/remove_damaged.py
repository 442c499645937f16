"""Remove an index file that turns out to be damaged during use. It is derived from the log and is built again."""

from __future__ import annotations

import os

from . import engine, index_file
from .engine import sqlite3


def remove_if_damaged(where: str, error: BaseException) -> bool:
    """Remove an index file if an error, or else SQLite's own check, shows that it is damaged.

    Args:
        error: The error of an operation that used it.

    Returns:
        Whether it was damaged.
    """
    if not isinstance(error, Exception) or not os.path.isfile(where):
        return False
    if not _is_damage(error) and passes_check(where):
        return False
    index_file.remove(where)
    if os.path.lexists(where):  # it cannot be removed: this process does not use it
        engine.UNUSABLE.add(where)
    return True


def passes_check(where: str) -> bool:
    """Return whether SQLite's check finds no damage; True also if the file cannot be checked now."""
    try:
        db = sqlite3.connect(where, isolation_level=None, timeout=engine.COPY_SECONDS)
        try:
            return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        finally:
            db.close()
    except sqlite3.DatabaseError as error:
        return not index_file.is_corruption(error)
    except (sqlite3.Error, UnicodeError):
        return False


def _is_damage(error: Exception) -> bool:
    """Return whether an error can only come from damaged bytes."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    if isinstance(error, sqlite3.OperationalError):
        return index_file.is_corruption(error) or "decode" in str(error)
    return index_file.is_file_error(error)
