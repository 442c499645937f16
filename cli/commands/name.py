"""`gitmem name add|remove|list`."""

from __future__ import annotations

from ..render import out, people
from ..surroundings import Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import AllowSecret, Names


def add(at: Surroundings, names: Names, allow_secret: AllowSecret = False) -> None:
    """Add names to the pool."""
    from gitmem.operations import names as operation

    changed = operation.add(at.store(), at.caller(), names, allow_secret=allow_secret)
    out.answer(at.json, changed, people.names_changed)


def remove(at: Surroundings, names: Names, allow_secret: AllowSecret = False) -> None:
    """Take names out of the pool; whoever has one keeps it."""
    from gitmem.operations import names as operation

    changed = operation.remove(at.store(), at.caller(), names, allow_secret=allow_secret)
    out.answer(at.json, changed, people.names_changed)


def listing(at: Surroundings) -> None:
    """List the pool, least recently used first."""
    from gitmem.operations import names as operation

    out.answer(at.json, operation.listing(at.store()), people.names)
