"""Packing what should have been packed."""

from __future__ import annotations

from ...log import upkeep
from ..checks_packs import CODES as CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .done import Done


def mend(store: Store, done: Done) -> None:
    count = upkeep.upkeep(store.log, least=1)
    done.say(CODES[0], "", f"{count:,} objects were packed.")
    done.say(CODES[1], "", "It was removed.")
