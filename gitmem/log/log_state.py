"""One state of a clone's log, told from every other without reading any of it."""

from __future__ import annotations

import os

from ..git.read_ref import LOG_REF, plain_tip
from . import wal_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo

FOLDERS = ("wal", "spool")


def of(place: Repo) -> str | None:
    """Return a text that is the same while the log has the same lines, and the clone has accepted the same; None where the
    ref is not plainly in its file.

    It names the files of the write-ahead log with their sizes, then the ref's commit (what is gone from the files by then
    is in it), and the sizes of the ledger and of the ref's reflog: a ref that was moved back is at a commit where it has
    been before.
    """
    state = place.state
    files = [file for name in FOLDERS for file in wal_files.listed(os.path.join(state, name)) if file.size]
    tip = plain_tip(place.common, LOG_REF)
    try:
        known = os.stat(os.path.join(state, "ledger"))
    except OSError:
        return None
    if tip is None:
        return None
    try:
        moves = os.stat(os.path.join(place.common, "logs", *LOG_REF.split("/"))).st_size
    except OSError:
        moves = 0  # the user keeps no reflogs
    sizes = f"{known.st_ino}:{known.st_size}:{moves}"
    return " ".join([tip, sizes, *(f"{file.name}:{file.size}" for file in files)])
