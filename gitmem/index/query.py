"""The index as it lies, for questions that must not cost a catch-up."""

from __future__ import annotations

import os

from ..git.tip import loose_tip
from . import schema
from .engine import sqlite3
from .schema import Index, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..place import Place

LOG_REF = "refs/gitmem/log"


def fresh(
    place: Place, machine: str, views: Sequence[View], elsewhere: Sequence[str] = ()
) -> sqlite3.Connection | None:
    """The index, if it plainly has all that the ref and the spools have; None says only: not plainly.

    Git is not started, so a packed ref is not plain. Neither is a spooled line that waits for a
    commit: the next whole command commits it.

    Args:
        elsewhere: Spool folders outside the repository.
    """
    where = schema.path(place, machine)
    spooled = _spooled([os.path.join(place.state, "spool"), *elsewhere])
    if spooled is None:
        return None
    tip = loose_tip(place.common, LOG_REF)  # after the spool: a file that is gone by now is in this commit
    if tip is None or not os.path.isfile(where):
        return None
    connection = None
    try:
        connection = sqlite3.connect(where, isolation_level=None)
        index = Index(connection, views, lambda line: None)
        if index.is_shaped() and index.tip == tip and spooled == _known(connection):
            return connection
    except sqlite3.Error:
        pass
    if connection is not None:
        connection.close()
    return None


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


def _known(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(connection.execute("SELECT parent, name FROM file WHERE id < 0"))
