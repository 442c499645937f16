"""Who works on what, with mismatches, what nobody has taken, what waits for one caller; and who waits for whom, for what."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence, waiting_work
from ..agents.descriptions import sender_name_from
from ..agents.descriptors import role_text
from ..agents.waiting_work import ASKING, OFFERED
from ..log.lines import format_at
from ..order.task import HANDOFF, WAITING, WORKING
from ..outcome import Outcome, PartOfAnswer, command
from ..records.ids import unit_key
from ..signals import message_frame
from ..signals.thread_list import owes
from ..signals.threads import ThreadCache
from ..text.sanitize import SEPARATOR, minute, title
from ..work import HANDOFF_MICROS, stored_tasks, task_list, task_state
from ..work import claims as standing_claims
from ..work import handoffs as handoff_list
from ..work.claims import CONTESTED, ClaimRow, contest_text, paths_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator, Sequence

    from ..agents.caller import Caller
    from ..agents.descriptors import OwnershipScope
    from ..records.record_types import SignalRecord
    from ..signals.thread_list import Selection
    from ..store import Store
    from ..work.claims import StandingClaim
    from ..work.handoffs import HandoffRow
    from ..work.stored_tasks import OpenTask
    from ..work.task_list import TaskRow


LISTED = 20  # of each kind
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
            role = f"{each.role}: " if each.role else ""
            found += [
                f"{role or 'task: '}{task.worker} has {task.about}"
                for task in each.workers
                if task.task_id not in without
            ]
            found += [f"{role}mismatch: {mismatch_text(task)}" for task in each.workers if task.mismatch]
            found += [
                f"{role}handoff: {_handoff(waiting)}"
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
    return SEPARATOR.join(filter(None, parts))


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
        scope = standing_claims.prepared(_paths(caller))
        for each in found:
            is_other = each not in own and each.claim.record["mode"] == standing_claims.EXCLUSIVE
            if scope and is_other and standing_claims.may_overlap(scope, each.patterns):
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


ANSWER, TASK, ACCEPTANCE = "answer", "task", "acceptance"  # what is owed; also `handoff`
YOU, OWES, WAITS = "you", "owes", "waits"
WAITS_LISTED = 50
ASKED_MAX = 500  # signals that ask for something, the newest, of which the threads are looked at
FOLD_MAX_BYTES = 1024 * 1024


class Wait(Outcome, kw_only=True):
    """Somebody waits for somebody.

    Attributes:
        waiter, owes: Their addresses; None for whoever has `role` may do it. `waiter_name`, `owes_name` are for people.
        you: Whether the caller `owes` it or `waits` for it; None otherwise.
        what: An `answer`, a `task`, its `acceptance` or a `handoff`.
        state: Of a task as A2A has it; None for an answer to a signal.
        is_held: Whether somebody has the task and was answered.
        role: The role that the task asks for, such as one that reviews.
        text: The beginning of what was said.
        since: When the waiting began, in ISO 8601.
        id: The signal or the task. `thread_id` is that of the signal.
        next: The command that ends the waiting if the caller owes it; for others the one that shows it.
    """

    waiter: str
    waiter_name: str
    owes: str | None
    owes_name: str
    you: str | None = None
    what: str
    state: str | None = None
    role: str | None = None
    is_held: bool = False
    text: str
    wu_id: str | None
    since: str
    id: str
    thread_id: str | None = None
    next: list[str] = []


class Waits(PartOfAnswer):
    """Who waits for whom, the longest first, before them what the caller owes; `more` is the number of those left out, the oldest."""

    rows: list[Wait]
    more: int = 0

    @property
    def steps(self) -> list[str]:
        """The commands that end what the caller owes longest."""
        return next((each.next for each in self.rows if each.you == OWES), [])

    def lines(self, without: Collection[str] = (), *, whole: bool = False, via: str = "gitmem") -> list[str]:
        """Return a line for each, see `PartOfAnswer.lines`."""
        return [" ".join(words_of(each)) + f" ({each.id})" for each in self.rows if each.id not in without]


def words_of(wait: Wait) -> tuple[str, str, str, str]:
    """Return four parts of a sentence for the caller, such as `Dora`, `waits for`, `you` and `to answer "Freeze it"`; they have a peer's text."""
    role = f" as {wait.role}" if wait.role and wait.owes and wait.what == TASK else ""
    waiter, verb = (YOU, "wait for") if wait.you == WAITS else (wait.waiter_name, "waits for")
    return waiter, verb, YOU if wait.you == OWES else wait.owes_name, f'{to_do(wait)} "{wait.text}"{role}'


def to_do(wait: Wait) -> str:
    """Return what is owed as a verb, such as `to answer`."""
    if wait.what == ANSWER:
        return "to answer"
    if wait.what == ACCEPTANCE:
        return "to accept" if wait.state == "completed" else f"to accept as {wait.state}"
    return (
        "to finish"
        if wait.state == WORKING or wait.is_held
        else "to take over"
        if wait.what == HANDOFF
        else "to take"
    )


def waits(
    store: Store,
    caller: Caller | None = None,
    *,
    only: Selection | None = None,
    limit: int = WAITS_LISTED,
    fold_most: int = FOLD_MAX_BYTES,
) -> Waits:
    """Return who waits for whom. Mark nothing as read.

    Args:
        caller: The caller, if known: what it owes comes first.
        only: Only what is on a work unit, concerns an agent, or happened since a time.
        limit: The number of rows: of what the caller owes the oldest, of the others the newest.
        fold_most: Maximum bytes of lines of threads to fold; of further ones the receipts alone say what is answered.
    """
    found = [*_answers(store, caller, fold_most), *_of_tasks(store, caller)]
    if only is not None:
        found = [each for each in found if _matches(only, each)]
    found.sort(key=lambda each: (each.since, each.id))
    own = [each for each in found if each.you == OWES][:limit]
    others = [each for each in found if each.you != OWES]
    rows = own + others[max(0, len(others) - (limit - len(own))) :]
    return Waits(rows, len(found) - len(rows))


def _matches(only: Selection, wait: Wait) -> bool:
    is_new = not only.since or wait.since >= format_at(only.since)
    return is_new and only.has_unit(wait.wu_id) and only.has_any(wait.waiter, wait.owes)


def _answers(store: Store, caller: Caller | None, fold_most: int) -> Iterator[Wait]:
    """Yield who owes an answer to which signal."""
    db = store.db()
    cache, names = ThreadCache(db, fold_most), presence.names_by_reader(db)
    of_sessions = presence.names_by_session(db)
    asked = mailbox.newest_asked(db, format_at(store.now() - waiting_work.MONTH_MICROS), ASKED_MAX)
    cache.lines.read_ahead([id for id, *_ in asked])
    for id, thread, readers in asked:
        record: SignalRecord | None = None
        for reader in readers:
            yours = caller is not None and reader in caller.ids
            if not owes(
                db, cache, thread, id, [reader, *(caller.ids if caller is not None and yours else ())]
            ):
                continue
            record = record or records.read_kind("signal", mailbox.line_of(db, id))
            if record is None:
                break
            sender = record["sender_identity"]
            if sender == reader:
                continue
            is_ours = caller is not None and sender in caller.ids
            yield Wait(
                waiter=sender,
                waiter_name=sender_name_from(of_sessions, record) or sender,
                owes=reader,
                owes_name=names.get(reader) or reader,
                you=OWES if yours else WAITS if is_ours else None,
                what=ANSWER,
                text=title(record["message"]),
                wu_id=record.get("wu_id"),
                since=record["at"],
                id=id,
                thread_id=thread,
                next=message_frame.decide(record) if yours else [command("gitmem", "thread", thread)],
            )


def _of_tasks(store: Store, caller: Caller | None) -> Iterator[Wait]:
    """Yield who waits for what of a task."""
    db, now = store.db(), store.now()
    names = presence.names_by_reader(db)
    offers = db.execute(OFFERED, waiting_work.values_for(caller, now)) if caller is not None else ()
    offered = {str(id) for (id,) in offers}
    for task in stored_tasks.awaited(db, now, now - HANDOFF_MICROS):
        waiter, owes, what = _sides(task)
        step = "accept" if what == ACCEPTANCE else "take" if task.holder is None else "show"
        if waiter == owes:
            continue
        ours = caller.ids if caller is not None else []
        you = OWES if owes in ours or task.id in offered else WAITS if waiter in ours else None
        role = f"whoever is {task.role}" if task.role else "anybody"
        yield Wait(
            waiter=waiter,
            waiter_name=names.get(waiter) or waiter,
            owes=owes,
            owes_name=names.get(owes) or owes if owes else role,
            you=you,
            what=what,
            state=task.state,
            role=task.asked,
            is_held=bool(task.is_held),
            text=title(_question(db, task) or task.title),
            wu_id=task.unit,
            since=format_at(task.since),
            id=task.id,
            next=[command("gitmem", "task", step if you == OWES else "show", task.id)],
        )


def _sides(task: OpenTask) -> tuple[str, str | None, str]:
    """Return who waits, for whom, and for what."""
    if task.is_done:
        return task.holder or task.agent or task.caller, task.caller, ACCEPTANCE
    if task.state in WAITING and task.holder:
        return task.holder, task.caller, ANSWER
    return task.caller, task.holder or task.agent, HANDOFF if task.purpose == HANDOFF else TASK


def _question(db: sqlite3.Connection, task: OpenTask) -> str:
    """Return what the holder of a task asks; "" if it asks nothing."""
    if task.is_done or task.state not in WAITING:
        return ""
    folded = task_state.load_task(db, task.id)
    asked = task_state.question_of(folded) if folded is not None else None
    return asked.record.get("message") or "" if asked is not None else ""
