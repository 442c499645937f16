"""Read the outboxes of a remote one by one, so that an invalid one does not affect the others."""

from __future__ import annotations

from functools import partial

from ..git.fork_point import HistoryWalk, bases
from . import outbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from ..log.ref_checks import RefCheck
    from .outbox import Outbox


def read(
    log: LocalLog,
    check: RefCheck,
    boxes: Mapping[str, str],
    top: LogTip | None,
    related: Callable[[Sequence[LogTip]], list[LogTip]],
    tips: list[LogTip],
) -> list[Outbox]:
    """Return the outboxes that pass the checks, those with the least new content first.

    Args:
        boxes: Refs with their commits.
        top: The shared log; None if none passed the checks.
        related: Leaves out those of other projects.
        tips: The logs of the remote; outboxes that are logs of their own are appended.
    """
    if top is not None:
        check.accepted = top
    on_top: list[Outbox] = []
    others: list[Outbox] = []
    trunk = HistoryWalk(log.git, top.oid) if top is not None else None
    seen: set[str] = set()
    for name, oid in check.in_order(boxes):
        if oid in seen or (top is not None and not check.is_whole(name, oid)):
            continue
        may_stand_on = partial(check.is_base, name, oid)
        box = outbox.read(log, oid, top, trunk, may_stand_on) if top is not None else None
        if box is not None:
            on_top.append(box)
            seen.add(oid)
            continue
        for tip in related(check.admit({name: oid})) if name not in check.left_out else ():
            box = outbox.whole(log.git, tip, top)
            if all(map(may_stand_on, bases(log.git, box.commits))):
                others.append(box)
                tips.append(tip)
                seen.add(oid)
    return on_top + others
