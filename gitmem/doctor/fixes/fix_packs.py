"""Combine packs that automatic packing has left."""

from __future__ import annotations

from ...log import auto_pack
from ..checks.packs import CODE as CODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from .fix_result import FixResult


def fix(store: Store, done: FixResult) -> None:
    """Combine the packs into one, and report their number."""
    done.say(CODE, "", f"{auto_pack.pack(store.log):,} packs have become one.")
