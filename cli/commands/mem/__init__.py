"""`gitmem mem …`: what agents write down for whoever comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import checkpoint, context, knowledge, listing, nodes, search, upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

# In the order in which one meets them.
COMMANDS: tuple[tuple[str, Callable[..., int]], ...] = (
    ("create", nodes.create),
    ("update", nodes.update),
    ("relate", nodes.relate),
    ("checkpoint", checkpoint.checkpoint),
    ("show", listing.show),
    ("list", listing.listing),
    ("ready", listing.ready),
    ("search", search.search),
    ("context", context.context),
    ("recover", context.recover),
    ("profile", context.profile),
    ("promote", knowledge.promote),
    ("summarize", knowledge.summarize),
    ("triage", knowledge.triage),
    ("index", knowledge.index),
    ("archive", upkeep.archive),
    ("cleanup", upkeep.cleanup),
    ("delete", upkeep.delete),
    ("export", listing.export),
    ("access", upkeep.access),
)
