"""`gitmem upkeep`: what a command starts in the background when the log has many packs, or a sync brought much."""

from __future__ import annotations

import os

from ..surroundings import Surroundings


def upkeep(at: Surroundings) -> None:
    """Bring the index up to date, and unite the log's small packs where they are many. Nobody listens: it says nothing."""
    store = at.store()
    store.starts_upkeep = None
    store.db()  # with full priority: others wait for it
    if hasattr(os, "nice"):
        os.nice(10)
    store.keep_up()
