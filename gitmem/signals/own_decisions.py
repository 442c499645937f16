"""Decisions that a session recorded in another's name, on proposals of its own: they decide nothing."""

from __future__ import annotations

from ..operations.causality import DECISIONS, Said, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def without_own(thread: Mapping[str, Said]) -> dict[str, Said]:
    """Return a thread in which the decisions are void that a session recorded in another's name, having proposed itself."""
    found = dict(thread)
    recorded = [said for said in thread.values() if said.intent in DECISIONS and said.text("via")]
    if not recorded:
        return found
    top = root(thread)
    asking = (said for said in thread.values() if said is top or said.intent in ("PROPOSE", "COUNTER"))
    sessions = {said.text("sender_session") for said in asking}
    for said in recorded:
        if said.text("via") in sessions:
            found[said.id] = void = Said(said.record, said.lines, counts=said.counts)
            void.void = True
    return found
