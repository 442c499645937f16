"""Append: record an entry in the write-ahead log. Its commit comes later, see `committer`."""

from __future__ import annotations

from ..errors import StoreError
from . import ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .entry import Entry
    from .log import Log
    from .wal import WriteAheadLog


class Appended:
    """What became of an entry that was recorded.

    Attributes:
        commit: The commit that it is in; None while it waits for one.
        where: The folder outside the repository in which it waits, or None.
    """

    __slots__ = ("commit", "where")

    def __init__(self, commit: str | None, where: str | None = None) -> None:
        self.commit = commit
        self.where = where


def append(log: Log, entry: Entry) -> Appended:
    """Record an entry: when this returns it survives a crash and a power loss.

    Raises: StoreError; then nothing was recorded, but for `wal-unknown`.
    """
    entry.token = entry.token or log.token()
    if log.make_state():
        log.wal.append(entry)
        where = None
    else:
        where = log.left_in = _append_elsewhere(log, entry).folder
    ledger.note(log, [entry])
    log.recorded([entry])
    return Appended(None, where)


def _append_elsewhere(log: Log, entry: Entry) -> WriteAheadLog:
    """Record an entry outside the repository, in the first folder that takes it."""
    failure = None
    for wal in log.elsewhere:
        try:
            wal.append(entry)
        except StoreError as error:
            if error.code == "wal-unknown":
                raise
            failure = failure or error
            continue
        return wal
    raise failure or StoreError(
        f"{log.place.common} cannot be written; nothing was recorded.",
        hint="Ask its owner to let you write there (git config core.sharedRepository group), or use a clone of your own.",
        code="read-only",
    )
