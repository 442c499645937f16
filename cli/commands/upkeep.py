"""`gitmem upkeep`: what a command starts in the background when the log has many loose objects."""

from __future__ import annotations

import os

from ..surroundings import Surroundings


def upkeep(at: Surroundings) -> int:
    """Pack the log's loose objects, where they are many. Nobody listens: it says nothing."""
    store = at.store()
    store.starts_upkeep = None
    if hasattr(os, "nice"):
        os.nice(10)
    store.keep_up()
    return 0
