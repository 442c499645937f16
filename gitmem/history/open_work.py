"""Who works on what: the tasks that somebody has, with mismatches, those that nobody has taken, open handoffs and claims."""

from __future__ import annotations

from ..agents import waiting_work
from ..agents.descriptors import role_text
from ..agents.waiting_work import ASKING, OFFERED
from ..order.task import WAITING
from ..outcome import Outcome, PartOfAnswer, command
from ..records.ids import unit_key
from ..text.sanitize import SEPARATOR, minute
from ..work import claims as standing_claims
from ..work import handoffs as handoff_list
from ..work import path_patterns, task_list
from ..work.claims import CONTESTED, ClaimRow, contest_text, paths_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..agents.caller import Caller
    from ..agents.descriptors import OwnershipScope
    from ..store import Store
    from ..work.claims import StandingClaim
    from ..work.handoffs import HandoffRow
    from ..work.task_list import TaskRow


LISTED = 20  # of each kind
NO_ROLE = "no role"
_HELD = "t.decided_by IS NULL AND t.holder IS NOT NULL AND t.replaced <> 1"
_OF_UNIT = "(:unit = '' OR t.wu_id = :unit)"
_FREE = (
    "t.decided_by IS NULL AND t.holder IS NULL AND t.replaced <> 1 AND t.cancels = 0 AND t.purpose <> 'handoff'"
    " AND (t.deadline IS NULL OR t.deadline > :now)"
)
_MISMATCHES_FIRST = "t.mismatch DESC, t.touched DESC, t.task_id"


class RoleGroup(Outcome):
    """What the holders of one role do.

    Attributes:
        role: The role that they state; None for those who state none, and for handoffs to one agent.
        workers: The tasks that somebody has, those with mismatches first.
        handoffs: Handoffs to the role that wait for an answer.
        mismatches: A sentence about each worker who is something else than asked.
    """

    role: str | None
    workers: list[TaskRow] = []
    handoffs: list[HandoffRow] = []
    mismatches: list[str] = []


class OpenWork(PartOfAnswer):
    """The work of all agents.

    Attributes:
        roles: The groups, the one without a role last.
        free: The tasks that nobody has taken.
        claims: The claims that stand.
        more: The number of tasks and claims that are left out.
        others: The number of tasks and claims on other work, if only those on a work unit were asked for.
    """

    def __init__(
        self,
        workers: Sequence[TaskRow],
        handoffs: Sequence[HandoffRow],
        claims: Sequence[StandingClaim],
        free: Sequence[TaskRow],
        *,
        more: int,
        others: int,
    ) -> None:
        groups: dict[str | None, RoleGroup] = {}

        def group(role: str | None) -> RoleGroup:
            return groups.setdefault(role, RoleGroup(role))

        for task in workers:
            of = group(role_text(task.actual_role))
            of.workers.append(task)
            of.mismatches += [task.mismatch] if task.mismatch else []
        for each in handoffs:
            group(each.target_role).handoffs.append(each)
        self.roles = sorted(groups.values(), key=lambda each: (each.role is None, each.role or ""))
        self.free = list(free)
        self.claims = [ClaimRow(each) for each in claims]
        self.more = more
        self.others = others

    @property
    def said(self) -> list[str]:
        """The sentences on mismatches."""
        return [mismatch_text(task) for each in self.roles for task in each.workers if task.mismatch]

    def lines(self, without: Collection[str] = (), *, whole: bool = False, via: str = "gitmem") -> list[str]:
        """Return a line for each task, mismatch, handoff and claim, see `PartOfAnswer.lines`."""
        found = []
        for each in self.roles:
            role = each.role or NO_ROLE
            found += [
                f"{role}: {task.worker} has {task.about}"
                for task in each.workers
                if task.task_id not in without
            ]
            found += [f"{role}: mismatch: {mismatch_text(task)}" for task in each.workers if task.mismatch]
            found += [
                f"{f'{each.role}: ' if each.role else ''}handoff: {_handoff(waiting)}"
                for waiting in each.handoffs
                if waiting.task_id not in without
            ]
        found += [f"not taken: {_free(task)}" for task in self.free if task.task_id not in without]
        found += [f"claim: {claim_text(each)}" for each in self.claims if each.claim_id not in without]
        if self.more:
            found.append(f"{self.more} more not shown: {via} task list --open, {via} claim list")
        if self.others:
            found.append(f"on other work: {self.others} ({via} roster)")
        return found


def open_work(store: Store, limit: int = LISTED, *, wu: str | None = None) -> OpenWork | None:
    """Return who works on what, or with `wu` who works on this work unit; None if there is no open task, handoff or claim."""
    db, unit = store.db(), unit_key(wu)
    values: dict[str, str | int | None] = {"unit": unit, "now": store.now()}
    workers, more_held = task_list.select(db, f"{_HELD} AND {_OF_UNIT}", values, limit, _MISMATCHES_FIRST)
    free, more_free = task_list.select(db, f"{_FREE} AND {_OF_UNIT}", values, limit)
    tasks = of_unit = len(workers) + more_held + len(free) + more_free
    if unit:
        tasks = sum(task_list.select(db, which, values, 0)[1] for which in (_HELD, _FREE))
    waiting = handoff_list.waiting(store)
    handoffs = [each for each in waiting if unit in ("", unit_key(each.wu_id))]
    every = standing_claims.standing(store)
    claims = [each for each in every if unit in ("", unit_key(each.claim.record.get("wu_id")))]
    if not (tasks or waiting or every):
        return None
    more = more_held + more_free + max(0, len(claims) - limit)
    others = tasks - of_unit + len(waiting) - len(handoffs) + len(every) - len(claims)
    return OpenWork(workers, handoffs, claims[:limit], free, more=more, others=others)


def mismatch_text(task: TaskRow) -> str:
    """Return the sentence about a task whose holder is something else than asked."""
    return f"{task.mismatch} ({task.task_id})"


def _free(task: TaskRow) -> str:
    return f"{task.about}, for {task.whom or 'anybody'}, from {task.caller_name}"


def _handoff(waiting: HandoffRow) -> str:
    parts = (f"{waiting.giver_name} to {waiting.to}", waiting.wu_id, waiting.status, waiting.task_id)
    return SEPARATOR.join(filter(None, parts)) + handoff_list.gone_text(waiting)


def claim_text(claim: ClaimRow) -> str:
    """Return a claim in one line: who, what, until when."""
    parts = [f"{claim.name or claim.owner} claims {paths_text(claim.paths)}", f"until {minute(claim.until)}"]
    return SEPARATOR.join(
        [*parts, *([claim.status] if claim.status != "held" else []), *([claim.wu_id] if claim.wu_id else [])]
    )


CONCERNS_LISTED = 10  # of each kind
ASKED_SHOWN = 3  # tasks whose signals are shown beside
_TAKEN = "t.decided_by IS NULL AND t.holder IS NOT NULL AND t.holder = :reader AND (:session IS NULL OR t.holder_session IS :session)"
_OFFERED = f"t.task_id IN ({OFFERED}) AND t.purpose <> 'handoff'"


class Concerns(PartOfAnswer):
    """What waits for a caller.

    Attributes:
        offered: Tasks that it may take.
        asking: Tasks that it wrote, with a question, an end that is not sealed, a conflict or a mismatch.
        taken: The tasks that its session has.
        handoffs: Handoffs that it may accept, its own ones without an answer, and tasks that it accepted too late.
        claims: Its claims.
        in_the_way: Claims of others that contest its own, or that overlap its scope.
        notes: A sentence about each of its claims that is contested.
    """

    def __init__(self, store: Store, caller: Caller) -> None:
        db, now = store.db(), store.now()
        values = waiting_work.values_for(caller, now)
        self.offered, self.asking, self.taken = (
            task_list.select(db, condition, values, CONCERNS_LISTED)[0]
            for condition in (_OFFERED, f"t.task_id IN ({ASKING})", _TAKEN)
        )
        self.handoffs = handoff_list.of_caller(store, caller, limit=CONCERNS_LISTED)
        self.claims: list[ClaimRow] = []
        self.in_the_way: list[ClaimRow] = []
        self.notes: list[str] = []
        self._add_claims(standing_claims.standing(store), caller)

    def _add_claims(self, found: Sequence[StandingClaim], caller: Caller) -> None:
        own = [each for each in found if each.is_of(caller.ids)]
        self.claims = [ClaimRow(each) for each in own[:CONCERNS_LISTED]]
        against = {other.id: other for each in own for other in (*each.against, *each.before)}
        scope = path_patterns.prepared(_paths(caller))
        for each in found:
            is_other = each not in own and each.claim.record["mode"] == standing_claims.EXCLUSIVE
            if scope and is_other and path_patterns.may_overlap(scope, each.patterns):
                against.setdefault(each.id, each)
        self.in_the_way = [ClaimRow(each) for each in list(against.values())[:CONCERNS_LISTED]]
        self.notes = [contest_text(each, other) for each in own for other in each.against][:CONCERNS_LISTED]

    @property
    def is_any(self) -> bool:
        """Whether something waits for the caller; what it has taken or claimed does not wait."""
        handoffs = self.handoffs
        return bool(
            self.offered or self.asking or handoffs.offered or handoffs.given or handoffs.void or self.notes
        )

    @property
    def said(self) -> list[str]:
        """The ids of the tasks, handoffs and contested claims that its lines name or count."""
        handoffs = [*self.handoffs.offered, *self.handoffs.given]
        ids = [*(str(each.task_id) for each in self.offered), *(each.task_id for each in handoffs)]
        contested = [
            each for each in (*self.claims, *self.in_the_way) if self.notes and each.status == CONTESTED
        ]
        return [*ids, *(each.claim_id for each in contested)]

    @property
    def steps(self) -> list[str]:
        """The commands that take, answer or accept what waits longest of each kind."""
        found = [each.next[-1] for each in self.handoffs.offered[:1]]
        found += [command("gitmem", "task", "take", str(each.task_id)) for each in self.offered[:1]]
        found += [_step(each) for each in self.asking if _why(each)][:1]
        return [*found, *(["gitmem claim list"] if self.notes else [])]

    def lines(self, without: Collection[str] = (), *, whole: bool = False, via: str = "gitmem") -> list[str]:
        """Return at most a line for each kind, see `PartOfAnswer.lines`; with `whole` also what the caller has and claims."""
        mine, claims = f"{via} task list --mine", f"{via} claim list"
        offered = [each for each in self.offered if each.task_id not in without]
        found = _first("handoff", [each.text for each in self.handoffs.offered], mine)
        found += _first("for you", [_offer(each) for each in offered], mine)
        known = [each for each in self.offered if each.task_id in without and each.asked]
        found += [f"asked: {each.asked} ({each.task_id})" for each in known[:ASKED_SHOWN]]
        found += _first(
            "waits for you",
            [f"{each.about}, {why}; next: {_step(each, via)}" for each in self.asking if (why := _why(each))],
            mine,
        )
        mismatches = [mismatch_text(each) for each in self.asking if each.mismatch]
        found += _first("mismatch", [each for each in mismatches if each not in without], mine)
        found += [f"handoff: {each.text}" for each in self.handoffs.given[:1]]
        found += _first("void", [each.text for each in self.handoffs.void], mine)
        found += _first("contested", self.notes, claims)
        if whole:
            found += _first("you have", [_until(each) for each in self.taken], mine)
            found += _first("you claim", [", ".join(each.paths) for each in self.claims], claims)
            others = [each for each in self.in_the_way if each.status != CONTESTED or not self.notes]
            found += _first("in the way", [claim_text(each) for each in others], claims)
        return found


def of_inbox(store: Store, caller: Caller) -> Concerns | None:
    """Return what waits for the reader of an inbox; None if nothing does."""
    found = Concerns(store, caller)
    return found if found.is_any else None


def of_caller(store: Store, caller: Caller) -> Concerns:
    """Return what waits for a caller, and what it has taken and claimed."""
    return Concerns(store, caller)


def _first(label: str, texts: Sequence[str], rest: str) -> list[str]:
    more = f" (and {len(texts) - 1} more: {rest})" if len(texts) > 1 else ""
    return [f"{label}: {texts[0]}{more}"] if texts else []


def _offer(task: TaskRow) -> str:
    asked = f", asked: {task.asked}" if task.asked else ""
    return f"{task.about}, from {task.caller_name}{asked}"


def _until(task: TaskRow) -> str:
    return f"{task.about}{f', until {minute(task.until)}' if task.until else ''}"


def _why(task: TaskRow) -> str:
    """Return why a task waits for its writer; "" if only a mismatch is to be seen."""
    if task.conflict and not task.is_unconfirmed:
        return "several hold it"
    return task.state_text if task.is_unconfirmed or task.state in WAITING else ""


def _step(task: TaskRow, via: str = "gitmem") -> str:
    """Return the command that ends the waiting of a task, or shows what does."""
    return f"{via} task {'accept' if task.is_unconfirmed else 'show'} {task.task_id}"


def _paths(caller: Caller) -> list[str]:
    """Return the paths of the scope that the caller's session states."""
    from ..agents import descriptions

    stored = (caller.record or {}).get("actual_ownership_scope")
    scope: OwnershipScope | None = descriptions.scope_of(stored) if stored else None
    return scope.paths if scope is not None else []
