"""Where a log comes from: what the clone already has, else a new one."""

from __future__ import annotations

from ..errors import StoreError, UsageError
from ..git.localize_objects import make_own
from ..git.port import Draft
from . import log_refs, ref
from .tree_union import union_changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .local_log import LocalLog


def start(log: LocalLog) -> str:
    """Give this clone a log, without the network: its tip.

    A log of this project that an ordinary fetch brought from the usual remote (`refs/remotes/<remote>/gitmem`),
    that a sync fetched, or that somebody checked out as a branch is adopted.
    """
    git = log.git
    adopted = _adoptable(log)
    if adopted:
        base, tip = _united(log, adopted)
        if _make(log, tip, "adopt the log that this clone has"):
            # Also where it is a branch of this clone: it was fetched.
            if git.tip(ref.PUBLISHED_REF) is None:
                git.swap(ref.PUBLISHED_REF, None, base.oid, "adopt")
            return tip
    else:
        tip = new_log(log)
        if _make(log, tip, "start the log"):
            return tip
    found = git.tip(ref.LOG_REF)  # lost the race: somebody else has started it
    if found is None:
        raise ref.locked("nothing was recorded")
    return found


def new_log(log: LocalLog) -> str:
    """Write the first two commits of a log, to which no ref moves: the second one."""
    nobody = log.signature()
    files = ref.fixed_files(ref.Format.make().content, log_refs.own_projects(log))
    drafts = [ref.genesis_draft(), Draft(files, nobody, nobody, "Start the log of this repository\n")]
    genesis, tip = log.git.write(drafts, None)
    if genesis != ref.genesis(genesis):
        raise StoreError(
            f"git wrote the first commit as {genesis}, not {ref.genesis(genesis)}", code="genesis"
        )
    return tip


def adopt(log: LocalLog) -> None:
    """Take up the log that this clone has under another name, if it has one: for who only reads.

    Nothing is started, and nothing is done where this process may not write or somebody else is at it.
    """
    if log.git.tip(ref.LOG_REF) is not None or not _adoptable(log) or not log.make_state():
        return
    lock = log.lock()
    if lock.take():
        with lock:
            if log.git.tip(ref.LOG_REF) is None:
                start(log)


def _make(log: LocalLog, tip: str, why: str) -> bool:
    """Make the ref, for a caller who holds our lock: what the dead left locked is broken. False where it is there."""
    git = log.git
    make_own(log.place.common, tip)
    if git.swap(ref.LOG_REF, None, tip, why):
        return True
    stale = git.tip(ref.LOG_REF) is None and git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
    return stale and git.swap(ref.LOG_REF, None, tip, why)


def _adoptable(log: LocalLog) -> list[log_refs.Tip]:
    """The logs to adopt, the one that the others are put on first. Each has to pass the checks of a remote's places."""
    from .place_checks import PlaceCheck

    refs = log_refs.known(log)
    if not refs:
        return []
    others = set(log_refs.fetched_by_hand(log))
    if others:  # which remote is the usual one takes processes of git
        from ..git.remotes import upstream_remote

        try:
            others.discard(f"refs/remotes/{upstream_remote(log.place)}/gitmem")
        except UsageError:
            pass  # that is not plain
    tips = PlaceCheck(log, None, ()).admit({name: oid for name, oid in refs.items() if name not in others})
    ours = log_refs.own_projects(log)
    found = []
    for tip in tips:
        if log_refs.related(ours, tip.projects):
            ours = ours | tip.projects
            found.append(tip)
    return found


def _united(log: LocalLog, tips: list[log_refs.Tip]) -> tuple[log_refs.Tip, str]:
    """The log that has everything, else a commit with the union on the first: what it stands on, and it."""
    for tip in tips:
        if not union_changes(log.git, tip.tree, [other.tree for other in tips]):
            return tip, tip.oid
    first, *others = tips
    changes = union_changes(log.git, first.tree, [other.tree for other in others])
    nobody = log.signature()
    message = "Unite the logs that this clone has\n\n" + "".join(f"{tip.name}\n" for tip in tips)
    (commit,) = log.git.write([Draft(changes, nobody, nobody, message)], first.oid)
    return first, commit
