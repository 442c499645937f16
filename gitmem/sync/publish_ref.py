"""Where the log is published: a field of its `format` file, so that all clones agree."""

from __future__ import annotations

import time

from ..git.port import Draft
from ..log import committer, ref
from ..log.start import start
from . import rebase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.local_log import LocalLog


def set_publish_ref(log: LocalLog, ref_name: str) -> bool:
    """Record in `format` where the log is published, for all clones; return False if it is recorded already."""
    git = log.git
    for _ in range(committer.SWAPS_MAX):
        with rebase.take_lock(log) as lock:
            tip = git.tip(ref.LOG_REF) or start(log)
            form = rebase.own_tip(log, tip).format
            if form.publish == ref_name:
                return False
            new = ref.Format.make(turn=form.turn + 1, publish=ref_name)
            who = log.signature()
            draft = Draft({"format": new.content}, who, who, f"Publish the log at {ref_name}\n")
            if git.advance(ref.LOG_REF, tip, draft, "publish") is not None:
                return True
            if lock.is_held:
                git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
        time.sleep(0.002 + 0.01 * log.random(1)[0] / 255)
    raise ref.locked("nothing was changed")
