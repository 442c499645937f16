"""Read a part of a remote if some of it is not valid, or if it exceeds the limits of one sync."""

from __future__ import annotations

from ..digests import sha256
from ..errors import StoreError
from ..git.incoming import LIMITS
from ..log.check_budget import ANCESTORS_MAX
from ..log.ref_checks import FOREIGN, LARGE, RefCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.left_out import LeftOut
    from ..log.log_refs import LogTip
    from .remote import Remote

OUTBOXES_MAX = LIMITS.outboxes


def sample_outboxes(remote: Remote, outboxes: dict[str, str]) -> dict[str, str]:
    """Return as many outboxes as one sync reads: new ones first, then at random, so that nobody can crowd out the others."""
    if len(outboxes) <= OUTBOXES_MAX:
        return outboxes
    salt = remote.log.random(16)
    seen = remote.host.seen

    def order(name: str) -> tuple[bool, bytes]:
        return outboxes[name] in seen, sha256(salt + name.encode()).digest()

    drawn = sorted(outboxes, key=order)[:OUTBOXES_MAX]
    remote.add_sentence(
        f"{remote.name} has {len(outboxes):,} outboxes; {OUTBOXES_MAX} of them were read, and the next syncs read others: gitmem sync"
    )
    return {name: outboxes[name] for name in outboxes if name in set(drawn)}


def replacement_tip(check: RefCheck, ref_name: str, found: LeftOut) -> LogTip | None:
    """Return the tip to read instead of a shared ref that was left out: the last accepted one, or a part of it."""
    if found.kind == LARGE and found.is_fetched:
        return largest_readable_ancestor(check, ref_name, found.commit) or check.accepted
    if check.accepted is None and found.kind != FOREIGN:
        return valid_ancestor(check, ref_name, found.commit)
    return check.accepted


def largest_readable_ancestor(check: RefCheck, name: str, oid: str) -> LogTip | None:
    """Return the newest commit below a ref that is small enough for one sync; None if there is none.

    It searches only history that neither the local log nor the last accepted tip has, so each sync gets further. All
    commits that it checks share one allowance, and each has a share of its own beside it.
    """
    git = check.log.git
    known = [*check.known, *([check.accepted.oid] if check.accepted is not None else [])]
    line = git.history(oid, [tip for tip in known if git.has(tip)])[:-1]
    found, low, high = None, 0, len(line)
    trees = check.trees.fresh_copy()
    while low < high:
        middle = (low + high) // 2
        probe = RefCheck(check.log, check.accepted, check.known)
        probe.trees = trees
        trees.grant_share()
        tip = probe.check(name, line[middle])
        trees.forget(name)
        if tip is None:
            high = middle
        else:
            found, low = tip, middle + 1
    return found


def valid_ancestor(check: RefCheck, name: str, oid: str) -> LogTip | None:
    """Return the newest ancestor of a rejected tip that passes, or None; for clones that never saw a valid one.

    Each ancestor may be read up to a share of its own. Else a few with large trees would hide the valid ones.
    """
    try:
        *line, _ = check.log.git.unread_history(oid, first_parents=ANCESTORS_MAX + 1)
        if not line or not RefCheck(check.log, None, check.known).is_log_history(name, line[0]):
            return None
        probe = RefCheck(check.log, None, [*check.known, line[0]])  # lists and follows history above it only
        for oid in reversed(line):
            probe.trees.grant_share()
            tip = probe.check(name, oid)
            if tip is not None:
                return tip
            probe.left_out.clear()
    except (KeyError, StoreError):  # the history is incomplete
        pass
    return None
