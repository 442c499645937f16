"""Doctor's look at the log's objects: whether they get packed."""

from __future__ import annotations

from ..log import upkeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Findings
    from .store import Store

CODES = ("loose-objects", "half-pack")


def check(store: Store, found: Findings) -> None:
    """Loose objects that pile up, and what a packing left that was killed."""
    count = upkeep.piled_up(store.log)
    if count:
        found.note(
            CODES[0],
            f"{count:,} objects of the log lie about, each in a file of its own: they should have been packed.",
            store.place.common,
            "They are packed. Commands do so by themselves, where the disk has room and git can run.",
            mends=True,
        )
    for path in upkeep.left_half(store.log):
        found.note(
            CODES[1],
            "Half a pack, left by a process that was killed. Nothing reads it, and nothing in it is lost.",
            path,
            "It is removed.",
            mends=True,
        )
