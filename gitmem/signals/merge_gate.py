"""The merge gate, for CI: it is closed while a proposal on the work unit of a branch is open, whoever is asked.

Nobody calls in CI. So a proposal counts if its writer is one that `.gitmem/signers` of the target branch names: who can push to the log, or changes the
file on the branch to be merged, can neither hold up a merge nor let it through.
"""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence, session_view, signers
from ..errors import UsageError
from ..git import config
from ..index import entities
from ..order.content import ASKS
from ..order.thread import ThreadSignal
from ..outcome import Outcome, command
from ..records.ids import unit_key
from ..store import add_lost_records
from ..text.sanitize import sanitize
from .gate import is_on, unnamed_unit
from .threads import Converged, Proposal, ThreadCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..agents.signers import Signers
    from ..order.thread import FoldedThread
    from ..store import Store

UNCOUNTED_MAX = 10


class MergeGate(Outcome, kw_only=True):
    """Whether a branch may be merged as far as proposals on its work units tell.

    Attributes:
        open: Whether none of the proposals that count is open.
        target: The branch whose `.gitmem/signers` says whose proposals count.
        wu_ids: The work units; none if the branch's name has none of the log.
        proposals: The threads with a proposal that counts, those that are open first.
        waiting: The ids of those that are open.
        uncounted: Proposals of other writers, agreed on or not, the oldest first.
        more: How many further ones of these there are.
    """

    open: bool = True
    target: str
    branch: str | None
    wu_ids: list[str]
    proposals: list[Converged] = []
    waiting: list[str] = []
    uncounted: list[Proposal] = []
    more: int = 0
    warnings: list[str] = []
    next: list[str] = []


def check(store: Store, target: str, branch: str | None = None, *, wu: str | None = None) -> MergeGate:
    """Check whether a proposal on the work unit of a branch is open. Write nothing.

    A thread counts while a known writer's PROPOSE or COUNTER on the work unit stands in it, which only that writer can withdraw. It is open until a proposal
    is agreed on, a stranger's also by these writers; or until the tasks that theirs name are taken or have ended.

    Args:
        target: The branch to merge into, as the usual remote has it.
        branch: The branch to merge; by default the one that is checked out.
        wu: The work unit; by default those of the branch's name.

    Raises:
        UsageError: `no-target`, `no-signers`, `no-log`, `bad-work-unit`, `unknown-work-unit`. Nothing was checked.
    """
    remote = config.upstream_remote(store.repo)
    file = _signers(store, remote, target)
    if not entities.count(store.db(), "attestation"):  # a sync makes a log where there is none
        raise UsageError(
            f"The log in this clone is empty or missing. Nothing was checked; that of {sanitize(remote)} must be fetched first.",
            hint="If `gitmem sync` finds none, nobody has published one there: `gitmem sync --publish` in a clone that has it.",
            code="no-log",
            next=["gitmem sync"],
        )
    if wu is not None and (unnamed := unnamed_unit(store, wu, ci=True)):
        raise unnamed
    units = [wu] if wu is not None else session_view.units_of_checkout(store, branch)
    found = MergeGate(
        target=f"{remote}/{target}", branch=branch or store.branch(), wu_ids=units, warnings=file.sentences()
    )
    if not units:
        what = (
            f"The branch {sanitize(found.branch)} names no work unit of the log"
            if found.branch
            else "No branch is checked out"
        )
        found.warnings.append(f"{what}, so no proposal is on it; --wu names a work unit.")
    _look(store, found, file)
    found.proposals.sort(key=lambda each: each.thread_id not in found.waiting)
    found.open = not found.waiting
    found.next = [
        command("gitmem", "thread", each.thread_id) for each in found.proposals[: len(found.waiting)][:3]
    ]
    add_lost_records(store, found)
    return found


def _look(store: Store, found: MergeGate, file: Signers) -> None:
    """Fill in the threads that count, and proposals that don't.

    Raises:
        UsageError: `no-signers`: the file can't be asked to the end.
    """
    db, threads = store.db(), dict[str, dict[str, str]]()
    for unit in found.wu_ids:
        for thread_id, id, sender in mailbox.proposed_on(db, unit_key(unit)):
            threads.setdefault(thread_id, {})[id] = sender
    known = file.known(store, {sender for proposed in threads.values() for sender in proposed.values()})
    if file.is_cut:
        raise UsageError(
            f"Whose proposals count is not certain: {file.sentences()[-1]} Nothing was checked.",
            hint="Name writers instead of SSH keys there: `gitmem trust` shows them.",
            code="no-signers",
        )
    names, cache = presence.names_by_reader(db), ThreadCache(db)
    for thread_id, proposed in threads.items():
        others = [id for id, sender in proposed.items() if sender not in known]
        fold = cache.of(thread_id) if len(others) < len(proposed) else None
        counted = (
            [each for each in fold.proposals.values() if _counts(each, fold, known, found.wu_ids)]
            if fold
            else []
        )
        if fold is not None and counted:
            found.proposals.append(one := Converged(thread_id, fold, names, None))
            is_settled = not fold.parties or all(each.settled for each in counted)  # or nobody is asked
            if not is_settled and not _is_agreed(fold, counted, known):
                found.waiting.append(thread_id)
                if one.is_settled:
                    found.warnings.append(
                        f"{thread_id}: what a writer proposed that {sanitize(found.target)} names is open all the same, until that writer agrees or withdraws it."
                    )
        elif others and len(found.uncounted) == UNCOUNTED_MAX:
            found.more += 1
        elif others and (record := records.read_kind("signal", line := mailbox.line_of(db, others[0]))):
            found.uncounted.append(Proposal(ThreadSignal(record, [line]), names))


def _counts(each: ThreadSignal, fold: FoldedThread, known: Collection[str], units: Sequence[str]) -> bool:
    """Return whether a proposal is one of a known writer on the work units, and is not withdrawn."""
    is_known = each.record["intent"] in ASKS and each.record["sender_identity"] in known
    return (
        is_known
        and fold.ended(each.id) != "withdrawn"
        and any(is_on(each, fold.root, unit) for unit in units)
    )


def _is_agreed(fold: FoldedThread, counted: Sequence[ThreadSignal], known: Collection[str]) -> bool:
    """Return whether a proposal is agreed on: a stranger's, who says how many have to agree, also by the known writers who have proposed another one."""
    agreed = fold.agreed_on
    if agreed is None or agreed.record["sender_identity"] in known:
        return agreed is not None
    agreeing = fold.agreeing(agreed.id)
    return all(any(map(each.is_by, agreeing)) for each in counted)


def _signers(store: Store, remote: str, target: str) -> Signers:
    """Return the file of the target branch.

    Raises:
        UsageError: `no-target`, `no-signers`.
    """
    commit = store.git.remote_branch(remote, target)
    branch = f"{remote}/{target}"
    if commit is None:
        fetched = f"+refs/heads/{target}:refs/remotes/{branch}"
        raise UsageError(
            f"This clone does not have the branch {sanitize(branch)}, which says whose proposals count. Nothing was checked.",
            hint="A clone of CI may have one branch alone: fetch this one first.",
            code="no-target",
            next=[command("git", "fetch", "--depth=1", remote, fetched)],
        )
    file = signers.read_at(store, commit, branch)
    if not file.rows:
        why = " ".join(file.sentences())
        raise UsageError(
            f"{sanitize(branch)} has no {signers.FILE} that names a writer, so no proposal would count. Nothing was checked. {why}".strip(),
            hint="Commit one there, a line for each writer: the addresses that it may propose as, then the writer, such as `human:*,claude:*:*,codex:*:* WRITER`. `gitmem trust` shows yours.",
            code="no-signers",
            next=["gitmem trust"],
        )
    return file
