"""Who works on what: the tasks that somebody has, with mismatches, open handoffs and claims, grouped by role."""

from __future__ import annotations

from ..claims import claim_list
from ..handoffs import handoff_list
from ..mailbox.waiting_work import GRACE_MICROS
from ..outcome import Outcome, PartOfAnswer
from ..roles.mismatch import role_text
from ..tasks import task_list
from ..text.sanitize import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..claims.claim_answers import ClaimPage, ClaimRow
    from ..handoffs.handoff_list import HandoffRow
    from ..store import Store
    from ..tasks.task_list import TaskRow

LISTED = 20  # of each kind
PATHS_SHOWN = 3
NO_ROLE = "no role"
_HELD = "t.decided_by IS NULL AND t.holder IS NOT NULL AND t.replaced <> 1"
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

    __slots__ = ("role", "workers", "handoffs", "mismatches")

    def __init__(self, role: str | None) -> None:
        self.role = role
        self.workers: list[TaskRow] = []
        self.handoffs: list[HandoffRow] = []
        self.mismatches: list[str] = []


class OpenWork(PartOfAnswer):
    """The work of all agents.

    Attributes:
        roles: The groups, the one without a role last.
        claims: The claims that stand.
        more: The number of tasks and claims that are left out.
    """

    __slots__ = ("roles", "claims", "more")

    def __init__(
        self, workers: Sequence[TaskRow], handoffs: Sequence[HandoffRow], claims: ClaimPage | None, more: int
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
        self.claims: list[ClaimRow] = claims.claims if claims is not None else []
        self.more = more + (claims.more if claims is not None else 0)

    def lines(self, without: Collection[str] = (), *, whole: bool = False) -> list[str]:
        """Return a line for each task, mismatch, handoff and claim, see `PartOfAnswer.lines`."""
        found = []
        for each in self.roles:
            role = each.role or NO_ROLE
            found += [
                f"{role}: {task.worker} has {task.about}"
                for task in each.workers
                if task.task_id not in without
            ]
            found += [f"{role}: mismatch: {said}" for said in each.mismatches]
            found += [f"{role}: handoff: {waiting.giver_name} to {waiting.to}{SEPARATOR}{waiting.task_id}" for waiting in each.handoffs]  # fmt: skip
        found += [f"claim: {claim_text(each)}" for each in self.claims]
        if self.more:
            found.append(f"{self.more} more not shown: gitmem task list --open, gitmem claim list")
        return found


def open_work(store: Store, limit: int = LISTED) -> OpenWork | None:
    """Return who works on what; None if nobody has a task or a claim and no handoff waits."""
    db = store.db()
    workers = task_list.select(db, _HELD, {}, limit, _MISMATCHES_FIRST)
    more = 0
    if len(workers) == limit:
        more = db.execute(f"SELECT count(*) FROM task t WHERE {_HELD}").fetchone()[0] - limit
    handoffs = handoff_list.waiting(store, limit)
    claims = claim_list.list_claims(store, limit=limit) if is_claimed(db, store.now()) else None
    if not (workers or handoffs or (claims and claims.claims)):
        return None
    return OpenWork(workers, handoffs, claims, more)


def is_claimed(db: sqlite3.Connection, now: int) -> bool:
    """Return whether any claim may stand."""
    return bool(db.execute(_CLAIMED, (now - GRACE_MICROS,)).fetchone()[0])


def claim_text(claim: ClaimRow) -> str:
    """Return a claim in one line: who, what, until when."""
    more = len(claim.paths) - PATHS_SHOWN
    paths = ", ".join(claim.paths[:PATHS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    parts = [f"{claim.name or claim.owner} claims {paths}", f"until {claim.until[:16]}Z"]
    return SEPARATOR.join(
        [*parts, *([claim.status] if claim.status != "held" else []), *([claim.wu_id] if claim.wu_id else [])]
    )
