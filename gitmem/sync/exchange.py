"""Exchange with remotes: fetch, rebase, push without force, and retry after a lost race."""

from __future__ import annotations

import os
import time

from ..errors import RemoteError, UsageError
from ..git.localize_objects import localize
from ..git.port import Draft
from ..git.remotes import without_credentials
from ..log import log_refs, ref, tree_union, wal_files
from ..log.ref_checks import FOREIGN as FOREIGN_LOG
from ..log.ref_checks import FOREIGN_WHY, RefCheck
from ..moved_back import FIX
from . import accepted, outbox, read_remote, rebase, repair_remote
from . import push as sending
from .remote import Remote, display_name, is_related, log_tips, projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip

ATTEMPTS_MAX = 4
FOREIGN = "If they belong together, --allow-foreign merges them permanently."
FETCHING, UNITING = "fetching from", "uniting with"  # the steps for each remote
PAUSE_SECONDS = 0.2  # upper bound of the first pause; it doubles with each attempt


def exchange(  # noqa: C901  (the steps of an exchange, in order)
    log: LocalLog,
    names: Sequence[str],
    *,
    timeout: float,
    may_send: Callable[[Remote], bool],
    kind_of: Callable[[bytes], str] = lambda line: "",
    push: bool = True,
    leads: bool = True,
    allow_foreign: bool = False,
    forgiving: bool = False,
    retry: bool = False,
    repair: bool = False,
    force: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> list[Remote]:
    """Exchange lines with remotes, in this order; errors of a remote are in its state.

    Args:
        timeout: Seconds for each run of git on the network; after that time no new attempt starts.
        may_send: Whether the user has agreed to publish on a remote; called before anything is fetched. If not, lines
            are only fetched, and the state of a remote that lacks any is `consent-needed`.
        kind_of: Returns the kind of record in a line; lines that are not sent are counted by it.
        push: Whether to send; else lines are only fetched.
        leads: Whether history follows the first remote. The others get a commit of the union on their own tip.
        allow_foreign: Whether to unite with the log of another project. That can't be undone.
        forgiving: Whether a remote that history does not follow may reject our push: from then on it is only read.
        retry: Whether to retry pushes that the remotes rejected before.
        repair: Whether to repair a shared ref that was left out; by a forced push only with `force`.

    Raises:
        UsageError: `unknown-remote`; `foreign-log`, if nothing is pushed and the only remote has the log of
            another project.
        StoreError: Our own log can't be read or moved; it is unchanged.
    """
    found = [Remote(log, name) for name in names]
    for remote in found:
        remote.may_send = may_send(remote)
        if retry:
            remote.host.retry()
    drained = rebase.commit_before_sync(log)
    tip = log.git.tip(ref.LOG_REF)
    before = rebase.own_tip(log, tip).tree if tip is not None else None
    early = bool(found) and found[0].may_send and push and leads
    if early and tip is not None and found[0].host.concurrent:
        sending.push_outbox_first(log, found[0], tip, timeout, allow_foreign=allow_foreign)
    for remote in found:
        _show_step(log, remote, found, FETCHING)
        read_remote.read(remote, timeout, allow_foreign=allow_foreign)
        if repair and repair_remote.repair(log, remote, timeout, force=force):
            read_remote.read(remote, timeout, allow_foreign=allow_foreign)
    if not push:
        _refuse_foreign(found)
    for remote in found:
        _show_step(log, remote, found, UNITING)
        follow = leads and remote is found[0]
        began = time.monotonic()
        remote.forgiven = forgiving and not follow
        send = push and remote.may_send and not (remote.forgiven and remote.host.read_only)
        while not _run_round(log, remote, found, push=send, follow=follow, timeout=timeout):
            if remote.attempts >= ATTEMPTS_MAX or time.monotonic() - began > timeout:
                break
            pause(PAUSE_SECONDS * 2 ** (remote.attempts - 1) * log.random(1)[0] / 255)
            read_remote.read(remote, timeout, allow_foreign=allow_foreign)
        if push and remote.may_send and not send and not remote.state:
            remote.end("read-only")
        _set_result(log, remote, before, push=send)
        _count_withheld(log, remote, push, kind_of)
        _report(log, remote, follow, drained)
    return found


def _show_step(log: LocalLog, remote: Remote, found: Sequence[Remote], step: str) -> None:
    """Report the next step; the steps of all remotes are the total. Uniting begins with what is wrong with a remote."""
    remote.add_sentence(FOREIGN if remote.is_foreign and step == UNITING else "")
    if log.progress is not None:
        done = found.index(remote) + (len(found) if step == UNITING else 0)
        log.progress(f"{step} {display_name(remote.name)}", done, 2 * len(found))


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
    if push and follow:
        return sending.attempt_primary(log, remote, tips, outboxes, timeout)
    shared = remote.shared()
    tip = rebase.rebase_log(log, shared if follow else None, tips, outboxes)
    publish = rebase.own_tip(log, tip).format.publish
    remote.tip = remote.at(publish)
    if not push or remote.state or remote.blocked is not None:
        return True
    new = _commit_for_secondary(log, tip, shared)
    remote.has_our_lines = new == remote.tip
    try:
        done = remote.has_our_lines or sending.push_shared(log, remote, publish, shared, new, timeout)
    except RemoteError as error:
        if remote.forgiven and error.code == "refused":
            remote.learn_read_only(error)
        else:
            remote.fail(error)
        return True
    remote.host.read_only = remote.host.read_only and not remote.sent
    return done or bool(remote.state)


def _set_result(log: LocalLog, remote: Remote, before: str | None, *, push: bool) -> None:
    """Set the final state and message of a remote."""
    remote.received = _count_received(log, remote, before)
    accepted.report_left_out(remote)
    accepted.record_accepted(remote)
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


def _report(log: LocalLog, remote: Remote, follow: bool, drained: bool) -> None:
    """Report lines from a remote that history does not follow, and records of this clone that no commit has.

    With such records the state is `incomplete` if there is no other error.
    """
    if remote.received and not follow:
        s = "" if remote.received == 1 else "s"
        remote.add_sentence(
            f"{remote.received:,} line{s} from {without_credentials(remote.url)} {'is' if not s else 'are'} part of "
            "this log from now on."
        )
    damaged = [os.path.join(wal.folder, name) for wal in log.wals for name in wal_files.damaged(wal.folder)]
    if not drained:
        remote.add_sentence("Uncommitted records were not sent: another process has the log's lock.")
    if damaged:
        more = f" and {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
        remote.add_sentence(f"Damaged records were not sent; they are kept in {damaged[0]}{more}. Run: {FIX}")
    if damaged or not drained:
        remote.has_our_lines = False
        if remote.state in ("synced", "up-to-date"):
            remote.state = "incomplete"


def _count_withheld(log: LocalLog, remote: Remote, push: bool, kind_of: Callable[[bytes], str]) -> None:
    """Count the records that a remote lacks and that are not sent without consent."""
    if not push or remote.may_send or remote.state not in ("synced", "up-to-date"):
        return
    local = log.git.tip(ref.LOG_REF)
    tree = log.git.commit(local).tree if local is not None else None
    known = [tip.tree for tip in remote.tips]
    if remote.blocked is not None and remote.accepted is not None:
        # The shared branch is broken; this is its content before that.
        known.append(remote.accepted.tree)
    for fresh in (
        tree_union.fresh_lines(log.git, tree, known, outbox.lines_of(remote.outboxes)) if tree else ()
    ):
        remote.withheld.add(fresh, kind_of)
    remote.has_our_lines = not remote.withheld.total
    if remote.withheld.total:
        remote.state = "consent-needed"


def _commit_for_secondary(log: LocalLog, tip: str, shared: LogTip | None) -> str:
    """Return the commit for a remote that history does not follow: the union, on its own tip."""
    git = log.git
    if shared is None or git.contains(tip, shared.oid):
        return tip
    changes = tree_union.union_changes(git, shared.tree, [git.commit(tip).tree])
    if not changes:
        return shared.oid
    who = log.signature()
    (new,) = git.write([Draft(changes, who, who, "Merge the log of another remote\n")], shared.oid)
    localize(log.repo.common, new)  # that remote may be our alternate object store
    return new


def _count_received(log: LocalLog, remote: Remote, before: str | None) -> int:
    """Return how many lines the remote had that were not here."""
    git = log.git
    count = 0
    seen = [before] if before is not None else []
    for tip in remote.tips:
        count += tree_union.new_lines(git, tip.tree, seen)
        seen.append(tip.tree)
    for path, lines in outbox.lines_of(remote.outboxes).items():
        count += len(lines.difference(*(outbox.lines_at(git, tree, path) for tree in seen)))
    return count


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
