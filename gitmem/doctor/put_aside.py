"""Move files aside instead of deleting them."""

from __future__ import annotations

import os
import time

from .. import shared_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store

ASIDE = "aside"  # the name of the folder for such files


def put_aside(store: Store, path: str, *, folder: str | None = None) -> str:
    """Move a file to the folder `ASIDE`, by default below the state folder; return its new path.

    Raises:
        OSError: The file can't be moved.
    """
    where = os.path.join(folder or store.place.state, ASIDE)
    os.makedirs(where, mode=0o700, exist_ok=True)
    shared_mode.adjust(where)
    day = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(store.now() // 1_000_000))
    name, number = os.path.basename(path), 0
    while True:
        to = os.path.join(where, f"{day}-{name}" + (f".{number}" if number else ""))
        if not os.path.lexists(to):
            os.rename(path, to)
            return to
        number += 1
