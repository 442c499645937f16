"""Repair the log in one compare-and-swap of its ref, to a commit on a whole base with all known lines.

The steps, numbered as in the code:

1. If the ref points to a readable log, that is the base of the new tip.
2. Else the base is the newest whole commit among its ancestors and earlier tips. Without one, a new log begins.
3. Earlier tips that were removed from the ref are applied again, one by one.
4. One more commit adds the lines that are still missing, and makes the files canonical.
"""

from __future__ import annotations

import time

from ...errors import StoreError
from ...log import ledger, ref, tree_union
from ...sync import repair_log as logs
from .. import missing_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from .fix_result import FixResult

ROUNDS_MAX = 20
GOES_ON = ("not-a-log", "bad-epoch", "no-log", "broken-history", "missing-object")
CODES = (*GOES_ON, "lost-lines", "dropped-lines", "crlf", "not-canonical", "fixed-file", "no-project")


def fix(store: Store, done: FixResult) -> None:
    """Move the log's ref to a repaired tip.

    Raises:
        StoreError: The ref can't be moved; nothing was changed.
    """
    log = store.log
    for attempt in range(ROUNDS_MAX):
        tip = store.git.tip(ref.LOG_REF)
        if tip is None and not missing_lines.find(store, None).found:
            return
        base = logs.repair_base(log, tip)  # 1, 2
        new = _assembled(store, base, tip)
        if new == tip:
            return
        if logs.swap_log_ref(log, tip, new):
            break
        time.sleep(min(0.002 * 1.5**attempt, 0.2) * log.random(1)[0] / 255)
    else:
        raise StoreError(
            f"{ref.LOG_REF} could not be moved: git holds a lock on it, or it moves all the time; nothing was changed.",
            hint="Run the command again.",
            code="locked",
            next=["gitmem doctor --fix"],
        )
    what = f"The log is at {new[:12]} now."
    for code in CODES:
        done.say(code, "", what)
    if base != tip:
        for code in GOES_ON:
            done.say(code, "", f"The log goes on from {base[:12]}, with all lines that are known.")
        logs.forget_damaged(log, tip)
    store.refresh()


def _assembled(store: Store, base: str, tip: str | None) -> str:
    """Return the new tip: `base` itself if it is complete."""
    log = store.log
    found = missing_lines.find(store, base, damaged=tip if tip != base else None)
    top = base
    for oid in reversed(found.heads):
        top = logs.reapply(log, oid, top)  # 3
    present = {
        ledger.key(line) for _, content in logs.segments(log, top) for line in tree_union.lines_of(content)
    }
    missing = [*found.found.values(), *missing_lines.dropped(store, top, set(present))]
    lines: dict[str, list[bytes]] = {}
    for path, line in missing:
        key = ledger.key(line)
        where = missing_lines.path_of(store, path, line) if key not in present else None
        if where is not None:
            lines.setdefault(where, []).append(line)
            present.add(key)
    return logs.repair(log, top, lines)  # 4
