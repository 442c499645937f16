"""Write a log anew without forgotten texts and without its history: here, and on the remote that it follows, by one forced push."""

from __future__ import annotations

from ..errors import RemoteError, UsageError
from ..log import forgetting, log_refs, ref
from ..log.committer import notify_moved
from ..outcome import command
from . import read_remote, rebase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from .remote import Remote

COPIED = "Clones that never sync again, forks and the caches of hosts keep what they have: replace a leaked secret."
NOTHING = "The log's history has no forgotten texts."
BACK = (
    "The log has forgotten texts that somebody has put back: `gitmem forget ID REASON` by who wrote them records it again, then"
    " `gitmem sync --forget --yes` takes them out."
)


def is_behind(log: LocalLog, shared: LogTip | None) -> bool:
    """Return whether a shared log is of an earlier epoch than this clone's, which therefore does not go on with it."""
    return shared is not None and shared.format.epoch < (
        forgetting.epoch_of(log, log.git.tip(ref.LOG_REF)) or 0
    )


def is_ahead(log: LocalLog, shared: LogTip | None) -> bool:
    """Return whether a shared log is of a later epoch than this clone's."""
    return shared is not None and shared.format.epoch > (
        forgetting.epoch_of(log, log.git.tip(ref.LOG_REF)) or 0
    )


def new_tip(log: LocalLog, shared: LogTip | None) -> LogTip | None:
    """Return the log to put in the place of the shared one; None if that has no forgotten texts."""
    local = log.git.tip(ref.LOG_REF)
    own = rebase.own_tip(log, local) if local is not None else None
    if own is None or not forgetting.is_epoch_due(log, own):
        return own if is_behind(log, shared) else None
    return log_refs.read(log, ref.LOG_REF, forgetting.begin_epoch(log, own))


def rewrite_local(log: LocalLog, *, agreed: bool) -> str:
    """Write the log of a clone without a remote anew; return what was done, as sentences.

    Raises:
        UsageError: `forget-needs-yes`; nothing was changed.
    """
    rebase.commit_before_sync(log)
    new = new_tip(log, None)
    if new is None:
        return _nothing(log)
    if not agreed:
        raise _needs_yes("the log of this clone", "")
    rebase.rebase_log(log, new, [new], announce=False)
    notify_moved(log)
    forgetting.drop_earlier_epochs(log)
    return f"The log of this clone was written anew without forgotten texts. {COPIED}"


def rewrite_shared(log: LocalLog, remote: Remote, timeout: float, *, agreed: bool) -> bool:
    """Replace a remote's log, all of whose lines are here, by one without forgotten texts.

    Returns:
        Whether to end; False if others pushed meanwhile: fetch, unite, and try again.

    Raises:
        UsageError: `forget-needs-yes`; nothing was replaced.
    """
    new = new_tip(log, remote.shared())
    if new is None:
        remote.add_sentence(_nothing(log))
        return True
    if not agreed:
        raise _needs_yes(f"the log on {remote.shown_name}", remote.shown_name)
    publish = new.format.publish
    try:
        done = log.network.push(remote.url, new.oid, publish, remote.tip, timeout, force=True)
    except RemoteError as error:
        remote.fail(error)
        if error.code == "refused":
            remote.add_sentence(
                f"The log there still has the forgotten texts. Its administrator has to allow one forced push of {publish}"
                " (with git `receive.denyNonFastForwards` false; on a forge the protection of that branch); then:"
                f" {command('gitmem', 'sync', '--forget', '--yes', remote.shown_name)}"
            )
        return True
    if done != "pushed":
        remote.rejections += 1
        return False
    _follow(log, remote, new, timeout)
    return True


def _follow(log: LocalLog, remote: Remote, new: LogTip, timeout: float) -> None:
    """Put this clone's log on the one that was pushed, also at the other name that the remote's log may have had."""
    for name in ref.PUBLISH_REFS:
        old = remote.at(name)
        if name == new.format.publish or old is None or not forgetting.is_earlier(log, old, new.format.epoch):
            continue
        if not remote.has_read(old):
            remote.add_sentence(unread(f"{name} there"))
            continue
        try:
            log.network.push(remote.url, new.oid, name, old, timeout, force=True)
        except RemoteError as error:
            remote.add_sentence(f"{name} there still has the forgotten texts: {error.message}")
    tip = rebase.rebase_log(log, new, [new], announce=False)
    remote.state, remote.tips, remote.tip, remote.pushed = "synced", [new], new.oid, new.oid
    copy = remote.copy_of(new.format.publish)
    moves = [(copy, log.git.tip(copy), new.oid), *read_remote.accepted_ref_moves(remote, new.oid)]
    rebase.note_published(log, tip, new.oid, moves)
    notify_moved(log)
    remote.add_sentence(
        f"The log on {remote.shown_name} was written anew without forgotten texts; other clones follow with their next sync. {COPIED}"
    )


def unread(what: str) -> str:
    """Return the sentence about a log that has lines which are not here."""
    return f"{what} was not replaced, since not all of it could be read."


def _nothing(log: LocalLog) -> str:
    tip = log.git.tip(ref.LOG_REF)
    return BACK if tip is not None and forgetting.has_texts(log, log.git.commit(tip).tree) else NOTHING


def _needs_yes(what: str, remote: str) -> UsageError:
    by = "with a forced push, and all clones follow" if remote else "without its history"
    return UsageError(
        f"This writes {what} anew, {by}; only forgotten texts and the messages of commits are lost. Nothing was replaced.",
        hint="Confirm with --yes.",
        code="forget-needs-yes",
        next=[command("gitmem", "sync", "--forget", "--yes", *([remote] if remote else []))],
    )
