"""A fingerprint of the state of a clone's log, made without reading the log."""

from __future__ import annotations

import os

from ..git.read_ref import LOG_REF, plain_tip
from . import wal_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo


def fingerprint(repo: Repo) -> str | None:
    """Describe the state in a text that changes whenever the log's lines or the clone's accepted lines change.

    It contains the names and sizes of the write-ahead log files, the commit of the ref (read after them, because a file
    is removed only after its commit), and the sizes of the ledger and of the ref's reflog, as a ref that was moved back
    has a commit that it had before.

    Returns:
        The text, or None if the ref is not in a plain file of its own or there is no ledger.
    """
    state = repo.state
    files = [file for file in wal_files.list_files(os.path.join(state, "wal")) if file.size]
    tip = plain_tip(repo.common, LOG_REF)
    try:
        known = os.stat(os.path.join(state, "ledger"))
    except OSError:
        return None
    if tip is None:
        return None
    try:
        moves = os.stat(os.path.join(repo.common, "logs", *LOG_REF.split("/"))).st_size
    except OSError:
        moves = 0  # reflogs are off
    sizes = f"{known.st_ino}:{known.st_size}:{moves}"
    return " ".join([tip, sizes, *(f"{file.name}:{file.size}" for file in files)])
