"""Check the setting of automatic sync and the result of the last sync."""

from __future__ import annotations

from ...sync import autosync, consent_messages
from ..findings import SYNC, Findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store

OFF = (autosync.OFF, "false", "no", "0", "")
MAY_PASS = ("offline", "rejected", "timeout", "empty")


def check(store: Store, found: Findings) -> None:
    """Report an invalid setting, and the failure of the last sync."""
    text = autosync.configured_interval(store.place)
    if text is not None and text.lower() not in OFF and autosync.seconds(text) is None:
        found.note(
            "autosync-setting",
            f"{autosync.KEY} is {text!r}, which is no interval: gitmem does not sync by itself.",
            autosync.KEY,
            "Set it anew.",
            "gitmem init --autosync 30s",
        )
    remark = consent_messages.consent_remark(store)
    if remark is not None:
        found.note(
            "autosync-only-fetches",
            remark,
            autosync.KEY,
            "An agent asks its user whether others may read this log there. It never agrees for its user.",
        )
    trouble = autosync.last_failure(store.place)
    if trouble is None:
        return
    tell = found.note if trouble.code in MAY_PASS else found.problem
    is_on = autosync.interval(store.place) is not None
    again = " It is tried again by itself, after some minutes at most." if is_on else ""
    tell(
        "sync-failed",
        f"{trouble.what}, at {trouble.at}: {trouble.message}",
        "",
        f"What was recorded here stays recorded. This is told until a sync is good.{again}",
        SYNC,
    )
