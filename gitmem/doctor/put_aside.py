"""Put away files that stand in the way: they are moved, never deleted."""

from __future__ import annotations

import os
import time

from .. import shared_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store

ASIDE = "aside"  # the folder for them, beside where they were


def put_aside(store: Store, path: str, *, folder: str | None = None) -> str:
    """Move a file to a folder of its own; where it is then. Raises: OSError."""
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
