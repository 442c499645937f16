"""Fetch the refs of a remote, check them, and find the logs that may be united with ours; remember the tip that passed.

The refs of a remote that were not fetched: refused by git, or not examined yet.
"""

from __future__ import annotations

from ..errors import RemoteError, StoreError
from ..git import plumbing
from ..git.fetch import LIMITS, MISSING, NOT_FETCHED, is_too_much
from ..log import forgetting, log_refs, ref
from ..log.forgetting import Forgotten
from ..log.ref_checks import FOREIGN, FOREIGN_WHY, INVALID, LARGE, RefCheck
from ..log.tree_checks import ANCESTORS_MAX, TreeCheck
from ..text.digests import sha256
from . import rebase
from .remote import is_related, log_tips, projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..git.objects import Move
    from ..git.port import Git
    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from ..log.ref_checks import LeftOut
    from .remote import Remote


SHOWN = 5  # how many of the refs that were left out a message names


def record_unfetched(remote: Remote, left: Mapping[str, tuple[str, str]]) -> None:
    """Record which refs were not fetched, with their commits and the reasons."""
    known = {name: found for name, found in left.items() if log_refs.is_synced_ref(name)}
    remote.unexamined = sum(why == NOT_FETCHED for _, why in known.values())
    remote.unfetchable = {name: found for name, found in known.items() if found[1] != NOT_FETCHED}


def fetched_outboxes(remote: Remote) -> dict[str, str]:
    """Return the fetched outboxes of a remote; add the shared refs that git refused to its refs, to be checked."""
    unfetchable = {remote.copy_of(name): oid for name, (oid, _) in remote.unfetchable.items()}
    remote.refs.update((name, oid) for name, oid in unfetchable.items() if not log_refs.is_outbox(name))
    return {
        name: oid for name, oid in remote.refs.items() if log_refs.is_outbox(name) and name not in unfetchable
    }


def report_unfetched(remote: Remote) -> None:
    """Name the refs that were left out, the shared ones first, with the command that removes an invalid outbox."""
    found = remote.left_out
    found.sort(key=lambda each: log_refs.is_outbox(each.ref))
    for each in found[:SHOWN]:
        remote.add_sentence(each.sentence(remote.name) + _removal(remote, each))
    listing = f"git ls-remote {_word(remote)} 'refs/gitmem/outbox/*'"
    if len(found) > SHOWN:
        remote.add_sentence(
            f"So were {len(found) - SHOWN:,} more of {remote.name}; its administrator can remove them. All outboxes: {listing}"
        )
    if remote.unexamined:
        remote.add_sentence(
            f"{remote.unexamined:,} outboxes of {remote.name} were not fetched yet: the next sync continues. All outboxes: {listing}"
        )


def _removal(remote: Remote, each: LeftOut) -> str:
    if is_too_much(each.why):
        return f" To try it again: gitmem sync --allow-large --timeout 10m {_word(remote)}"
    if each.kind != INVALID or each.why == MISSING or (each.is_commit and not log_refs.is_outbox(each.ref)):
        return ""
    import shlex

    return f" To remove it: git push {_word(remote)} {shlex.quote(':' + each.ref)}"


def _word(remote: Remote) -> str:
    import shlex

    return shlex.quote(remote.shown_name)


def last_accepted(log: LocalLog, prefix: str, known: Iterable[str]) -> LogTip | None:
    """Return the last accepted shared tip; for a clone without a record of it, the published tip; None if invalid.

    Args:
        prefix: The prefix of our copies of the remote's refs.
        known: Tips of logs.
    """
    git = log.git
    found = git.tip(prefix + ref.ACCEPTED)
    if found is None:
        local = git.tip(ref.LOG_REF)
        found = git.tip(ref.PUBLISHED_REF)
        if found is None or local is None or not is_ancestor(git, local, found):
            return None
    return RefCheck(log, None, known).check(ref.ACCEPTED, found)


def is_ancestor(git: Git, tip: str, oid: str) -> bool:
    """Return whether a commit is in the history of `tip`; False if an object is missing."""
    try:
        return git.contains(tip, oid)
    except KeyError:
        return False


def record_accepted(remote: Remote) -> None:
    """Record the shared tip that passed; outboxes are based on it if the shared ref breaks later."""
    top = remote.shared()
    new = remote.pushed or (top.oid if top is not None else None)
    for name, old, oid in accepted_ref_moves(remote, new):
        remote.log.git.swap(
            name, old, oid, "sync"
        )  # if this fails, the previous tip stays, which is valid too


def accepted_ref_moves(remote: Remote, new: str | None) -> list[Move]:
    """Return the ref moves that record a shared tip that passed, as `Git.swap` takes them."""
    good = remote.blocked is None and remote.state in ("", "synced", "up-to-date", "rejected")
    name = remote.prefix + ref.ACCEPTED
    old = remote.log.git.tip(name)
    if not good or new is None or old == new:
        return []
    is_earlier = forgetting.is_earlier(remote.log, new, forgetting.epoch_of(remote.log, old) or 0)
    return [] if is_earlier else [(name, old, new)]


def report_left_out(remote: Remote) -> None:
    """Report the refs that were left out, and the consequences for the lines of this clone."""
    report_unfetched(remote)
    if remote.blocked is None or remote.state not in ("", "synced", "up-to-date"):
        return
    if not remote.has_our_lines:
        remote.add_sentence("Your records are kept in this clone.")
    elif remote.outbox is not None:
        remote.add_sentence("Your records are in an outbox there, which every sync reads.")
    if remote.blocked.kind == LARGE and remote.stepped:
        remote.add_sentence("Only part of the remote's records was fetched; continue with: gitmem sync")
    if remote.blocked.kind == INVALID:
        repair = "" if remote.blocked.why == MISSING else f": gitmem sync --repair {remote.shown_name}"
        remote.add_sentence(
            f"Nothing can be pushed to {remote.blocked.ref} until it is repaired{repair or '.'}"
        )
    remote.end("refused")


OUTBOXES_MAX = LIMITS.outboxes


def read(remote: Remote, timeout: float, *, allow_foreign: bool = False) -> None:
    """Fetch the refs of a remote and find the logs among them; if it is offline, those of the last fetch."""
    remote.attempts += 1
    try:
        if remote.state != "offline":
            record_unfetched(remote, rebase.fetch(remote.log, remote.url, remote.prefix, timeout))
    except RemoteError as error:
        remote.fail(error)
    known = {found.oid for found in remote.outboxes}  # of the last read, and those that this exchange created
    known |= remote.host.seen
    find_logs(remote, allow_foreign=allow_foreign)
    remote.concurrent = sum(found.oid not in known for found in remote.outboxes)
    if remote.state != "offline":
        # Include those that this sync did not read: else a later sync counts them as new and leaves merging to others.
        remote.host.seen = {oid for name, oid in remote.refs.items() if log_refs.is_outbox(name)}
        remote.host.concurrent = remote.concurrent


def find_logs(remote: Remote, *, allow_foreign: bool = False) -> None:
    """Find the logs among the refs of the last fetch; leave out, one by one, those that fail the checks."""
    log = remote.log
    refs = log.git.refs(remote.prefix)
    remote.refs = {name: oid for name, oid in refs.items() if log_refs.is_synced_ref(name)}
    outboxes = sample_outboxes(remote, fetched_outboxes(remote))
    shared = {name: oid for name, oid in remote.refs.items() if not log_refs.is_outbox(name)}
    remote.blocked, remote.base = None, None
    remote.accepted = last_accepted(log, remote.prefix, log_tips(log))
    check = RefCheck(log, remote.accepted, log_tips(log), outboxes)
    check.unfetchable = dict(remote.unfetchable.values())
    for name, (oid, why) in remote.unfetchable.items():
        if log_refs.is_outbox(name):
            check.leave_out(remote.copy_of(name), oid, INVALID, why)
    remote.tips = []

    def related(tips: Sequence[LogTip]) -> list[LogTip]:
        return _related(remote, check, tips, allow_foreign=allow_foreign)

    for name, oid in check.in_order(shared):
        if oid not in [tip.oid for tip in remote.tips]:
            remote.tips += related(check.admit({name: oid}))
    _detect_blocked_ref(remote, check)
    top = remote.shared()
    check.accepted = top or check.accepted
    remote.outboxes = read_outboxes(check, outboxes, related)
    if top is None:
        remote.tips += remote.outboxes
    remote.log.taken_in = max(remote.log.taken_in, check.trees.budget.bytes)
    remote.left_out = list(check.left_out.values())
    for each in remote.left_out:
        if each.kind == INVALID and each.ref in refs:
            plumbing.delete_ref(
                log.repo.common, each.ref, each.commit
            )  # so that git's gc can delete its objects
        each.ref = each.ref.replace(remote.prefix, "refs/")
    remote.waiting = list(remote.outboxes)
    if top is not None and remote.outboxes:
        forgotten = Forgotten(log, [top.tree, *(box.tree for box in remote.outboxes)])
        remote.waiting = [box for box in remote.outboxes if forgotten.union_changes(top.tree, [box.tree])]


def _related(remote: Remote, check: RefCheck, tips: Sequence[LogTip], *, allow_foreign: bool) -> list[LogTip]:
    """Return the logs of this project; leave out the others."""
    if allow_foreign:
        return list(tips)
    ours = projects(remote.log).union(*(tip.projects for tip in remote.tips))
    found = []
    for tip in tips:
        if is_related(remote.log, ours, tip):
            found.append(tip)
            ours = ours | tip.projects
        else:
            check.leave_out(tip.name, tip.oid, FOREIGN, FOREIGN_WHY)
    return found


def _detect_blocked_ref(remote: Remote, check: RefCheck) -> None:
    """Determine whether the shared ref was left out, and which base replaces it."""
    ref_name = remote.copy_of(remote.publish_ref())
    if (found := check.left_out.get(ref_name)) is None:
        return
    local = remote.log.git.tip(ref.LOG_REF)
    if local is not None and is_ancestor(remote.log.git, local, found.commit):
        del check.left_out[ref_name]  # it was moved back to an early commit of ours: a push fast-forwards it
        return
    never_ours = remote.log.git.tip(remote.prefix + ref.ACCEPTED) is None
    if found.kind == FOREIGN and never_ours:
        remote.tips = []
        remote.is_foreign = True
        remote.end(
            "refused",
            f"The log on {remote.name} belongs to a different project; none of its records were accepted.",
        )
        return
    remote.blocked = found
    remote.base = replacement_tip(check, ref_name, found)
    remote.stepped = remote.base is not remote.accepted
    if remote.stepped and remote.base and not _related(remote, check, [remote.base], allow_foreign=False):
        remote.base = None
    if remote.base is not None and remote.base.oid not in [tip.oid for tip in remote.tips]:
        remote.tips.append(remote.base)


def read_outboxes(
    check: RefCheck, outboxes: Mapping[str, str], related: Callable[[Sequence[LogTip]], list[LogTip]]
) -> list[LogTip]:
    """Return the outboxes that pass the checks, those with the least new content first.

    They are read one by one, so that an invalid one does not affect the others.

    Args:
        outboxes: Refs with their commits.
        related: Leaves out those of other projects.
    """
    found: list[LogTip] = []
    for name, oid in check.in_order(outboxes):
        if oid not in [box.oid for box in found]:
            found += related(check.admit({name: oid}))
    return found


def sample_outboxes(remote: Remote, outboxes: dict[str, str]) -> dict[str, str]:
    """Return as many outboxes as one sync reads: new ones first, then at random, so that nobody can crowd out the others."""
    if len(outboxes) <= OUTBOXES_MAX:
        return outboxes
    salt = remote.log.random(16)
    seen = remote.host.seen

    def order(name: str) -> tuple[bool, bytes]:
        return outboxes[name] in seen, sha256(salt + name.encode()).digest()

    drawn = sorted(outboxes, key=order)[:OUTBOXES_MAX]
    remote.add_sentence(
        f"{remote.name} has {len(outboxes):,} outboxes; {OUTBOXES_MAX} of them were read, and the next syncs read others: gitmem sync"
    )
    return {name: outboxes[name] for name in outboxes if name in set(drawn)}


def replacement_tip(check: RefCheck, ref_name: str, found: LeftOut) -> LogTip | None:
    """Return the tip to read instead of a shared ref that was left out: the last accepted one, or a part of it."""
    if found.kind == LARGE and found.is_fetched:
        return largest_readable_ancestor(check, ref_name, found.commit) or check.accepted
    if check.accepted is None and found.kind != FOREIGN:
        return valid_ancestor(check, ref_name, found.commit)
    return check.accepted


def largest_readable_ancestor(check: RefCheck, name: str, oid: str) -> LogTip | None:
    """Return the newest commit below a ref that is small enough for one sync; None if there is none.

    It searches only history that neither the local log nor the last accepted tip has, so each sync gets further. All
    commits that it checks share one allowance, and each has a share of its own beside it.
    """
    log, git = check.log, check.log.git
    known = [*check.known, *([check.accepted.oid] if check.accepted is not None else [])]
    line = git.history(oid, [tip for tip in known if git.has(tip)])[:-1]
    found, low, high = None, 0, len(line)
    trees = TreeCheck(git, check.trees.passed, allow_large=log.allow_large, limits=check.trees.limits)
    while low < high:
        middle = (low + high) // 2
        probe = RefCheck(check.log, check.accepted, check.known)
        probe.trees = trees
        trees.grant_share()
        tip = probe.check(name, line[middle])
        trees.forget(name)
        if tip is None:
            high = middle
        else:
            found, low = tip, middle + 1
    return found


def valid_ancestor(check: RefCheck, name: str, oid: str) -> LogTip | None:
    """Return the newest ancestor of a rejected tip that passes, or None; for clones that never saw a valid one.

    Each ancestor may be read up to a share of its own. Else a few with large trees would hide the valid ones.
    """
    try:
        *line, _ = check.log.git.unread_history(oid, first_parents=ANCESTORS_MAX + 1)
        if not line or not RefCheck(check.log, None, check.known).is_log_history(name, line[0]):
            return None
        probe = RefCheck(check.log, None, [*check.known, line[0]])  # lists and follows history above it only
        for oid in reversed(line):
            probe.trees.grant_share()
            tip = probe.check(name, oid)
            if tip is not None:
                return tip
            probe.left_out.clear()
    except (KeyError, StoreError):  # the history is incomplete
        pass
    return None
