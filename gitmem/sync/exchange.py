"""Exchange with remotes: fetch, rebase, push without force, and retry after a lost race."""

from __future__ import annotations

import os
import time
from functools import cache, partial

from ..errors import RemoteError, UsageError
from ..git.config import without_credentials
from ..git.fetch import MISSING
from ..git.objects import Draft
from ..git.packs import localize
from ..log import forgetting, log_refs, ref, tree_union, write_ahead
from ..log.committer import notify_moved
from ..log.forgetting import Forgotten
from ..log.lines import count_records
from ..log.ref_checks import FOREIGN as FOREIGN_LOG
from ..log.ref_checks import FOREIGN_WHY, INVALID, RefCheck
from ..log.squash import squash
from ..log.tree_checks import TreeCheck
from ..outcome import command
from ..store import FIX
from ..text.sanitize import first_of
from . import read_remote, rebase
from .remote import PREFIXES, Remote, is_related, log_tips, projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from ..log.ref_checks import LeftOut

ATTEMPTS_MAX = 4
FOREIGN = "If they belong together, `gitmem sync --allow-foreign` merges them permanently."
FETCHING, UNITING = "fetching from", "uniting with"  # the steps for each remote
PAUSE_SECONDS = 0.2  # upper bound of the first pause; it doubles with each attempt

REWRITE = "gitmem sync --forget --yes"
DELETES_MAX = 200  # in one push: the length of a command line is limited

_NO_TIP = "This clone has no valid tip of it: repair it from a clone that synced with it before."


def exchange(
    log: LocalLog,
    names: Sequence[str],
    *,
    timeout: float,
    may_send: Callable[[Remote], bool],
    push: bool = True,
    leads: bool = True,
    allow_foreign: bool = False,
    forgiving: bool = False,
    retry: bool = False,
    repair: bool = False,
    force: bool = False,
    forget: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> list[Remote]:
    """Exchange lines with remotes, in this order; errors of a remote are in its state.

    Args:
        timeout: Seconds for each run of git on the network; after that time no new attempt starts.
        may_send: Whether the user has agreed to publish on a remote; called before anything is fetched. If not, lines
            are only fetched, and the state of a remote that lacks any is `consent-needed`.
        push: Whether to send; else lines are only fetched.
        leads: Whether history follows the first remote. The others get a commit of the union on their own tip.
        allow_foreign: Whether to unite with the log of another project. That can't be undone.
        forgiving: Whether a remote that history does not follow may reject our push: from then on it is only read.
        retry: Whether to retry pushes that the remotes rejected before.
        repair: Whether to repair a shared ref that was left out; by a forced push only with `force`.
        forget: Whether to replace the log of the remote that history follows by one without forgotten texts, only with
            `force`.

    Raises:
        UsageError: `unknown-remote`; `foreign-log`, if nothing is pushed and the only remote has the log of
            another project.
        StoreError: Our own log can't be read or moved; it is unchanged.
    """
    found = [_opened(log, name, may_send, retry=retry) for name in names]
    waits = rebase.commit_before_sync(log)
    tip = log.git.tip(ref.LOG_REF)
    before = rebase.own_tip(log, tip).tree if tip is not None else None
    if push and leads and tip is not None and found and found[0].may_send and found[0].host.concurrent:
        push_outbox_first(log, found[0], tip, timeout, allow_foreign=allow_foreign)
    for remote in found:
        _show_step(log, remote, found, FETCHING)
        read_remote.read(remote, timeout, allow_foreign=allow_foreign)
        if repair and repair_remote(log, remote, timeout, force=force):
            read_remote.read(remote, timeout, allow_foreign=allow_foreign)
    if not push:
        _refuse_foreign(found)
    for remote in found:
        _show_step(log, remote, found, UNITING)
        follow = leads and remote is found[0]
        remote.forgiven = forgiving and not follow
        send = push and remote.may_send and not (remote.forgiven and remote.host.read_only)

        def run(remote: Remote = remote, follow: bool = follow, send: bool = send) -> bool:
            done = _run_round(log, remote, found, push=send, follow=follow, timeout=timeout)
            return done and (not (forget and follow) or _rewrite(log, remote, timeout, force=force))

        _repeat(log, remote, run, timeout, pause, allow_foreign=allow_foreign)
        _set_result(log, remote, before, push=send, may_push=push)
        _count_withheld(log, remote, push)
        _report(log, remote, follow, waits)
    forgetting.drop_earlier_epochs(log)
    return found


def _repeat(
    log: LocalLog,
    remote: Remote,
    run: Callable[[], bool],
    timeout: float,
    pause: Callable[[float], None],
    *,
    allow_foreign: bool,
) -> None:
    """Run rounds with a remote until one returns that another one does no better, each on what was fetched anew."""
    began = time.monotonic()
    while not run():
        if remote.attempts >= ATTEMPTS_MAX or time.monotonic() - began > timeout:
            break
        pause(PAUSE_SECONDS * 2 ** (remote.attempts - 1) * log.random(1)[0] / 255)
        read_remote.read(remote, timeout, allow_foreign=allow_foreign)


def _rewrite(log: LocalLog, remote: Remote, timeout: float, *, force: bool) -> bool:
    """Replace the log on a remote that has all lines of this clone; return whether to end, as `_run_round` does."""
    if not remote.may_send or remote.state not in ("", "synced") or not remote.has_our_lines:
        return True
    if not remote.has_read(remote.tip):
        remote.add_sentence(_unread(f"The log on {remote.shown_name}"))
        return True
    done = rewrite_shared(log, remote, timeout, agreed=force)
    if done and remote.pushed is not None and remote.tip == remote.pushed:
        _delete_merged(log, remote, remote.pushed, timeout)
    if not done:
        remote.state = ""
    return done


def _opened(log: LocalLog, name: str, may_send: Callable[[Remote], bool], *, retry: bool) -> Remote:
    remote = Remote(log, name)
    remote.may_send = may_send(remote)
    if retry:
        remote.host.retry()
    return remote


def _show_step(log: LocalLog, remote: Remote, found: Sequence[Remote], step: str) -> None:
    """Report the next step; the steps of all remotes are the total. Uniting begins with what is wrong with a remote."""
    remote.add_sentence(FOREIGN if remote.is_foreign and step == UNITING else "")
    if log.progress is not None:
        done = found.index(remote) + (len(found) if step == UNITING else 0)
        log.progress(f"{step} {remote.shown_name}", done, 2 * len(found))


def _refuse_foreign(found: Sequence[Remote]) -> None:
    """Raise UsageError if the only remote has the log of another project."""
    if len(found) == 1 and found[0].is_foreign:
        raise UsageError(
            found[0].message, hint=FOREIGN, code="foreign-log", next=["git remote -v", "gitmem doctor"]
        )


def _run_round(
    log: LocalLog, remote: Remote, found: Sequence[Remote], *, push: bool, follow: bool, timeout: float
) -> bool:
    """Run one round on the result of the last fetch.

    Returns:
        Whether to end; False if another round may do better.
    """
    tips = _known_tips(log, remote, found)
    outboxes = [each for other in found for each in other.waiting]
    if follow and is_behind(log, remote.shared()):
        follow = False
        remote.add_sentence(
            f"The log on {remote.name} still has forgotten texts that this one has not. It gets these records, and"
            f" {REWRITE} {remote.shown_name} replaces it."
        )
    if push and follow:
        return attempt_primary(log, remote, tips, outboxes, timeout)
    shared = remote.shared()
    tip = rebase.rebase_log(log, shared if follow else None, tips, outboxes)
    publish = rebase.own_tip(log, tip).format.publish
    remote.tip = remote.at(publish)
    if not push or remote.state or remote.blocked is not None:
        return True
    new = _commit_for_secondary(log, tip, shared)
    remote.has_our_lines = new == remote.tip
    try:
        done = remote.has_our_lines or push_shared(log, remote, publish, new, timeout)
    except RemoteError as error:
        if remote.forgiven and error.code == "refused":
            remote.learn_read_only(error)
        else:
            remote.fail(error)
        return True
    remote.host.read_only = remote.host.read_only and not remote.sent
    return done or bool(remote.state)


def _set_result(log: LocalLog, remote: Remote, before: str | None, *, push: bool, may_push: bool) -> None:
    """Set the final state and message of a remote."""
    if may_push and remote.may_send and not push and not remote.state:
        remote.end("read-only")
    remote.received = _count_received(log, remote, before)
    read_remote.report_left_out(remote)
    read_remote.record_accepted(remote)
    if not remote.state and push and not remote.has_our_lines:
        remote.end(
            "rejected", f"Others pushed first, {remote.rejections} times; nothing is lost, sync again."
        )
    elif not remote.state:
        remote.state = "synced" if remote.received or remote.sent else "up-to-date"
    if remote.outbox is not None and remote.waiting and remote.blocked is None:
        remote.add_sentence(
            f"The records were pushed to an outbox on {remote.name}: every sync reads it, and a later sync merges it."
        )
    if remote.state in ("synced", "up-to-date", "rejected", "read-only") or remote.outbox is not None:
        remote.host.save()


def _report(log: LocalLog, remote: Remote, follow: bool, waits: str) -> None:
    """Report lines from a remote that history does not follow, and records of this clone that no commit has.

    With such records the state is `incomplete` if there is no other error.
    """
    if remote.received and not follow:
        s = "" if remote.received == 1 else "s"
        remote.add_sentence(
            f"{remote.received:,} line{s} from {without_credentials(remote.url)} {'is' if not s else 'are'} part of "
            "this log from now on."
        )
    damaged = [os.path.join(wal.folder, name) for wal in log.wals for name in write_ahead.damaged(wal.folder)]
    if waits:
        remote.add_sentence(waits)
    if damaged:
        remote.add_sentence(
            f"Damaged records were not sent; they are kept in {first_of(damaged, 1)}. Run: {FIX}"
        )
    if damaged or waits:
        remote.has_our_lines = False
        if remote.state in ("synced", "up-to-date"):
            remote.state = "incomplete"


def _count_withheld(log: LocalLog, remote: Remote, push: bool) -> None:
    """Count the records that a remote lacks and that are not sent without consent."""
    if not push or remote.may_send or remote.state not in ("synced", "up-to-date"):
        return
    local = log.git.tip(ref.LOG_REF)
    tree = log.git.commit(local).tree if local is not None else None
    known = [tip.tree for tip in (*remote.tips, *remote.outboxes)]
    if remote.blocked is not None and remote.accepted is not None:
        # The shared branch is broken; this is its content before that.
        known.append(remote.accepted.tree)
    for fresh in tree_union.fresh_lines(log.git, tree, known) if tree else ():
        remote.withheld.add(fresh)
    remote.has_our_lines = not remote.withheld.total
    if remote.withheld.total:
        remote.state = "consent-needed"


def _commit_for_secondary(log: LocalLog, tip: str, shared: LogTip | None) -> str:
    """Return the commit for a remote that history does not follow: the union, on its own tip."""
    git = log.git
    if shared is None or git.contains(tip, shared.oid):
        return tip
    tree = git.commit(tip).tree
    changes = Forgotten(log, [tree, shared.tree]).union_changes(shared.tree, [tree])
    if not changes:
        return shared.oid
    who = log.signature()
    (new,) = git.write([Draft(changes, who, who, "Merge the log of another remote\n")], shared.oid)
    localize(log.repo.common, new)  # that remote may be our alternate object store
    return new


def _count_received(log: LocalLog, remote: Remote, before: str | None) -> int:
    """Return how many lines the remote had that were not here."""
    here = [before] if before is not None else []
    found: set[bytes] = set()
    for tip in (*remote.tips, *remote.outboxes):
        found.update(*tree_union.fresh_lines(log.git, tip.tree, here))
    return count_records(found)


def _known_tips(log: LocalLog, remote: Remote, found: Sequence[Remote]) -> list[LogTip]:
    """Return every log that may be united: of these remotes, and those that git fetched or has as its branch."""
    tips = {tip.oid: tip for other in found for tip in other.tips}
    rest = {name: oid for other in found for name, oid in log_refs.of_remote(log, other.name).items()}
    bad = {each.commit for other in found for each in other.left_out}
    rest = {name: oid for name, oid in rest.items() if oid not in tips and oid not in bad}
    if not rest:
        return list(tips.values())
    check = RefCheck(log, remote.accepted, [*tips, *log_tips(log)])
    ours = projects(log).union(*(tip.projects for tip in tips.values()))
    for tip in check.admit(rest):
        if is_related(log, ours, tip):
            tips[tip.oid] = tip
            ours |= tip.projects
        else:
            check.leave_out(tip.name, tip.oid, FOREIGN_LOG, FOREIGN_WHY)
    for each in check.left_out.values():
        remote.add_sentence(each.sentence("this clone"))
    return list(tips.values())


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
    log: LocalLog, remote: Remote, tips: Sequence[LogTip], outboxes: Sequence[LogTip], timeout: float
) -> bool:
    """Run one round on the result of the last fetch.

    While the shared ref is left out, own lines go to an outbox on the last accepted tip, and nothing is merged.

    Returns:
        Whether to end; False if another round may do better.
    """
    shared = remote.shared()
    may_merge = remote.may_merge_outboxes() or is_ahead(log, shared)
    to_shared = (remote.blocked is None and not remote.state) and (
        may_merge or not remote.waiting or remote.is_crowded or _must_push_shared(log, remote, shared)
    )
    tip = rebase.rebase_log(log, shared, tips, outboxes, announce=False)
    remote.tip = remote.at(rebase.own_tip(log, tip).format.publish)
    if remote.state:
        rebase.note_shared_published(log, tip, shared)
        return True
    done = _send(log, remote, shared, tip, timeout, may_merge=may_merge, to_shared=to_shared)
    if remote.pushed is None and shared is not None:
        rebase.note_shared_published(log, tip, shared, read_remote.accepted_ref_moves(remote, shared.oid))
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
            if push_shared(log, remote, publish, tip, timeout, follow=True):
                _delete_merged(log, remote, tip, timeout)
                return True
            if remote.state:
                return True
        remote.has_our_lines = _push_outbox(log, remote, shared, tip, remote.host.prefixes, timeout)
    except RemoteError as error:
        remote.fail(error)
        return True
    if remote.blocked is not None:  # nobody merges outboxes
        return remote.has_our_lines or shared is None or not remote.host.prefixes
    # End if an outbox has our lines. A clone with nothing to send waits one round for another to merge the outboxes.
    return not to_shared and remote.has_our_lines and (remote.outbox is not None or remote.attempts > 1)


def _must_push_shared(log: LocalLog, remote: Remote, shared: LogTip | None) -> bool:
    """Return whether our lines can reach the remote only by its shared ref."""
    local = log.git.tip(ref.LOG_REF)
    if shared is None or local is None or remote.host.prefixes:
        return shared is None
    return _commit_unsent(log, remote, shared, local) != shared.oid


def _commit_unsent(log: LocalLog, remote: Remote, shared: LogTip, tip: str) -> str:
    """Commit on the shared tip the lines that neither it nor an outbox has; return the new tip, or the shared one."""
    git = log.git
    top = squash(git, git.history(tip, [shared.oid]), shared.oid, [box.tree for box in remote.waiting])
    return Forgotten(log, [git.commit(tip).tree, shared.tree]).without(shared.oid, top)


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
            if error.code != "refused":
                raise
            remote.learn_refused_prefix(prefix)
            continue
        if done == "rejected":  # the ref is locked there; no other content can have this name
            remote.rejections += 1
            return False
        remote.host.sent = tip
        is_new, remote.outbox = remote.outbox != prefix + oid, prefix + oid
        made = log_refs.read(log, prefix + oid, oid, [shared.oid])
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
        known = [tip.tree for tip in (*remote.tips, *remote.outboxes)]
        return tree_union.new_lines(git, git.commit(new).tree, known)

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
    moves = [(remote.copy_of(publish), there, new), *read_remote.accepted_ref_moves(remote, new)]
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
    forgotten = Forgotten(log, [tree])
    done = [box for box in remote.outboxes if not forgotten.union_changes(tree, [box.tree])]
    named = {prefix + box.oid: box.oid for box in done for prefix in PREFIXES}
    gone = {name: oid for name, oid in named.items() if remote.at(name) == oid}
    try:
        if gone:
            log.network.delete(remote.url, dict(list(gone.items())[:DELETES_MAX]), timeout)
    except RemoteError as error:
        if error.code == "refused":
            remote.learn_keeps_refs()


def repair_remote(log: LocalLog, remote: Remote, timeout: float, *, force: bool) -> bool:
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


def _new_tip(log: LocalLog, shared: LogTip | None) -> LogTip | None:
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
    new = _new_tip(log, None)
    if new is None:
        return _nothing_forgotten(log)
    if not agreed:
        raise _rewrite_needs_yes("the log of this clone", "")
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
    new = _new_tip(log, remote.shared())
    if new is None:
        remote.add_sentence(_nothing_forgotten(log))
        return True
    if not agreed:
        raise _rewrite_needs_yes(f"the log on {remote.shown_name}", remote.shown_name)
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
            remote.add_sentence(_unread(f"{name} there"))
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


def _unread(what: str) -> str:
    """Return the sentence about a log that has lines which are not here."""
    return f"{what} was not replaced, since not all of it could be read."


def _nothing_forgotten(log: LocalLog) -> str:
    tip = log.git.tip(ref.LOG_REF)
    return BACK if tip is not None and forgetting.has_texts(log, log.git.commit(tip).tree) else NOTHING


def _rewrite_needs_yes(what: str, remote: str) -> UsageError:
    by = "with a forced push, and all clones follow" if remote else "without its history"
    return UsageError(
        f"This writes {what} anew, {by}; only forgotten texts and the messages of commits are lost. Nothing was replaced.",
        hint="Confirm with --yes.",
        code="forget-needs-yes",
        next=[command("gitmem", "sync", "--forget", "--yes", *([remote] if remote else []))],
    )
