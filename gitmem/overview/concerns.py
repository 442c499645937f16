"""What waits for a caller beside signals: tasks for it, tasks of its own that need it, and claims in its way."""

from __future__ import annotations

from ..claims import path_patterns, standing_claims
from ..claims.claim_answers import ClaimRow, contest_text
from ..claims.standing_claims import CONTESTED
from ..handoffs import handoff_list
from ..mailbox import waiting_work
from ..mailbox.waiting_work import ASKING, OFFERED
from ..outcome import PartOfAnswer
from ..tasks import WAITING, task_list
from ..text.shell_quote import command
from .open_work import claim_text, is_claimed, mismatch_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..agents.caller import Caller
    from ..claims.standing_claims import StandingClaim
    from ..roles.scope import OwnershipScope
    from ..store import Store
    from ..tasks.task_list import TaskRow

LISTED = 10  # of each kind
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
        self.offered = task_list.select(db, _OFFERED, values, LISTED)
        self.asking = task_list.select(db, f"t.task_id IN ({ASKING})", values, LISTED)
        self.taken = task_list.select(db, _TAKEN, values, LISTED)
        self.handoffs = handoff_list.of_caller(store, caller, limit=LISTED)
        self.claims: list[ClaimRow] = []
        self.in_the_way: list[ClaimRow] = []
        self.notes: list[str] = []
        if is_claimed(db, now):
            self._add_claims(standing_claims.standing(store), caller)

    def _add_claims(self, found: Sequence[StandingClaim], caller: Caller) -> None:
        own = [each for each in found if each.is_of(caller.ids)]
        self.claims = [ClaimRow(each) for each in own[:LISTED]]
        against = {other.id: other for each in own for other in (*each.against, *each.before)}
        scope = path_patterns.prepared(_paths(caller))
        for each in found:
            is_other = each not in own and each.claim.record["mode"] == standing_claims.EXCLUSIVE
            if scope and is_other and path_patterns.may_overlap(scope, each.patterns):
                against.setdefault(each.id, each)
        self.in_the_way = [ClaimRow(each) for each in list(against.values())[:LISTED]]
        self.notes = [contest_text(each, other) for each in own for other in each.against][:LISTED]

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
    return f"{task.about}{f', until {task.until[:16]}Z' if task.until else ''}"


def _why(task: TaskRow) -> str:
    """Return why a task waits for its writer; "" if only a mismatch is to be seen."""
    if task.conflict and not task.is_unconfirmed:
        return "several hold it"
    return task.state_text if task.is_unconfirmed or task.state in WAITING else ""


def _step(task: TaskRow, via: str = "gitmem") -> str:
    """Return the command that ends the waiting of a task, or shows what does."""
    return f"{via} task {'seal' if task.is_unconfirmed else 'show'} {task.task_id}"


def _paths(caller: Caller) -> list[str]:
    """Return the paths of the scope that the caller's session states."""
    from ..agents import serialize

    stored = (caller.record or {}).get("actual_ownership_scope")
    scope: OwnershipScope | None = serialize.scope_of(stored) if stored else None
    return scope.paths if scope is not None else []
