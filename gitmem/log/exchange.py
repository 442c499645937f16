"""Exchange with remotes: fetch, settle, push without force, and again where somebody was faster."""

from __future__ import annotations

import time

from ..errors import RemoteError, UsageError
from ..git import remotes
from ..git.port import Draft, Signature
from . import places, ref, settle, trees
from .remote import Remote, is_related, projects, trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .log import Log
    from .places import Tip

ATTEMPTS_MAX = 4
FOREIGN = "If they belong together nevertheless, --allow-foreign unites them for good."
PAUSE_SECONDS = 0.2  # the first pause is at most this long, the next at most twice as long, and so on


def exchange(
    log: Log,
    names: Sequence[str],
    *,
    timeout: float,
    push: bool = True,
    leads: bool = True,
    allow_foreign: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> list[Remote]:
    """Exchange lines with remotes, in this order; their troubles are in their states.

    Args:
        timeout: Seconds for each run of git on the network; no new attempt starts after as many.
        push: Whether to send; else lines are only brought.
        leads: Whether history follows the first remote. The others get a commit of the union on their own tip.
        allow_foreign: Whether to unite with the log of another project. That can't be undone.
        pause: Waits so many seconds.

    Raises:
        UsageError: `unknown-remote`; `foreign-log`, where nothing is pushed and the only remote has the log of
            another project.
        StoreError: Our own log can't be read or moved; it is as it was.
    """
    found = [Remote(log, name) for name in names]
    settle.drain(log)
    tip = log.git.tip(ref.LOG_REF)
    before = [settle.own_tip(log, tip).tree] if tip is not None else []
    for remote in found:
        remote.read(timeout, allow_foreign=allow_foreign)
    if not push and len(found) == 1 and found[0].is_foreign:
        raise UsageError(
            found[0].message, hint=FOREIGN, code="foreign-log", next=["git remote -v", "gitmem doctor"]
        )
    for remote in found:
        remote.say(FOREIGN if remote.is_foreign else "")
    for remote in found:
        follow = leads and remote is found[0]
        began = time.monotonic()
        while not _settle_and_push(log, remote, found, push=push, follow=follow, timeout=timeout):
            if remote.attempts >= ATTEMPTS_MAX or time.monotonic() - began > timeout:
                # The seam for the outbox: here the lines would go to a ref that nobody else writes.
                remote.end(
                    "rejected", f"Others pushed first, {remote.attempts} times; nothing is lost, sync again."
                )
                break
            pause(PAUSE_SECONDS * 2 ** (remote.attempts - 1) * log.random(1)[0] / 255)
            remote.read(timeout, allow_foreign=allow_foreign)
        remote.received = _received(log, remote, before)
        if not remote.state:
            remote.state = "synced" if remote.received or remote.sent else "up-to-date"
    return found


def _settle_and_push(
    log: Log, remote: Remote, found: Sequence[Remote], *, push: bool, follow: bool, timeout: float
) -> bool:
    """One attempt. False where the remote has moved meanwhile."""
    shared = remote.shared()
    tip = settle.settle(log, shared if follow else None, _known_tips(log, remote, found))
    publish = settle.own_tip(log, tip).format.publish
    there = remote.tip = remote.at(publish)
    if not push or remote.state:
        return True
    new = tip if follow else _for_other(log, tip, shared)
    if new == there:
        return True
    try:
        if not _may_push(log, remote, publish, shared, new, timeout):
            return True
        if remotes.push(log.place.common, remote.url, new, publish, there, timeout) != "pushed":
            return False
    except RemoteError as error:
        remote.fail(error)
        return True
    if there is None and not remote.tips:
        _say_what_was_made(remote, publish)
    _pushed(log, remote, publish, new, follow=follow)
    return True


def _pushed(log: Log, remote: Remote, publish: str, new: str, *, follow: bool) -> None:
    git = log.git
    remote.sent = trees.new_lines(git, git.commit(new).tree, [tip.tree for tip in remote.tips])
    remote.state = "synced"
    git.swap(remote.copy_of(publish), remote.tip, new, "push")
    remote.tip = new
    if follow:
        settle.publish(log, new, new)


def _may_push(log: Log, remote: Remote, publish: str, shared: Tip | None, new: str, timeout: float) -> bool:
    """Whether the place that we publish to may be moved; says why where it may not."""
    there = remote.at(publish)
    if there is None:
        if remotes.has_branches(log.place.common, remote.url, timeout):
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
    if shared is not None and shared.format.epoch < settle.own_tip(log, new).format.epoch:
        remote.end(
            "refused",
            f"{remote.name} has the log's epoch {shared.format.epoch}, which this clone has left; nothing was sent.",
        )
        return False
    return True


def _say_what_was_made(remote: Remote, publish: str) -> None:
    what = "the branch gitmem" if publish == ref.BRANCH else f"the ref {publish}"
    remote.say(
        f"Made {what} on {remote.name}: everybody who can read that repository can read the log, "
        "now and what comes."
    )


def _for_other(log: Log, tip: str, shared: Tip | None) -> str:
    """What a remote gets that our history does not follow: the union, on its own tip."""
    git = log.git
    if shared is None or git.contains(tip, shared.oid):
        return tip
    changes = trees.union_changes(git, shared.tree, [git.commit(tip).tree])
    if not changes:
        return shared.oid
    who = Signature(*(log.committer or ref.NOBODY), log.now() // 1_000_000)
    return git.write([Draft(changes, who, who, "Bring the log of another remote\n")], shared.oid)[0]


def _received(log: Log, remote: Remote, before: Sequence[str]) -> int:
    """How many lines the remote had that were not here; of a log of an older epoch nothing is taken in."""
    local = log.git.tip(ref.LOG_REF)
    epoch = settle.own_tip(log, local).format.epoch if local is not None else 0
    count = 0
    seen = list(before)
    for tip in remote.tips:
        if tip.format.epoch < epoch:
            continue
        count += trees.new_lines(log.git, tip.tree, seen)
        seen.append(tip.tree)
    return count


def _known_tips(log: Log, remote: Remote, found: Sequence[Remote]) -> list[Tip]:
    """Every log that may be united: of these remotes, and under the other names that this clone has."""
    tips = {tip.oid: tip for other in found for tip in other.tips}
    rest = {name: oid for name, oid in places.known(log).items() if oid not in tips}
    others, _ = places.logs(log, rest, [*tips, *trusted(log)])
    ours = projects(log).union(*(tip.projects for tip in tips.values()))
    for tip in others:
        by_hand = not tip.name.startswith(ref.REMOTES_PREFIX)
        if tip.format.format > ref.FORMAT:
            remote.say(f"{tip.name} needs a newer gitmem and was not read." if by_hand else "")
        elif not is_related(log, ours, tip):
            remote.say(f"{tip.name} is the log of another project and was not read." if by_hand else "")
        else:
            tips[tip.oid] = tip
            ours |= tip.projects
    return list(tips.values())
