"""Repair the shared ref of a remote when it is at a commit that every clone leaves out."""

from __future__ import annotations

from ..errors import RemoteError, UsageError
from ..git.port import Draft
from ..git.separate_fetch import MISSING
from ..log import places, ref
from .place_checks import INVALID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.log import Log
    from ..log.remote import Remote


def repair(log: Log, remote: Remote, timeout: float, *, force: bool) -> bool:
    """Move the shared ref to a valid tree again; whether it was moved.

    A bad tree over a history that can be fetched gets a commit on top, with the tree of the local log. What can't be
    fetched is taken off by a forced push to the last accepted tip, which is done only if the ref still is at the bad commit.

    Args:
        force: Whether the user has agreed to a forced push.

    Raises: UsageError: `repair-needs-yes`; nothing was pushed.
    """
    found, local = remote.blocked, log.git.tip(ref.LOG_REF)
    if remote.state:
        return False
    if found is None or local is None or found.kind != INVALID:
        remote.say(f"The log on {remote.name} needs no repair." if found is None else "")
        return False
    if not remote.may_send or found.why == MISSING:
        return False
    forced = found.commit in dict(remote.refused.values()) or not _is_rooted(log, found.commit)
    base = remote.shared()
    if not forced:
        who = log.signature()
        draft = Draft({}, who, who, "Repair the tree of the log\n", tree=log.git.commit(local).tree)
        new = log.git.write([draft], found.commit)[0]
    elif base is None:
        remote.say("This clone has no valid tip of it: repair it from a clone that synced with it before.")
        return False
    elif not force:
        raise UsageError(
            f"The repair would replace {found.commit[:12]} by {base.oid[:12]} at {found.ref} of {remote.shown_name} with a "
            "forced push; nothing was pushed.",
            hint="What only the replaced commit has is gone there then. --yes agrees.",
            code="repair-needs-yes",
            next=[f"gitmem sync --repair --yes {remote.shown_name}"],
        )
    else:
        new = base.oid
    try:
        done = log.network.push(remote.url, new, found.ref, found.commit, timeout, force=forced)
    except RemoteError as error:
        remote.fail(error)
        return False
    if done == "pushed":
        remote.say(f"Repaired {found.ref} of {remote.name}: it was at {found.commit[:12]}.")
    return done == "pushed"


def _is_rooted(log: Log, oid: str) -> bool:
    try:
        return places.is_rooted(log, oid, [])
    except KeyError:
        return False
