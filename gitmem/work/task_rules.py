"""What a writer may do with a task, by what it knows: why not, as a code and a sentence, or None if it may.

The fold survives writers that break these rules, because two clones can't ask each other first.

Delegations within delegations have brakes, which writer and taker check alike, because an old or hostile writer checks nothing. The parent of
a task is the last one of its chain. Chains come from peers too: they may name unknown tasks, leave some out, form cycles, and be of any depth.
"""

from __future__ import annotations

from ..agents import presence
from ..agents.delivery import delivery_lock
from ..commit_message import sanitize
from ..errors import UsageError
from ..index.resolve_id import beginning, choose
from ..log.lines import format_at
from ..order.task import HANDOFF, SUBMITTED, WAITING, may_decide, micros
from ..outcome import command
from . import LINKS_MAX, ONCE, stored_tasks, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, Sender, TaskEvent
    from ..records.record_types import TaskRecord
    from ..store import Store

    Refusal = tuple[str, str]


TAKEN = "taken-task"  # the code where somebody else has it
UNCONFIRMED = ", not yet accepted"
# For people; other states of A2A are words already.
WORDS = {"submitted": "not taken", "input-required": "asks a question", "auth-required": "asks for access"}
TAKES_MAX = 3  # takes that lapsed or failed, after which only a new task goes on


def state_text(task: FoldedTask) -> str:
    """Return the state for people, see `text_of`; of a closed task also by whom."""
    if task.decided_by == "close" and task.close is not None:
        return f"{task.state} (closed by {task.close.sender[0]})"
    return text_of(task.record["purpose"], task.state, task.decided_by, held=bool(task.held))


def text_of(purpose: str, state: str, decided_by: str | None, *, held: bool = False) -> str:
    """Return a state for people: `done, not yet accepted` until its caller has decided, of a handoff, which nobody confirms, `accepted`.

    Args:
        held: Whether somebody has it, who got an answer if nobody has begun it anew.
    """
    if held and state == SUBMITTED:
        return "answered"
    if purpose == HANDOFF:
        return "accepted" if state == "completed" else WORDS.get(state, state)
    if decided_by == "status":
        return f"{'done' if state == 'completed' else state}{UNCONFIRMED}"
    return WORDS.get(state, state)


def may_cancel(store: Store, task: FoldedTask, caller: Caller) -> bool:
    """Return whether somebody may ask for a cancellation; also who had no key, and so no address, before this task."""
    return may_decide(store.own_address(caller.reader), task.caller[0])


def may_cancel_at_once(task: FoldedTask) -> bool:
    """Return whether a cancellation needs nobody's agreement: nobody has the task, and each event that its events name is here."""
    return not task.held and _has_its_past(task)


def _has_its_past(task: FoldedTask) -> bool:
    """Return whether each event that an event of the task names is here: else one of them may be a take."""
    return all(each.named <= task.events.keys() for each in task.events.values())


def own_take(task: FoldedTask, sender: Sender) -> TaskEvent | None:
    """Return the take under which a writer works: valid, not released, and not followed by another one."""
    return next((each for each in task.held if each.sender == sender), None)


def left_take(task: FoldedTask, sender: Sender) -> TaskEvent | None:
    """Return the take of another session of a writer's identity, which the writer may release; None if it has one of its own."""
    held = [] if task.is_finished or own_take(task, sender) is not None else task.held
    return next((each for each in held if each.sender[0] == sender[0]), None)


def _taker(take: TaskEvent, sender: Sender) -> str:
    """Return who has taken a task, in words for a writer."""
    return f"another session of {sender[0]}" if take.sender[0] == sender[0] else take.sender[0]


def is_once(task: FoldedTask) -> bool:
    """Return whether a task may begin only once."""
    return task.record.get("semantics") == ONCE


def finished(task: FoldedTask) -> Refusal | None:
    """Return why nothing more may be written of a task that has an outcome."""
    return ("finished-task", f"is finished: {state_text(task)}") if task.is_finished else None


def take(task: FoldedTask, sender: Sender, addresses: Collection[str], now: int) -> Refusal | None:
    """Return why a caller may not take a task now.

    Args:
        addresses: The names that tasks may address the caller by.
        now: The caller's clock, in microseconds.
    """
    record = task.record
    agent, deadline = record.get("agent"), record.get("deadline")
    failed = task.outcome.take if may_be_retried(task) and task.outcome is not None else None
    if failed is None and (why := finished(task)) is not None:
        return why
    if task.is_replaced:
        return "replaced-task", f"was replaced by {', '.join(task.replaced_by)}"
    if agent is not None and agent not in addresses:
        return "not-for-you", f"is for {agent}"
    if task.cancels:
        return "canceled-task", "is being canceled by its caller"
    if deadline is not None and deadline <= format_at(now):
        return "past-deadline", f"had to begin before {deadline}"
    over = [
        each for each in task.takes if each not in task.held or each.id == failed or task.lease(each) <= now
    ]
    released = [each for each in over if task.is_released(each)]
    for each in task.held:
        if each.sender != sender and each.id != failed and task.lease(each) > now:
            by, until = _taker(each, sender), format_at(task.lease(each))
            return TAKEN, f"was taken by {by}, who has it until {until}"
    if is_once(task) and task.takes:
        return "begun-task", f"may begin only once, and was taken by {task.takes[0].sender[0]}"
    if len(over) - len(released) >= TAKES_MAX:
        return "too-many-takes", f"was taken {len(over)} times without a result"
    return None


def may_be_retried(task: FoldedTask) -> bool:
    """Return whether a task failed in a way that allows another take, and its caller has not decided."""
    return (
        task.decided_by == "status"
        and task.outcome is not None
        and task.outcome.is_retryable
        and len(task.takes) < TAKES_MAX
    )


def is_over(task: FoldedTask, now: int) -> bool:
    """Return whether a task has an end after which nobody tries again."""
    return task.is_finished and not (may_be_retried(task) and launch(task, now) is None)


def launch(task: FoldedTask, now: int) -> Refusal | None:
    """Return why no worker may be launched for a task now: because nobody could take it."""
    agent = task.record.get("agent")
    return take(task, ("", None), [agent] if agent is not None else (), now)


def accept(task: FoldedTask, sender: Sender, addresses: Collection[str], now: int) -> Refusal | None:
    """Return why a caller may not accept a handoff: a handoff is a task whose take accepts it."""
    if sender == task.caller:
        return "own-handoff", "was offered by this session itself; another agent accepts it"
    if task.takes:
        return TAKEN, f"was accepted by {task.takes[0].sender[0]}"
    return take(task, sender, addresses, now)


def report(task: FoldedTask, sender: Sender) -> Refusal | None:
    """Return why a caller may not report its work, renew its lease or release its take."""
    if task.is_finished or own_take(task, sender) is not None:
        return finished(task)
    holder = task.holder
    if holder is None:
        return "not-the-holder", "has no holder"
    return "not-the-holder", f"is held by {_taker(holder, sender)}, who took it at {holder.record['at']}"


def refuse(task: FoldedTask, sender: Sender, addresses: Collection[str]) -> Refusal | None:
    """Return why a caller may not reject a task; one for a single agent not while another session has it."""
    agent, holder = task.record.get("agent"), task.holder
    if task.is_finished:
        return "finished-task", f"is finished: {state_text(task)}"
    if agent is not None and agent not in addresses:
        return "not-for-you", f"is for {agent}"
    if agent is not None and holder is not None and own_take(task, sender) is None:
        by = _taker(holder, sender)
        return TAKEN, f"was taken by {by}, and can be rejected once that has given it back"
    return None


def seal(task: FoldedTask, sender: Sender) -> Refusal | None:
    """Return why a caller may not seal an outcome."""
    if sender != task.caller:
        return "not-the-caller", f"can only be accepted by the session that wrote it, of {task.caller[0]}"
    if task.seal is not None:
        return "sealed-task", f"is sealed already: {task.state}"
    return None


def close(task: FoldedTask, sender: Sender) -> Refusal | None:
    """Return why somebody may not close a task in the place of its caller."""
    if task.seal is not None:
        return "sealed-task", f"is sealed already: {task.state}"
    if task.close is not None:
        return "closed-task", f"is closed already: {state_text(task)}"
    if not may_decide(sender[0], task.caller[0]):
        return "not-a-person", f"can only be closed by {task.caller[0]}, or by a person with its key"
    return withdraw(task)


def withdraw(task: FoldedTask) -> Refusal | None:
    """Return why a handoff may not be ended without its acceptance; None for other tasks."""
    if task.record["purpose"] != HANDOFF:
        return None
    if task.takes:
        return "accepted-handoff", f"was accepted by {task.takes[0].sender[0]}, which no close takes back"
    if not _has_its_past(task):
        return (
            "unknown-events",
            "has events that are not here yet, perhaps its acceptance; gitmem sync fetches them",
        )
    return None


def answered_by(task: FoldedTask, caller: Caller) -> str | None:
    """Return the command of `gitmem task` by which the caller says in its own words what is missing: `done` or `message`."""
    if task.is_finished:
        return None
    if own_take(task, (caller.reader, caller.session_id)) is not None:
        return "done"
    return "message" if task.caller[0] == caller.reader and task.state in WAITING else None


def steps(task: FoldedTask, caller: Caller, now: int, *, is_left: bool) -> list[str]:
    """Return the complete commands that the caller may give next."""
    sender = (caller.reader, caller.session_id)

    def step(word: str) -> str:
        return command("gitmem", "task", word, task.record["task_id"])

    if task.is_finished:
        return [step("accept")] if task.record["purpose"] != HANDOFF and seal(task, sender) is None else []
    if own_take(task, sender) is not None:
        return [step("release")] if task.cancels else []
    if is_left and take(task, sender, caller.ids, now) is not None:
        return [step("release")]
    if task.caller[0] == caller.reader:
        return [step("cancel")] if task.state not in WAITING else []
    return [step("take")] if take(task, sender, caller.ids, now) is None else []


def resolve(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the id that a text is, or of which it is the only beginning.

    Raises:
        UsageError: `unknown-task`, `ambiguous-task` or `short-id`.
    """
    found = beginning(db, "task", "task_id", text) if text.startswith("task-") else ()
    if found == {text}:
        return text
    lists = ("gitmem task list", "gitmem task list")
    return choose(text, found, "task", "task show", lists, writing=writing, noun="task")


def require(store: Store, text: str, *, writing: bool = False) -> FoldedTask:
    """Return the task that an id or its beginning names.

    Raises:
        UsageError: See `resolve`.
    """
    found = task_state.load_task(store.db(), resolve(store.db(), text, writing=writing))
    assert found is not None  # it has a row
    return found


def record_of(db: sqlite3.Connection, task_id: str) -> TaskRecord | None:
    """Return the record of a task, or None if the task is not here."""
    found = task_state.lowest_line(db, task_id)
    return found[1] if found is not None else None


def unit_of(db: sqlite3.Connection, task_id: str | None) -> str | None:
    """Return the work unit of a task; None if it has none, or is not here."""
    record = record_of(db, task_id) if task_id else None
    return record.get("wu_id") if record is not None else None


def is_left(store: Store, caller: Caller, task: FoldedTask) -> bool:
    """Return whether a session of the caller's identity that is over has a task; one that is live or unknown may be at work."""
    left = left_take(task, (caller.reader, caller.session_id))
    session = presence.get(store, left.sender[1] or "") if left is not None else None
    return session is not None and not session.is_current


CHAIN_MAX, WITHIN_ROOT_MAX = 5, 50
READ_MAX = 1_000  # tasks below a root that are read
DEPTH, CYCLE, QUOTA = "DEPTH", "CYCLE", "QUOTA"  # `error.code` of a rejection
NONE = "none"  # as the task within which another one is written: none
AGAIN = "again"  # in the payload of a task whose writer allows an agent twice in its chain


class Above:
    """The tasks within which a task is written, by its chain and by the chains of these.

    Attributes:
        root: The outermost one that is known; None without a chain.
        agents: Who wrote one of them.
        deadline: The first of their deadlines, in microseconds; None without one.
        is_deep: Whether there are more than `CHAIN_MAX`.
        is_ring: Whether one is within itself.
    """

    def __init__(self, db: sqlite3.Connection, chain: Sequence[str]) -> None:
        ids: list[str] = []
        above: str | None = chain[-1] if chain else None
        while above is not None and above not in ids and len(ids) <= CHAIN_MAX:
            ids.append(above)
            row = stored_tasks.row_of(db, above, "parent")
            above = row[0] if row is not None else None
        self.root = ids[-1] if ids else None
        self.is_ring = above in ids
        self.is_deep = max(len(chain), len(ids)) > CHAIN_MAX
        rows = stored_tasks.callers_of(db, {*ids, *chain[:CHAIN_MAX]})
        self.agents = {caller for caller, _ in rows}
        self.deadline: int | None = min((at for _, at in rows if at is not None), default=None)


def of_new(store: Store, caller: Caller, within: str | None) -> list[str]:
    """Return the chain of a new task.

    Args:
        within: The task that its writer works on, or `NONE`; by default the one open task that the caller's session has, if it has
            exactly one.

    Raises:
        UsageError: `finished-task`, `unknown-task` or another of `resolve`.
    """
    if within == NONE:
        return []
    db = store.db()
    if within:
        parent = _enclosing(store, within)
    else:
        held = only_held(db, caller)
        if held is None:
            return []
        parent = held
    record = record_of(db, parent)
    return [*(record.get("chain") or () if record is not None else ()), parent]


def only_held(db: sqlite3.Connection, caller: Caller) -> str | None:
    """Return the open task that the caller's session has taken, if it has exactly one."""
    found = stored_tasks.held_in(db, (caller.reader, caller.session_id))
    return found[0] if caller.session_id is not None and len(found) == 1 else None


def _enclosing(store: Store, within: str) -> str:
    """Return the id of the task that was named as the one within which another is written."""
    hint = f"The task that this one is within is the one named by `within`, else that in GITMEM_TASK; `{NONE}` means none."
    try:
        task = require(store, within, writing=True)
    except UsageError as error:
        error.hint = f"{hint} {error.hint}".strip()
        raise
    id = task.record["task_id"]
    if task.is_finished:
        raise UsageError(
            f"Nothing more can be written within {id}: it is finished: {state_text(task)}. Nothing was written.",
            hint=hint,
            code="finished-task",
            next=[command("gitmem", "task", "show", id)],
        )
    return id


def check_new(
    store: Store,
    caller: Caller,
    chain: Sequence[str],
    agent: str | None,
    deadline: int | None,
    *,
    again: bool,
) -> int | None:
    """Return the deadline of a new task: by default the first one of its chain.

    Args:
        agent: Its addressee.
        deadline: Its deadline, if one was stated.
        again: Whether an agent may be in its chain twice.

    Raises:
        UsageError: It may not be written: `chain-depth`, `chain-cycle`, `chain-quota` or `late-deadline`.
    """
    if not chain:
        return deadline
    db = store.db()
    above = Above(db, chain)
    session = presence.get(store, agent) if agent is not None else None
    to = session.reader if session is not None else agent
    why = _why(above, to, above.agents | {caller.reader}, again=again)
    if (
        why is None
        and above.root is not None
        and len(stored_tasks.below(db, above.root, READ_MAX)) >= WITHIN_ROOT_MAX
    ):
        why = QUOTA, f"{above.root} has {WITHIN_ROOT_MAX} tasks within it already; no more are allowed"
    if why is not None:
        code, sentence = why
        raise UsageError(
            f"{sentence}. Nothing was written.",
            hint="--again allows it." if code == CYCLE and not above.is_ring else "Do it yourself, or ask the writer of the outermost task.",
            code=f"chain-{code.lower()}",
            next=[command("gitmem", "task", "list", above.root)] if above.root else [],
        )  # fmt: skip
    first = above.deadline
    if first is not None and (first <= store.now() or (deadline or 0) > first):
        raise UsageError(
            f"A task within {chain[-1]} begins before {format_at(first)} or never: that is the first deadline of its chain. Nothing was written.",
            hint="Leave --deadline out to use that one, if it is not over.",
            code="late-deadline",
            next=[command("gitmem", "task", "list", chain[0])],
        )
    return deadline or first


def refuse_taking(store: Store, task: FoldedTask, taker: str) -> Refusal | None:
    """Return why nobody, or not this taker, should begin a task: DEPTH, CYCLE or QUOTA, and a sentence."""
    chain = list(task.record.get("chain") or ())
    if not chain:
        return None
    db = store.db()
    above, id = Above(db, chain), task.record["task_id"]
    if id in chain or above.root == id:
        above.is_ring = True
    again = task.record.get("payload", {}).get(AGAIN) is True
    why = _why(above, taker, above.agents | {task.caller[0]}, again=again)
    below = stored_tasks.below(db, above.root, READ_MAX) if above.root is not None else ()
    if why is None and above.root is not None and id not in below[:WITHIN_ROOT_MAX]:
        why = QUOTA, f"{above.root} has more than {WITHIN_ROOT_MAX} tasks within it"
    return why


def first_deadline(store: Store, task: FoldedTask) -> int | None:
    """Return the first deadline of the tasks within which one was written."""
    chain = task.record.get("chain") or ()
    return Above(store.db(), chain).deadline if chain else None


def deadline(store: Store, task: FoldedTask) -> int | None:
    """Return the first of the deadlines of a task and of those within which it was written, in microseconds."""
    own = task.record.get("deadline")
    every = [micros(own) if own is not None else None, first_deadline(store, task)]
    return min((each for each in every if each is not None), default=None)


def _why(above: Above, agent: str | None, agents: set[str], *, again: bool) -> Refusal | None:
    if above.is_ring:
        return CYCLE, f"{above.root} is, by its chain, within itself"
    if above.is_deep:
        return DEPTH, f"A task is within at most {CHAIN_MAX} others, and this one is within more"
    if agent is not None and agent in agents and not again:
        return CYCLE, f"{sanitize(agent)} is in the chain of this task already"
    return None


def past_deadline(store: Store, task: FoldedTask) -> Refusal | None:
    """Return why a task may not begin any more: a deadline of the tasks within which it was written."""
    first = first_deadline(store, task)
    if first is None or first > store.now():
        return None
    return "past-deadline", f"had to begin before {format_at(first)}, by a task within which it was written"


def notes_on_blockers(store: Store, task: FoldedTask) -> list[str]:
    """Return sentences about the tasks that must be finished before an open one, and about those that were, without success."""
    if task.is_finished:
        return []
    ids = task.record.get("blocked_by") or ()
    found = [
        each for each in (task_state.load_task(store.db(), id) for id in ids[:LINKS_MAX]) if each is not None
    ]
    still = [each.record["task_id"] for each in found if not (each.is_finished or each.is_replaced)]
    notes = [f"It waits for {', '.join(still)}."] if still else []
    ended = [each for each in found if each.is_finished and each.state != "completed"]
    return [
        *notes,
        *(f"{each.record['task_id']}, which it waited for, ended as {each.state}." for each in ended),
    ]


OPEN_OF_CALLER_MAX, OPEN_FOR_AGENT_MAX = 20, 100
LOCK, LOCK_WAIT_SECONDS = "new tasks", 3.0


def turn_to_write(store: Store, *, is_limited: bool = True) -> delivery_lock:
    """Return the lock under which open tasks are counted and a new one is recorded, one process of the clone at a time.

    It is one lock for all callers, because the limits of an addressee and of a chain count the tasks of all. Who gets no turn
    in time goes on: a process that was stopped must not keep others from delegating. While entries are collected nobody waits: a
    call has taken the lock before, and of a batch the limits hold when its entries are collected.

    Args:
        is_limited: Whether anything is counted; else nobody waits.
    """
    waits = is_limited and store.collecting is None
    return delivery_lock(store, LOCK, wait_seconds=LOCK_WAIT_SECONDS if waits else None)


def refuse_too_many(store: Store, caller: Caller, agent: str | None) -> None:
    """Raise UsageError if the caller, or the addressee, has so many open tasks that something runs away.

    Only tasks of sessions of this clone count: with others a peer could keep anybody from delegating. Tasks that nobody took before
    their deadline do not.
    """
    for column, who, most in (
        ("caller", caller.reader, OPEN_OF_CALLER_MAX),
        ("agent", agent, OPEN_FOR_AGENT_MAX),
    ):
        if who is None:
            continue
        count = stored_tasks.count_open(store.db(), column, who, caller.session_id, store.now())
        if count >= most:
            raise UsageError(
                f"{sanitize(who)} has {count} open tasks {'of its own' if column == 'caller' else 'to do'}; "
                f"at most {most} are allowed. Nothing was written.",
                hint="Cancel or finish some of them first.",
                code="too-many-open",
                next=["gitmem task list --open"],
            )


def over_limit(db: sqlite3.Connection, task: FoldedTask) -> Refusal | None:
    """Return why a worker rejects a task whose writer has not checked the limit of its open tasks; None within it.

    Those count that its session wrote before and that are open now, by the time of the task and not by a clock here. Whoever reads the task has read
    what its writer knew, so nobody who has checked is rejected. The limit of an addressee is one of each writing clone, which no record names.
    """
    record = task.record
    count = stored_tasks.count_before(db, task.caller, micros(record["at"]), record["task_id"])
    if count < OPEN_OF_CALLER_MAX:
        return None
    return QUOTA, f"{sanitize(task.caller[0])} has more than {OPEN_OF_CALLER_MAX} open tasks of its own"
