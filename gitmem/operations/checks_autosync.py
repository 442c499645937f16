"""Doctor's look at autosync: whether it is on at all, and whether it works."""

from __future__ import annotations

from . import autosync
from .findings import SYNC, Findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Store

OFF = (autosync.OFF, "false", "no", "0", "")
MAY_PASS = ("offline", "rejected", "timeout")


def check(store: Store, found: Findings) -> None:
    """A setting that is none, and what went wrong in the last automatic sync."""
    text = autosync.setting(store.place)
    if text is not None and text.lower() not in OFF and autosync.seconds(text) is None:
        found.note(
            "autosync-setting",
            f"{autosync.KEY} is {text!r}, which is no interval: gitmem does not sync by itself.",
            autosync.KEY,
            "Set it anew.",
            "gitmem init --autosync 30s",
        )
    trouble = autosync.trouble(store.place)
    if trouble is None:
        return
    tell = found.note if trouble.code in MAY_PASS else found.problem
    tell(
        "autosync-failed",
        f"{trouble.what}, at {trouble.at}: {trouble.message}",
        autosync.KEY,
        "What was recorded here stays recorded. It is tried again, after some minutes at most; a sync by hand shows more.",
        SYNC,
    )
