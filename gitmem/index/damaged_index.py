"""Remove an index file that turns out to be damaged during use, and end the operation that used it.

The index is derived from the log: the next command builds it again.
"""

from __future__ import annotations

import os

from ..errors import GitmemError, StoreError
from . import index_file
from .index_file import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo


def remove_if_damaged(where: str, error: BaseException) -> bool:
    """Remove an index file if an error, or else SQLite's own check, shows that it is damaged.

    Args:
        error: The error of an operation that used it.

    Returns:
        Whether it was damaged.
    """
    if not isinstance(error, Exception) or not index_file.is_sound(where):
        return False
    if not _is_damage(error) and _passes_check(where):
        return False
    index_file.remove(where)
    if os.path.lexists(where):  # it cannot be removed: this process does not use it
        index_file.UNUSABLE.add(where)
    return True


def _passes_check(where: str) -> bool:
    """Return whether SQLite's check finds no damage; True also if the file cannot be checked now."""
    try:
        db = sqlite3.connect(where, isolation_level=None, timeout=index_file.COPY_SECONDS)
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


class IndexDamagedError(StoreError):
    """The index was damaged and was removed; the log is intact.

    Attributes:
        may_repeat: Whether nothing was recorded before, so the whole operation may run once more.
    """

    code = "index-damaged"

    def __init__(self, *, recorded: bool) -> None:
        super().__init__(
            "The index was damaged and has been removed. "
            + (
                "The command's records are safe; only its output is incomplete."
                if recorded
                else "Nothing was recorded; the log is intact."
            ),
            hint="The next command rebuilds the index from the log."
            + (" Do not repeat this command without checking its result first." if recorded else ""),
            next=["gitmem log" if recorded else "gitmem doctor"],
        )
        self.may_repeat = not recorded


def error_for(error: Exception, repo: Repo, machine: str, *, recorded: bool) -> IndexDamagedError | None:
    """Return the error to raise for a failure caused by a damaged index, and remove that index; else None.

    Args:
        error: The failure that ended an operation.
        repo: Where the repository is.
        machine: Name of this machine.
        recorded: Whether the operation had recorded anything.
    """
    if isinstance(error, (GitmemError, OSError)) or not remove_if_damaged(
        index_file.path(repo, machine), error
    ):
        return None
    return IndexDamagedError(recorded=recorded)
