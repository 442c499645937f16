"""Start a log: adopt one that the clone already has, else create one."""

from __future__ import annotations

from ..errors import StoreError, UsageError
from ..git import packs
from ..git.objects import Draft
from . import log_refs, ref
from .tree_union import union_changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .local_log import LocalLog


def start(log: LocalLog) -> str:
    """Create the log's ref without the network, and return its tip.

    A log of this project is adopted if an ordinary fetch got it from the usual remote
    (`refs/remotes/<remote>/gitmem`), a sync fetched it, or it is a local branch.

    Raises:
        StoreError: The ref cannot be created.
    """
    git = log.git
    adopted = _logs_to_adopt(log)
    if adopted:
        base, tip = _union_of(log, adopted)
        if _create_ref(log, tip, "adopt the log that this clone has"):
            # A local branch counts as published, too: it was fetched.
            if git.tip(ref.PUBLISHED_REF) is None:
                git.swap(ref.PUBLISHED_REF, None, base.oid, "adopt")
            return tip
    else:
        tip = new_log(log)
        if _create_ref(log, tip, "start the log"):
            return tip
    found = git.tip(ref.LOG_REF)  # another process has created the ref
    if found is None:
        raise ref.locked("nothing was recorded")
    return found


def new_log(log: LocalLog) -> str:
    """Write the first two commits of a log without moving a ref; return the second.

    Raises:
        StoreError: The first commit does not have the constant id.
    """
    nobody = log.signature()
    files = ref.fixed_files(ref.Format.make().content, log_refs.own_projects(log))
    drafts = [ref.genesis_draft(), Draft(files, nobody, nobody, "Start the log of this repository\n")]
    genesis, tip = log.git.write(drafts, None)
    if genesis != ref.genesis(genesis):
        raise StoreError(
            f"git wrote the first commit as {genesis}, not {ref.genesis(genesis)}", code="genesis"
        )
    return tip


def create_ref_from_fetched(log: LocalLog) -> None:
    """Adopt a log that this clone has under another name; for readers.

    Never create a new log. Do nothing if this process may not write or another one holds the lock.
    """
    if log.git.tip(ref.LOG_REF) is not None or not _logs_to_adopt(log) or not log.make_state():
        return
    lock = log.lock()
    if lock.take():
        with lock:
            if log.git.tip(ref.LOG_REF) is None:
                start(log)


def _create_ref(log: LocalLog, tip: str, why: str) -> bool:
    """Create the ref; False if it exists. The caller holds gitmem's lock; a stale lock of git is broken."""
    git = log.git
    packs.localize(log.repo.common, tip)
    if git.swap(ref.LOG_REF, None, tip, why):
        return True
    stale = git.tip(ref.LOG_REF) is None and git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
    return stale and git.swap(ref.LOG_REF, None, tip, why)


def _logs_to_adopt(log: LocalLog) -> list[log_refs.LogTip]:
    """Return the logs to adopt, the base of a union first. Each must pass the checks for refs of a remote."""
    from .ref_checks import RefCheck

    refs = log_refs.known_log_refs(log)
    if not refs:
        return []
    others = set(log_refs.fetched_branches(log))
    if others:  # finding the usual remote starts git processes
        from ..git.remotes import upstream_remote

        try:
            others.discard(f"refs/remotes/{upstream_remote(log.repo)}/gitmem")
        except UsageError:
            pass  # the usual remote is ambiguous
    tips = RefCheck(log, None, ()).admit({name: oid for name, oid in refs.items() if name not in others})
    ours = log_refs.own_projects(log)
    found = []
    for tip in tips:
        if log_refs.can_merge(ours, tip.projects):
            ours = ours | tip.projects
            found.append(tip)
    return found


def _union_of(log: LocalLog, tips: list[log_refs.LogTip]) -> tuple[log_refs.LogTip, str]:
    """Return the base and the tip of the union: a log that contains all others, else a new commit on the first."""
    for tip in tips:
        if not union_changes(log.git, tip.tree, [other.tree for other in tips]):
            return tip, tip.oid
    first, *others = tips
    changes = union_changes(log.git, first.tree, [other.tree for other in others])
    nobody = log.signature()
    message = "Unite the logs that this clone has\n\n" + "".join(f"{tip.name}\n" for tip in tips)
    (commit,) = log.git.write([Draft(changes, nobody, nobody, message)], first.oid)
    return first, commit
