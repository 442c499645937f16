"""Sending to the remote that history follows: to its shared ref, or to an outbox where others are at that.

1. No outbox waits there: the shared ref is tried, once a round. It is the cheapest while one clone writes at a time.
2. It was moved in between, or outboxes wait: what is nowhere there yet goes to an outbox, which can't be beaten.
3. Outboxes wait and it is our turn: they are folded into the shared ref, and deleted when that has them.

A turn is drawn: one in as many as came since the last look, so that somebody folds and not everybody. Where
none came, everybody else is gone. Killed in between, a sync leaves outboxes that wait or that the shared
ref has already: the next one that looks folds or deletes them.
"""

from __future__ import annotations

from functools import cache, partial

from ..errors import RemoteError
from ..log import ref, tree_union
from ..log.committer import moved
from ..log.squash import squash
from . import accepted, outbox, read_remote, rebase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.local_log import LocalLog
    from ..log.log_refs import Tip
    from .outbox import Outbox
    from .remote import Remote

DELETES_MAX = 200  # in one push: a command line has an end


def send_early(
    log: LocalLog, remote: Remote, tip: str, timeout: float, *, allow_foreign: bool = False
) -> None:
    """Put what is new here into an outbox, by what the last fetch brought: others pushed then, and will now."""
    # Not a branch: the remote may have none by now, and would make it the default one.
    prefixes = [prefix for prefix in remote.host.prefixes if not prefix.startswith("refs/heads/")]
    if not prefixes:
        return
    read_remote.find_logs(remote, allow_foreign=allow_foreign)
    shared = remote.shared()
    if remote.state or shared is None:
        remote.state = remote.message = ""  # the fetch that follows tells how it is now
        return
    try:
        remote.safe = _put(log, remote, shared, tip, prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)


def attempt(
    log: LocalLog, remote: Remote, tips: Sequence[Tip], boxes: Sequence[Outbox], timeout: float
) -> bool:
    """One round on what the last fetch brought. False where another one may do better."""
    shared = remote.shared()
    if remote.blocked is not None:
        return _go_round(log, remote, shared, tips, boxes, timeout)
    turn = remote.draw()
    fold = not remote.state and (turn or not remote.waiting or _must_fold(log, remote, shared))
    tip = rebase.settle(log, shared, tips, boxes, tell=False)
    remote.tip = remote.at(rebase.own_tip(log, tip).format.publish)
    if remote.state:
        rebase.publish_shared(log, tip, shared)
        return True
    done = _send(log, remote, shared, tip, timeout, turn=turn, fold=fold)
    if remote.pushed is None and shared is not None:
        rebase.publish_shared(log, tip, shared, accepted.moves(remote, shared.oid))
    return done


def _send(
    log: LocalLog, remote: Remote, shared: Tip | None, tip: str, timeout: float, *, turn: bool, fold: bool
) -> bool:
    """Send what was settled. False where another round may do better."""
    publish = rebase.own_tip(log, tip).format.publish
    try:
        if fold and tip == remote.tip:
            remote.safe = True
            if turn:
                _sweep(log, remote, tip, timeout)
            return turn or not remote.boxes or remote.attempts > 1
        if fold:
            if push_shared(log, remote, publish, shared, tip, timeout, follow=True):
                _sweep(log, remote, tip, timeout)
                return True
            if remote.state:
                return True
        remote.safe = _put(log, remote, shared, tip, remote.host.prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)
        return True
    # Who has nothing to send has the time to see whether somebody else folds.
    return not fold and remote.safe and (remote.outbox is not None or remote.attempts > 1)


def _go_round(
    log: LocalLog,
    remote: Remote,
    shared: Tip | None,
    tips: Sequence[Tip],
    boxes: Sequence[Outbox],
    timeout: float,
) -> bool:
    """One round while the shared ref is left out: read the outboxes, add one on the last accepted tip, fold nothing."""
    tip = rebase.settle(log, shared, tips, boxes)
    remote.tip = remote.at(rebase.own_tip(log, tip).format.publish)
    if remote.state:
        return True
    try:
        remote.safe = _put(log, remote, shared, tip, remote.host.prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)
        return True
    return remote.safe or shared is None or not remote.host.prefixes


def _must_fold(log: LocalLog, remote: Remote, shared: Tip | None) -> bool:
    """Whether what is ours has no other way there."""
    local = log.git.tip(ref.LOG_REF)
    if shared is None or local is None or remote.host.prefixes:
        return shared is None
    return _unsent(log, remote, shared, local) != shared.oid


def _unsent(log: LocalLog, remote: Remote, shared: Tip, tip: str) -> str:
    """Put what neither the shared log nor an outbox has on the shared tip, in one commit: that, or the shared tip."""
    git = log.git
    return squash(git, git.history(tip, [shared.oid]), shared.oid, outbox.OutboxSent(git, remote.waiting))


def _put(
    log: LocalLog, remote: Remote, shared: Tip | None, tip: str, prefixes: Sequence[str], timeout: float
) -> bool:
    """Put what is ours and nowhere there into an outbox of its own. Whether everything of ours is there now."""
    if shared is None:
        return False
    oid = _unsent(log, remote, shared, tip)
    if oid == shared.oid:
        return True
    for prefix in prefixes:
        try:
            done = log.network.push(
                remote.url, oid, prefix + oid, None, timeout, meanwhile=partial(moved, log)
            )
        except RemoteError as error:
            if error.code != "refused" or remote.refused:  # a hub that misses objects takes nothing at all
                raise
            remote.learn_refused(prefix)
            continue
        if done == "rejected":  # a lock of the remote's own; of this name there is no other content
            remote.rejections += 1
            return False
        is_new, remote.outbox = remote.outbox != prefix + oid, prefix + oid
        made = outbox.made(log.git, oid, shared)
        remote.boxes.append(made)
        remote.waiting.append(made)
        if is_new:
            remote.sent += tree_union.new_lines(log.git, made.tree, [shared.tree])
        return True
    return False


def push_shared(
    log: LocalLog,
    remote: Remote,
    publish: str,
    shared: Tip | None,
    new: str,
    timeout: float,
    *,
    follow: bool = False,
) -> bool:
    """Move the ref that the log is published at. False where that lost a race, or may not be: the state says so then.

    Args:
        follow: Whether history follows this remote.

    Raises: RemoteError.
    """
    git = log.git
    there = remote.at(publish)
    if not _may_push(log, remote, publish, shared, new, timeout):
        return False

    @cache
    def count() -> int:
        known = [tip.tree for tip in remote.tips]
        return tree_union.new_lines(git, git.commit(new).tree, known, outbox.united(remote.boxes))

    def meanwhile() -> None:
        moved(log)  # what was settled counts here while it is sent
        count()

    if log.network.push(remote.url, new, publish, there, timeout, meanwhile=meanwhile) != "pushed":
        remote.rejections += 1
        return False
    if there is None and not remote.tips:
        what = "the branch gitmem" if publish == ref.BRANCH else f"the ref {publish}"
        remote.say(
            f"Made {what} on {remote.name}: everybody who can read that repository can read the log, "
            "now and what comes."
        )
    remote.sent += count()
    remote.safe = True
    remote.waiting = []
    remote.state = "synced"
    remote.tip = remote.pushed = new
    moves = [(remote.copy_of(publish), there, new), *accepted.moves(remote, new)]
    if follow:
        rebase.publish(log, new, new, moves)
    else:
        git.swap(*moves[0], "push", moves[1:])
    return True


def _may_push(
    log: LocalLog, remote: Remote, publish: str, shared: Tip | None, new: str, timeout: float
) -> bool:
    """Whether the place that we publish to may be moved; says why where it may not."""
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
        remote.end("refused", f"{publish} of {remote.name} is no gitmem log; nothing was sent.")
        return False
    return True


def _sweep(log: LocalLog, remote: Remote, tip: str, timeout: float) -> None:
    """Delete the outboxes whose lines the shared ref has: `tip` is there. A ref of another name is somebody's own."""
    if remote.host.keeps_refs:
        return
    tree = log.git.commit(tip).tree
    done = [box for box in remote.boxes if box.is_in(log.git, tree)]
    named = {prefix + box.oid: box.oid for box in done for prefix in outbox.PREFIXES}
    gone = {name: oid for name, oid in named.items() if remote.at(name) == oid}
    try:
        if gone:
            log.network.delete(remote.url, dict(list(gone.items())[:DELETES_MAX]), timeout)
    except RemoteError as error:
        if error.code == "refused":
            remote.learn_keeps_refs()
        # Else some other sync deletes them: the lines are where they belong.
