"""Brakes on delegations within delegations: the chain of a task, and why one may not be written or taken.

Writer and taker check the same, because an old or hostile writer checks nothing. The parent of a task is the last one of its chain. Chains
come from peers too: they may name unknown tasks, leave some out, form cycles, and be of any depth.
"""

from __future__ import annotations

from ..agents import presence
from ..agents.delivery import delivery_lock
from ..commit_message import sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..order.task import micros
from ..outcome import command
from . import LINKS_MAX, stored_tasks, task_rules, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store
    from .task_rules import Refusal


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
            above = stored_tasks.parent_of(db, above)
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
        UsageError: `finished-task`, `unknown-task` or another of `task_rules.resolve`.
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
    record = task_rules.record_of(db, parent)
    return [*(record.get("chain") or () if record is not None else ()), parent]


def only_held(db: sqlite3.Connection, caller: Caller) -> str | None:
    """Return the open task that the caller's session has taken, if it has exactly one."""
    found = stored_tasks.held_in(db, (caller.reader, caller.session_id))
    return found[0] if caller.session_id is not None and len(found) == 1 else None


def _enclosing(store: Store, within: str) -> str:
    """Return the id of the task that was named as the one within which another is written."""
    hint = f"The task that this one is within is the one named by `within`, else that in GITMEM_TASK; `{NONE}` means none."
    try:
        task = task_rules.require(store, within, writing=True)
    except UsageError as error:
        error.hint = f"{hint} {error.hint}".strip()
        raise
    id = task.record["task_id"]
    if task.is_finished:
        raise UsageError(
            f"Nothing more can be written within {id}: it is finished: {task_rules.state_text(task)}. Nothing was written.",
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
