"""What an agent that comes back needs to go on: `mem recover`, in few words."""

from __future__ import annotations

from gitmem.errors import GitmemError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.caller import Caller
    from gitmem.operations.store import Store

MAX_SIZE = 1536  # bytes
_LOST = ("compact", "resume", "clear")  # after these the agent has worked here before, and forgot


def block(store: Store, caller: Caller, source: str) -> str:
    """The block, or an empty text where there is nothing, or where `gitmem.recover` says no.

    Args:
        source: How the session starts: one that is new gets it only where somebody left a checkpoint.
    """
    if store.settings().get("gitmem.recover", "").lower() in ("false", "no", "off", "0"):
        return ""
    from gitmem.operations.memory import recover

    try:
        if source not in _LOST and not recover.last_checkpoint(
            store, caller.session_id, caller.wu_id, None, caller.reader
        ):
            return ""
        found = recover.recover(store, caller, max_size=MAX_SIZE, roster=False)
    except GitmemError:
        return ""
    return found.block.rstrip("\n") if any(found.included.values()) else ""
