"""Push to the primary remote: to the shared ref, or to an outbox if the shared ref is contended.

1. No outbox waits: push to the shared ref, once a round. That is cheapest while one clone writes at a time.
2. The shared ref moved, or outboxes wait: push the lines that the remote lacks to an outbox, which can't lose a race.
   Where more wait than a sync reads, the shared ref is tried first.
3. Outboxes wait and this clone may merge them: put their lines on the shared ref, and then delete them.

A clone may merge with a chance of one in the number of outboxes that are new since the last read, so that one clone
merges and not every clone. If none is new, no other clone is active. A sync that is killed in between leaves outboxes
that wait or are merged already: the next sync that reads them merges or deletes them.
"""

from __future__ import annotations

from functools import cache, partial

from ..errors import RemoteError
from ..log import ref, tree_union
from ..log.committer import notify_moved
from ..log.squash import squash
from . import accepted, outbox, read_remote, rebase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from .outbox import Outbox
    from .remote import Remote

DELETES_MAX = 200  # in one push: the length of a command line is limited


def push_outbox_first(
    log: LocalLog, remote: Remote, tip: str, timeout: float, *, allow_foreign: bool = False
) -> None:
    """Push new lines to an outbox before fetching: others pushed at the last fetch, and probably do so now."""
    # Not to a branch: the remote may have none by now, and would make the outbox its default branch.
    prefixes = [prefix for prefix in remote.host.prefixes if not prefix.startswith("refs/heads/")]
    if not prefixes:
        return
    read_remote.find_logs(remote, allow_foreign=allow_foreign)
    shared = remote.shared()
    if remote.state or shared is None:
        remote.state = remote.message = ""  # the following fetch determines the current state
        return
    try:
        remote.has_our_lines = _push_outbox(log, remote, shared, tip, prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)


def attempt_primary(
    log: LocalLog, remote: Remote, tips: Sequence[LogTip], outboxes: Sequence[Outbox], timeout: float
) -> bool:
    """Run one round on the result of the last fetch.

    Returns:
        Whether to end; False if another round may do better.
    """
    shared = remote.shared()
    if remote.blocked is not None:
        return _attempt_blocked(log, remote, shared, tips, outboxes, timeout)
    may_merge = remote.may_merge_outboxes()
    to_shared = not remote.state and (
        may_merge or not remote.waiting or remote.is_crowded or _must_push_shared(log, remote, shared)
    )
    tip = rebase.rebase_log(log, shared, tips, outboxes, announce=False)
    remote.tip = remote.at(rebase.own_tip(log, tip).format.publish)
    if remote.state:
        rebase.note_shared_published(log, tip, shared)
        return True
    done = _send(log, remote, shared, tip, timeout, may_merge=may_merge, to_shared=to_shared)
    if remote.pushed is None and shared is not None:
        rebase.note_shared_published(log, tip, shared, accepted.accepted_ref_moves(remote, shared.oid))
    return done


def _send(
    log: LocalLog,
    remote: Remote,
    shared: LogTip | None,
    tip: str,
    timeout: float,
    *,
    may_merge: bool,
    to_shared: bool,
) -> bool:
    """Push the rebased log to the shared ref or to an outbox.

    Args:
        may_merge: Whether this clone may merge outboxes in this round.
        to_shared: Whether to try the shared ref before an outbox.

    Returns:
        Whether to end; False if another round may do better.
    """
    publish = rebase.own_tip(log, tip).format.publish
    try:
        if to_shared and tip == remote.tip:
            remote.has_our_lines = True
            if may_merge:
                _delete_merged(log, remote, tip, timeout)
            return may_merge or not remote.outboxes or remote.attempts > 1  # else wait once for who merges
        if to_shared:
            if push_shared(log, remote, publish, shared, tip, timeout, follow=True):
                _delete_merged(log, remote, tip, timeout)
                return True
            if remote.state:
                return True
        remote.has_our_lines = _push_outbox(log, remote, shared, tip, remote.host.prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)
        return True
    # End if an outbox has our lines. A clone with nothing to send waits one round for another to merge the outboxes.
    return not to_shared and remote.has_our_lines and (remote.outbox is not None or remote.attempts > 1)


def _attempt_blocked(
    log: LocalLog,
    remote: Remote,
    shared: LogTip | None,
    tips: Sequence[LogTip],
    outboxes: Sequence[Outbox],
    timeout: float,
) -> bool:
    """Run one round while the shared ref is left out: read outboxes, add one on the last accepted tip, merge nothing."""
    tip = rebase.rebase_log(log, shared, tips, outboxes)
    remote.tip = remote.at(rebase.own_tip(log, tip).format.publish)
    if remote.state:
        return True
    try:
        remote.has_our_lines = _push_outbox(log, remote, shared, tip, remote.host.prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)
        return True
    return remote.has_our_lines or shared is None or not remote.host.prefixes


def _must_push_shared(log: LocalLog, remote: Remote, shared: LogTip | None) -> bool:
    """Return whether our lines can reach the remote only by its shared ref."""
    local = log.git.tip(ref.LOG_REF)
    if shared is None or local is None or remote.host.prefixes:
        return shared is None
    return _commit_unsent(log, remote, shared, local) != shared.oid


def _commit_unsent(log: LocalLog, remote: Remote, shared: LogTip, tip: str) -> str:
    """Commit on the shared tip the lines that neither it nor an outbox has; return the new tip, or the shared one."""
    git = log.git
    return squash(git, git.history(tip, [shared.oid]), shared.oid, outbox.OutboxSent(git, remote.waiting))


def _push_outbox(
    log: LocalLog, remote: Remote, shared: LogTip | None, tip: str, prefixes: Sequence[str], timeout: float
) -> bool:
    """Push our lines that the remote lacks to a new outbox; return whether the remote has all of them now."""
    if shared is None:
        return False
    oid = _commit_unsent(log, remote, shared, tip)
    if oid == shared.oid:
        return True
    for prefix in prefixes:
        try:
            done = log.network.push(
                remote.url, oid, prefix + oid, None, timeout, meanwhile=partial(notify_moved, log)
            )
        except RemoteError as error:
            if error.code != "refused" or remote.unfetchable:  # with missing objects it rejects every push
                raise
            remote.learn_refused_prefix(prefix)
            continue
        if done == "rejected":  # the ref is locked there; no other content can have this name
            remote.rejections += 1
            return False
        remote.host.sent = tip
        is_new, remote.outbox = remote.outbox != prefix + oid, prefix + oid
        made = outbox.made(log.git, oid, shared)
        remote.outboxes.append(made)
        remote.waiting.append(made)
        if is_new:
            remote.sent += tree_union.new_lines(log.git, made.tree, [shared.tree])
        return True
    return False


def push_shared(
    log: LocalLog,
    remote: Remote,
    publish: str,
    shared: LogTip | None,
    new: str,
    timeout: float,
    *,
    follow: bool = False,
) -> bool:
    """Move the ref that the log is published at; if False, the push lost a race, or the state has the reason.

    Args:
        follow: Whether history follows this remote.

    Raises:
        RemoteError: The push failed.
    """
    git = log.git
    there = remote.at(publish)
    if not _may_push(log, remote, publish, new, timeout):
        return False

    @cache
    def count() -> int:
        known = [tip.tree for tip in remote.tips]
        return tree_union.new_lines(git, git.commit(new).tree, known, outbox.lines_of(remote.outboxes))

    def meanwhile() -> None:
        notify_moved(log)  # the rebased log is valid here while it is being sent
        count()

    if log.network.push(remote.url, new, publish, there, timeout, meanwhile=meanwhile) != "pushed":
        remote.rejections += 1
        return False
    if there is None and not remote.tips:
        what = "the branch gitmem" if publish == ref.BRANCH else f"the ref {publish}"
        remote.add_sentence(
            f"Made {what} on {remote.name}: everybody who can read that repository can read the log, "
            "now and in the future."
        )
    remote.sent += count()
    remote.has_our_lines = True
    remote.waiting = []
    remote.state = "synced"
    remote.tip = remote.pushed = new
    moves = [(remote.copy_of(publish), there, new), *accepted.accepted_ref_moves(remote, new)]
    if follow:
        rebase.note_published(log, new, new, moves)
    else:
        git.swap(*moves[0], "push", moves[1:])
    return True


def _may_push(log: LocalLog, remote: Remote, publish: str, new: str, timeout: float) -> bool:
    """Return whether the ref that the log is published at may be moved; if not, report why."""
    there = remote.at(publish)
    if there is None:
        if log.network.has_branches(remote.url, timeout):
            return True
        remote.end(
            "empty",
            f"{remote.name} has no branch yet and would make the log its default branch, so nothing was sent. "
            f"Push a branch of yours first: git push {remote.name} HEAD",
        )
        return False
    if there not in [tip.oid for tip in remote.tips] and not log.git.contains(new, there):
        remote.end("refused", f"{publish} of {remote.name} is not a gitmem log. Nothing was sent.")
        return False
    return True


def _delete_merged(log: LocalLog, remote: Remote, tip: str, timeout: float) -> None:
    """Delete the outboxes whose lines the shared ref has at `tip`. Refs of any other name may be the user's own."""
    if remote.host.keeps_refs:
        return
    tree = log.git.commit(tip).tree
    done = [each for each in remote.outboxes if each.is_in(log.git, tree)]
    named = {prefix + each.oid: each.oid for each in done for prefix in outbox.PREFIXES}
    gone = {name: oid for name, oid in named.items() if remote.at(name) == oid}
    try:
        if gone:
            log.network.delete(remote.url, dict(list(gone.items())[:DELETES_MAX]), timeout)
    except RemoteError as error:
        if error.code == "refused":
            remote.learn_keeps_refs()
        # Else a later sync deletes them: the shared ref has their lines.
