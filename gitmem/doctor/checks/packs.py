"""Check whether the log's packs are combined."""

from __future__ import annotations

from ...log import auto_pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from ..findings import Findings

CODE = "many-packs"


def check(store: Store, found: Findings) -> None:
    """Report too many packs."""
    count = auto_pack.excess_packs(store.log)
    if count:
        found.note(
            CODE,
            f"The log's objects are in {count:,} small packs, which makes git slow: they should have been united.",
            store.place.common,
            "They are united. Commands do so by themselves, where the disk has room and git can run.",
            mends=True,
        )
