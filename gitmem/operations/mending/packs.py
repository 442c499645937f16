"""Uniting packs that should have been united."""

from __future__ import annotations

from ...log import upkeep
from ..checks_packs import CODE as CODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .done import Done


def mend(store: Store, done: Done) -> None:
    done.say(CODE, "", f"{upkeep.upkeep(store.log):,} packs have become one.")
