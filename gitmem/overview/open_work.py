"""Who works on what: the tasks that somebody has, with mismatches, those that nobody has taken, open handoffs and claims."""

from __future__ import annotations

from ..claims import standing_claims
from ..claims.claim_answers import ClaimRow, paths_text
from ..handoffs import handoff_list
from ..mailbox.waiting_work import GRACE_MICROS
from ..outcome import Outcome, PartOfAnswer
from ..records.ids import unit_key
from ..roles.mismatch import role_text
from ..tasks import task_list
from ..text.sanitize import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..claims.standing_claims import StandingClaim
    from ..handoffs.handoff_list import HandoffRow
    from ..store import Store
    from ..tasks.task_list import TaskRow

LISTED = 20  # of each kind
NO_ROLE = "no role"
_HELD = "t.decided_by IS NULL AND t.holder IS NOT NULL AND t.replaced <> 1"
_OF_UNIT = "(:unit = '' OR t.wu_id = :unit)"
_FREE = (
    "t.decided_by IS NULL AND t.holder IS NULL AND t.replaced <> 1 AND t.cancels = 0 AND t.purpose <> 'handoff'"
    " AND (t.deadline IS NULL OR t.deadline > :now)"
)
_COUNT = "SELECT count(*), coalesce(sum({unit}), 0) FROM task t WHERE {which}"
_MISMATCHES_FIRST = "t.mismatch DESC, t.touched DESC, t.task_id"
_CLAIMED = "SELECT EXISTS (SELECT 1 FROM path_claim WHERE until > ?)"


class RoleGroup(Outcome):
    """What the holders of one role do.

    Attributes:
        role: The role that they state; None for those who state none, and for handoffs to one agent.
        workers: The tasks that somebody has, those with mismatches first.
        handoffs: Handoffs to the role that wait for an answer.
        mismatches: A sentence about each worker who is something else than asked.
    """

    def __init__(self, role: str | None) -> None:
        self.role = role
        self.workers: list[TaskRow] = []
        self.handoffs: list[HandoffRow] = []
        self.mismatches: list[str] = []


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
            found += [f"{role}: {task.worker} has {task.about}" for task in each.workers]
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
    workers = task_list.select(db, f"{_HELD} AND {_OF_UNIT}", values, limit, _MISMATCHES_FIRST)
    free = task_list.select(db, f"{_FREE} AND {_OF_UNIT}", values, limit)
    counts = [
        db.execute(_COUNT.format(unit=_OF_UNIT, which=which), values).fetchone() for which in (_HELD, _FREE)
    ]
    held, of_unit = map(sum, zip(*counts, strict=True))
    waiting = handoff_list.waiting(store)
    handoffs = [each for each in waiting if unit in ("", unit_key(each.wu_id))]
    every = standing_claims.standing(store) if is_claimed(db, store.now()) else []
    claims = [each for each in every if unit in ("", unit_key(each.claim.record.get("wu_id")))]
    if not (held or waiting or every):
        return None
    more = of_unit - len(workers) - len(free) + max(0, len(claims) - limit)
    others = held - of_unit + len(waiting) - len(handoffs) + len(every) - len(claims)
    return OpenWork(workers, handoffs, claims[:limit], free, more=more, others=others)


def mismatch_text(task: TaskRow) -> str:
    """Return the sentence about a task whose holder is something else than asked."""
    return f"{task.mismatch} ({task.task_id})"


def _free(task: TaskRow) -> str:
    return f"{task.about}, for {task.whom or 'anybody'}, from {task.caller_name}"


def _handoff(waiting: HandoffRow) -> str:
    parts = (f"{waiting.giver_name} to {waiting.to}", waiting.wu_id, waiting.status, waiting.task_id)
    return SEPARATOR.join(filter(None, parts)) + handoff_list.gone_text(waiting)


def is_claimed(db: sqlite3.Connection, now: int) -> bool:
    """Return whether any claim may stand."""
    return bool(db.execute(_CLAIMED, (now - GRACE_MICROS,)).fetchone()[0])


def claim_text(claim: ClaimRow) -> str:
    """Return a claim in one line: who, what, until when."""
    parts = [f"{claim.name or claim.owner} claims {paths_text(claim.paths)}", f"until {claim.until[:16]}Z"]
    return SEPARATOR.join(
        [*parts, *([claim.status] if claim.status != "held" else []), *([claim.wu_id] if claim.wu_id else [])]
    )
