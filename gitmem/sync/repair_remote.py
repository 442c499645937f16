"""Repair the shared ref of a remote if every clone leaves out its commit."""

from __future__ import annotations

from ..errors import RemoteError, UsageError
from ..git.port import Draft
from ..git.separate_fetch import MISSING
from ..log import log_refs, ref
from ..log.ref_checks import INVALID, RefCheck
from ..log.tree_checks import TreeCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.left_out import LeftOut
    from ..log.local_log import LocalLog
    from .remote import Remote


_NO_TIP = "This clone has no valid tip of it: repair it from a clone that synced with it before."


def repair(log: LocalLog, remote: Remote, timeout: float, *, force: bool) -> bool:
    """Move the shared ref to a valid tree again; return whether it was moved.

    If only the tree is bad and the history can be fetched, push a commit on top with the tree of the local log. If not,
    or if clones would leave out that commit too, force-push the last accepted tip, but only if the ref is still at the
    bad commit.

    Args:
        force: Whether the user has agreed to a forced push.

    Raises:
        UsageError: `repair-needs-yes`; nothing was pushed.
    """
    found, local = remote.blocked, log.git.tip(ref.LOG_REF)
    if remote.state:
        return False
    if found is None or found.kind != INVALID or found.why == MISSING:
        remote.add_sentence(f"The log on {remote.name} needs no repair." if found is None else "")
        return False
    if not remote.may_send:
        remote.add_sentence(
            f"A repair pushes, and nobody agreed to publish there: gitmem sync --publish --repair {remote.shown_name}"
        )
        return False
    if local is None:
        remote.add_sentence(_NO_TIP)
        return False
    base = remote.shared()
    new = _repair_commit(log, remote, found.commit, local)
    forced = new is None
    if forced and base is None:
        remote.add_sentence(_NO_TIP)
        return False
    if forced and not force:
        _ask(log, remote, found, base.oid if base is not None else "")
    new = new or (base.oid if base is not None else "")
    try:
        done = log.network.push(remote.url, new, found.ref, found.commit, timeout, force=forced)
    except RemoteError as error:
        remote.fail(error)
        return False
    if done == "pushed":
        remote.add_sentence(f"Repaired {found.ref} of {remote.name}: it was at {found.commit[:12]}.")
    return done == "pushed"


def _repair_commit(log: LocalLog, remote: Remote, bad: str, local: str) -> str | None:
    """Return a commit on the bad one with the tree of the local log; None if other clones would leave it out too."""
    if bad in dict(remote.unfetchable.values()) or not _is_rooted(log, bad):
        return None
    who = log.signature()
    draft = Draft({}, who, who, "Repair the tree of the log\n", tree=log.git.commit(local).tree)
    new = log.git.write([draft], bad)[0]
    known = [oid for name in (ref.PUBLISHED_REF, ref.LOG_REF) if (oid := log.git.tip(name)) is not None]
    check = RefCheck(log, remote.accepted, known)
    check.trees = TreeCheck(log.git, set())  # with the limits: other clones have not lifted them
    return new if check.check(ref.BRANCH, new) is not None else None


def _ask(log: LocalLog, remote: Remote, found: LeftOut, good: str) -> None:
    """Raise UsageError: the user has to agree to a forced push."""
    options = ["--repair", "--yes", *(["--allow-large"] if log.allow_large else [])]
    raise UsageError(
        f"The repair would replace {found.commit[:12]} by {good[:12]} at {found.ref} of {remote.shown_name} with a "
        "forced push. Nothing was pushed.",
        hint="Content that only the replaced commit has is lost there. Confirm with --yes.",
        code="repair-needs-yes",
        next=[f"gitmem sync {' '.join(options)} {remote.shown_name}"],
    )


def _is_rooted(log: LocalLog, oid: str) -> bool:
    try:
        return log_refs.is_rooted(log, oid, [])
    except KeyError:
        return False
