"""What a handoff has: the checkpoint, tasks, claims and threads that it names, as they are now; and its acceptance.

The take of a handoff is also a take of its tasks, its claims move, and a signal tells the giver.
"""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence, waiting_work
from ..agents.delivery import delivery_lock
from ..agents.descriptions import sender_name
from ..commit_message import cut, sanitize
from ..log.lines import LAST_MICROS, format_at
from ..memory import stored_nodes
from ..memory.node_tables import PREFIX
from ..order.task import HANDOFF, sender_of
from ..outcome import Outcome, command
from ..text.sanitize import SEPARATOR, first_of
from . import (
    HANDOFF_MICROS,
    HANDOFFS_MAX,
    claim_work,
    claims,
    stored_tasks,
    tables,
    task_decisions,
    task_list,
    task_records,
    task_roles,
    task_rules,
    task_state,
    task_work,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Unpack

    from ..agents.caller import Caller
    from ..agents.descriptions import SessionRow
    from ..agents.roster import Roster
    from ..order.task import FoldedTask, Sender
    from ..records.record_types import TaskRecord
    from ..store import Store
    from .claim_work import MovedClaims
    from .task_list import TaskDetail
    from .task_records import TakeFacts, TaskChange

    Line = tuple[str, bytes]


TEXT_MAX = 4 * 1024  # characters of each text of a checkpoint
TITLE_MAX = 200  # characters of the first line of a signal
WORDS_MAX = 40  # characters of each text in one line about a handoff
NAMED = 2  # things of each kind in such a line
MISSING = "is not in this log: `gitmem sync` may fetch it"


class Checkpoint(Outcome):
    """The giver's last checkpoint; long texts are cut."""

    def __init__(self, id: str, created: int, content: str, metadata: Mapping[str, Any]) -> None:
        texts = [
            content.removeprefix(PREFIX),
            *(str(metadata.get(name) or "") for name in ("progress", "nextSteps")),
        ]
        self.id = id
        self.created_at = format_at(created)
        self.content, self.progress, self.next_steps = (cut(each, TEXT_MAX) for each in texts)
        self.is_cut = any(len(each) > TEXT_MAX for each in texts)
        self.next = [command("gitmem", "show", id)]


class HandedTask(Outcome):
    """A task; `take` is the giver's take of it."""

    task_id: str
    take: str
    title: str
    state: str
    wu_id: str | None


class HandedClaim(Outcome):
    """A claim, with its paths, and its end in ISO 8601."""

    claim_id: str
    paths: Sequence[str]
    until: str
    mode: str


class HandedThread(Outcome):
    """An open thread: the first line of its last signal, its sender, and the command that shows it."""

    thread_id: str
    signal_id: str
    sender: str
    intent: str
    message: str
    next: list[str]


class LeftOut(Outcome):
    """Something that a handoff does not have, and why."""

    id: str
    reason: str


class HandoffContent(Outcome):
    """What a handoff names, as far as this clone has it; `left_out` names the rest."""

    checkpoint: Checkpoint | None = None
    tasks: list[HandedTask] = []
    claims: list[HandedClaim] = []
    threads: list[HandedThread] = []
    left_out: list[LeftOut] = []

    def text(self) -> str:
        """Return what it has in one line, the first ones of each kind by name; texts of peers are in it. Readers may cut its end."""
        tasks = [
            f"{each.task_id}{f' ({each.wu_id})' if each.wu_id else ''} {cut(each.title, WORDS_MAX)}"
            for each in self.tasks
        ]
        paths = [path for each in self.claims for path in each.paths]
        parts = [first_of(tasks, NAMED)] if tasks else []
        parts += [f"claims {first_of(paths, NAMED)}"] if paths else []
        node = self.checkpoint
        if node is not None:
            words = cut(node.content.strip().partition("\n")[0], WORDS_MAX)
            parts.append(f"checkpoint {node.id} of {node.created_at[:10]}: {words}")
        if self.threads:
            parts.append(f"{len(self.threads)} thread{'' if len(self.threads) == 1 else 's'}")
        return SEPARATOR.join(parts)


def content_of(store: Store, record: Mapping[str, Any], giver: Sender | None = None) -> HandoffContent:
    """Return what a handoff names, of its record or of the options of a new one; of each kind the first 50.

    Args:
        giver: Whose the tasks and claims must be: those that somebody else has, or that have ended, are left out, as if it were accepted
            now. By default all are kept. Only the index is read: peers may have written any number of lines about each.
    """
    found = HandoffContent()
    _add_checkpoint(store, found, record.get("checkpoint"))
    _add_tasks(store, found, record, giver)
    _add_claims(store, found, record, giver)
    _add_threads(store, found, first(record.get("handoff_threads")))
    return found


def first(ids: Iterable[str] | None) -> list[str]:
    """Return the first ids of a list in a record, without repetitions: a peer may have written any number."""
    return list(dict.fromkeys(ids or ()))[:HANDOFFS_MAX]


def _add_tasks(store: Store, found: HandoffContent, record: Mapping[str, Any], giver: Sender | None) -> None:
    db = store.db()
    for task_id, take in task_state.handed_over({**record, "purpose": "handoff"}).items():  # type: ignore[typeddict-item]
        row = stored_tasks.row_of(
            db, task_id, "title, state, unit, decided_by, holder, holder_session, conflict"
        )
        if row is None:
            found.left_out.append(LeftOut(task_id, MISSING))
            continue
        title, state, unit, decided_by, *holder, conflict = row
        if giver is not None and decided_by is not None:
            found.left_out.append(LeftOut(task_id, f"is finished: {state}"))
        elif giver is not None and not conflict and tuple(holder) != giver:
            found.left_out.append(
                LeftOut(task_id, "was given back" if holder[0] is None else "is somebody else's now")
            )
        else:
            found.tasks.append(HandedTask(task_id, take, title, state, unit))


def _add_claims(store: Store, found: HandoffContent, record: Mapping[str, Any], giver: Sender | None) -> None:
    db = store.db()
    for claim_id in first(record.get("handoff_claims")):
        row = claims.row_of(db, claim_id)
        begun = records.read_kind("claim", row[0].encode()) if row is not None else None
        if row is None or begun is None:
            found.left_out.append(LeftOut(claim_id, MISSING))
            continue
        _, owner, session, until, released = row
        why = (
            claim_work.why_not_moved(
                store, (owner, session), giver, until, begun.get("task_id"), is_released=bool(released)
            )
            if giver
            else None
        )
        if why is not None:
            found.left_out.append(LeftOut(claim_id, why))
        else:
            found.claims.append(HandedClaim(claim_id, begun["paths"], format_at(until), begun["mode"]))


def _add_checkpoint(store: Store, found: HandoffContent, id: str | None) -> None:
    if id is None:
        return
    node = next(iter(stored_nodes.load(store.db(), [id])), None)
    if node is None:
        found.left_out.append(LeftOut(id, MISSING))
    elif node.sensitive or node.is_hidden:
        found.left_out.append(LeftOut(id, "is sensitive" if node.sensitive else f"is {node.status}"))
    else:
        found.checkpoint = Checkpoint(id, node.created, node.content, node.metadata)


def _add_threads(store: Store, found: HandoffContent, ids: Iterable[str]) -> None:
    db = store.db()
    for thread_id in ids:
        last = mailbox.signals(db, "s.thread = ?", (thread_id,), "l.body DESC", 1)
        if not last:
            found.left_out.append(LeftOut(thread_id, MISSING))
        for record, _ in last:
            sender = sanitize(sender_name(store, record) or record["sender_identity"])
            title = cut(record["message"].strip().partition("\n")[0], TITLE_MAX)
            show = [command("gitmem", "thread", thread_id)]
            found.threads.append(
                HandedThread(thread_id, record["signal_id"], sender, record["intent"], title, show)
            )


def counts(record: Mapping[str, Any]) -> str:
    """Return how many tasks, claims and threads a handoff names, such as `2 tasks, 1 claim`; "" for none."""
    named = ((len(record.get(f"handoff_{word}s") or ()), word) for word in ("task", "claim", "thread"))
    found = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in named if count]
    return ", ".join(found)


WAITING, RETURNED = "waiting", "returned"
LISTED = 20
NAMED_WHOLE = 1  # offers whose text names all that they have
RETURNED_MICROS = 7 * 24 * 3600 * 1_000_000  # for how long a giver is told that nobody has answered
_ADDRESSEE = (
    "(t.agent IN (:reader, :session) OR (t.agent IS NULL AND t.target_role IN (:role, :lifecycle)"
    f" AND t.caller_session IS NOT :session AND {waiting_work.NOT_REFUSED})) AND t.created > :open"
)


class HandoffRow(Outcome):
    """A handoff without an answer.

    Attributes:
        status: `waiting`, or `returned` after 24 hours.
        giver: The agent who hands over; `giver_name` and `to` are names for people.
        agent: Whom it is for; None for one that is for whoever has `target_role`.
        has: How much it has, after its work unit.
        until: The end of the 24 hours in ISO 8601.
        text: A sentence about it; `next` has the command that answers it, or that withdraws it.
    """

    def __init__(self, record: TaskRecord, title: str, created: int, now: int, to: str) -> None:
        self.task_id = record["task_id"]
        self.title = title
        self.status = WAITING if created + HANDOFF_MICROS > now else RETURNED
        self.giver = record["sender_identity"]
        self.giver_session = record.get("sender_session") or None
        self.giver_name = record.get("sender_name") or self.giver
        self.agent = record.get("agent")
        self.target_role = record.get("target_role")
        self.to = to
        self.wu_id = record.get("wu_id")
        self.tasks = len(record.get("handoff_tasks") or ())
        self.claims = len(record.get("handoff_claims") or ())
        self.threads = len(record.get("handoff_threads") or ())
        self.has = SEPARATOR.join(filter(None, (sanitize(self.wu_id or ""), counts(record)))) or "the work"
        self.created_at = format_at(created)
        self.until = format_at(min(created + HANDOFF_MICROS, LAST_MICROS))
        self.text = ""
        self.next: list[str] = []

    def is_for(self, one: SessionRow) -> bool:
        """Return whether a session may accept it."""
        if self.agent is not None:
            return self.agent in (one["reader_identity"], one["session_id"])
        role = one["role"] or ""  # a wanted role without a specialty means each of them
        return one["session_id"] != self.giver_session and self.target_role in (role, role.partition("/")[0])


class VoidAcceptance(Outcome):
    """A task that the caller took by accepting a handoff, although it had ended: its caller sealed the giver's result."""

    task_id: str
    handoff_id: str
    text: str
    next: list[str]


class HandoffsOf(Outcome):
    """The handoffs of one caller.

    Attributes:
        offered: Those that others offer to it.
        given: Its own ones without an answer.
        void: The tasks of those that it accepted in the last two days, of which the acceptance does not count.
    """

    offered: Sequence[HandoffRow]
    given: Sequence[HandoffRow]
    void: Sequence[VoidAcceptance]


def of_caller(store: Store, caller: Caller, *, limit: int = LISTED) -> HandoffsOf:
    """Return the handoffs that a caller may accept, and its own ones that wait or were returned, the latest first."""
    db, now = store.db(), store.now()
    role, lifecycle = task_roles.addressed_by(caller)
    values = {
        "reader": caller.reader, "session": caller.session_id, "role": role, "lifecycle": lifecycle, "open": now - HANDOFF_MICROS,
    }  # fmt: skip
    offered = _rows(store, _ADDRESSEE, values, HANDOFF_MICROS, limit)
    given = _rows(store, "+t.caller = :reader", values, RETURNED_MICROS, limit)
    for at, each in enumerate(offered):
        has = _named(store, each) if at < NAMED_WHOLE else each.has
        each.next = [command("gitmem", "task", word, each.task_id) for word in ("show", "take")]
        who = f"{sanitize(each.giver_name)} offers ({each.next[0]})"  # first: readers may cut the end
        each.text = f"{who}: {has}; next steps: {sanitize(each.title)}"
    for each in given:
        answer = "waiting" if each.status == WAITING else "returned: nobody has answered in 24 hours"
        each.text = f"You hand over {each.has} to {sanitize(each.to)}, {answer}: {sanitize(each.title)}"
        each.next = [command("gitmem", "task", "cancel", each.task_id)]
    return HandoffsOf(offered, given, _void(db, now, caller, limit))


def waiting(store: Store, limit: int = LISTED) -> list[HandoffRow]:
    """Return the handoffs of all agents that wait for an answer, the latest first."""
    return _rows(store, "1", {}, HANDOFF_MICROS, limit)


def waiting_of(store: Store, caller: Caller) -> list[HandoffRow]:
    """Return the handoffs of a caller's session that wait for an answer."""
    given = of_caller(store, caller).given
    return [each for each in given if each.status == WAITING and each.giver_session == caller.session_id]


def add_to(store: Store, found: Roster) -> Roster:
    """Add to each session of a roster sentences about the handoffs that it gives, or may accept; return the roster."""
    rows = waiting(store)
    for one in found.sessions:
        given = [
            f"handed over to {sanitize(each.to)}, {WAITING} ({each.task_id})"
            for each in rows
            if each.giver_session == one["session_id"]
        ]
        offered = [
            f"offered by {sanitize(each.giver_name)} ({each.task_id})" for each in rows if each.is_for(one)
        ]
        one["handoffs"] = [*given, *offered]
    return found


def _void(db: sqlite3.Connection, now: int, caller: Caller, limit: int) -> list[VoidAcceptance]:
    sender = caller.reader, caller.session_id
    values = {**waiting_work.values_for(caller, now), "most": limit}
    found = []
    for task_id, handoff_id in db.execute(f"{waiting_work.VOID} ORDER BY 1 LIMIT :most", values).fetchall():
        task = task_state.load_task(db, task_id)
        if task is not None and any(each.replaces and each.sender == sender for each in task.void):
            decided = sanitize(task.record.get("sender_name") or task.caller[0])
            text = f"{task_id} is not yours: {decided} had decided it ({task.state}) before you accepted {handoff_id}."
            show = [command("gitmem", "task", "show", task_id)]
            found.append(VoidAcceptance(task_id, handoff_id, text, show))
    return found


def _rows(
    store: Store, whose: str, values: dict[str, str | int | None], age: int, limit: int
) -> list[HandoffRow]:
    db, now = store.db(), store.now()
    rows = stored_tasks.open_handoffs(db, whose, values, now - age, limit)
    names = presence.names_by_reader(db)
    found = []
    for _, created, title, body in rows:
        record = records.read_kind("task", body.encode())
        if record is not None:
            agent = record.get("agent")
            to = (names.get(agent) or agent) if agent else f"role:{record.get('target_role')}"
            found.append(HandoffRow(record, title, created, now, to))
    return found


def _named(store: Store, row: HandoffRow) -> str:
    """Return what a handoff has: ids, titles, paths and the first words of the checkpoint. What the giver no longer has is left out."""
    record = task_rules.record_of(store.db(), row.task_id)
    assert record is not None  # it has a row
    text = content_of(store, record, sender_of(record)).text()
    return SEPARATOR.join(sanitize(each) for each in (row.wu_id, text) if each) or row.has


def show_handoff(store: Store, task_id: str, caller: Caller | None = None) -> TaskDetail:
    """Return a task as `task_list.show` does, after the caller's session has given up what it has to; of a handoff also what it has.

    Raises:
        UsageError: No task, or several tasks, have this id.
    """
    if caller is not None:
        task_decisions.give_up_lost(store, caller)
    task = task_rules.require(store, task_id)
    found = task_list.show(store, task.record["task_id"], caller)
    if not task.is_finished and task_decisions.is_fenced(store, task):
        found.warnings.append(task_decisions.BEGUN)
    if task.record["purpose"] != HANDOFF:
        return found
    if task.takes:
        found.handoff = given_to(store, task, task.takes[0].id)
    elif not task.is_finished:
        found.handoff = content_of(store, task.record, task.caller)
    return found


def given_to(
    store: Store, handoff: FoldedTask, take_id: str, moved: MovedClaims | None = None
) -> HandoffContent:
    """Return what the taker of a handoff has; what it did not get is left out, with the reason.

    Args:
        take_id: The take with which it accepted.
        moved: The claims that move with it; by default they have moved before.
    """
    found = content_of(store, handoff.record)
    got = []
    cache: dict[str, FoldedTask | None] = {}
    for each in found.tasks:
        task = task_state.load_task(store.db(), each.task_id, handoffs=cache)
        if task is not None and any(held.id == take_id for held in task.held):
            got.append(each)
        else:
            found.left_out.append(LeftOut(each.task_id, _why_not_taken(task, each.take, handoff)))
    found.tasks = got
    if moved is not None:
        found.claims = [
            HandedClaim(new, paths, format_at(until), mode) for _, new, paths, until, mode in moved.moved
        ]
        for id, why in moved.kept:
            if not any(each.id == id for each in found.left_out):
                found.left_out.append(LeftOut(id, why))
    else:
        _keep_moved(store, handoff, found)
    return found


def _keep_moved(store: Store, handoff: FoldedTask, found: HandoffContent) -> None:
    """Leave out the claims that the acceptance of a handoff did not release."""
    reason = claim_work.reason_of_move(handoff.record["task_id"])
    kept = []
    for each in found.claims:
        claim = tables.folded_claim(store.db(), each.claim_id)
        if claim is not None and claim.released is not None and claim.released.get("reason") == reason:
            kept.append(each)
        else:
            found.left_out.append(LeftOut(each.claim_id, "did not move"))
    found.claims = kept


def _why_not_taken(task: FoldedTask | None, given: str, handoff: FoldedTask) -> str:
    """Return why the acceptance of a handoff is not a take of one of its tasks."""
    if task is None:
        return MISSING
    if task.is_finished:
        return f"is finished: {task.state}"
    take = task.events.get(given)
    if take is None or take.event != "take" or take.sender != handoff.caller:
        return "was not taken by the giver"
    return "is somebody else's now"


def take_handoff(
    store: Store, caller: Caller, task_id: str, *, lease: int | None = None, **facts: Unpack[TakeFacts]
) -> TaskChange:
    """Take a task as `task_work.take` does, or extend the time of one that the caller has; of a handoff accept it. Accepting it again returns what it has.

    Args:
        lease: For how long, in microseconds; of a handoff for each of its tasks.
        facts: See `task_work.take`.

    Raises:
        GateError: Somebody else has it. Nothing was written.
        UsageError: It can't be taken. Nothing was written.
        StoreError: It can't be recorded.
    """
    named = task_rules.resolve(store.db(), task_id, writing=True)
    record = task_rules.record_of(store.db(), named)
    if record is None or record["purpose"] != HANDOFF:
        found = task_work.take(store, caller, named, lease=lease, **facts)
        return found if found.recorded else task_work.renew(store, caller, named)
    return _accept(store, caller, named, lease, facts)


def _accept(store: Store, caller: Caller, named: str, lease: int | None, facts: TakeFacts) -> TaskChange:
    task = task_rules.require(store, named, writing=True)
    sender = task_work.sender_of(caller)
    mine = next((each for each in task.takes if each.sender == sender), None)
    if mine is not None:
        found = task_work.unchanged(task, mine)
        found.handoff = given = given_to(store, task, mine.id)
        found.next = _next_steps(given, named)
        found.warnings = ["You have accepted this handoff already. Nothing was written."]
        return found
    moved: list[MovedClaims] = []

    def beside(handoff: FoldedTask, take_id: str, _: bytes) -> Sequence[Line]:
        given = first(handoff.record.get("handoff_claims"))
        moved.append(claim_work.move_claims(store, caller, handoff.caller, given, named))
        done: Any = {"take": take_id, "state": "completed", "message": "Accepted."}
        end = task_records.event_line(store, caller, handoff, "status", done, more_seen=[take_id])[1]
        return [end, *moved[0].lines]

    with delivery_lock(store, claim_work.LOCK, wait_seconds=claim_work.LOCK_WAIT_SECONDS):
        found = task_work.take(store, caller, named, lease=lease, beside=beside, **facts)
    found.handoff = given = given_to(store, task, found.event_id, moved[0])
    found.next = _next_steps(given, named)
    return found


def _next_steps(given: HandoffContent, handoff_id: str) -> list[str]:
    """Return the commands that show what a taker has now."""
    found = [*(each.next[0] for each in given.threads[:2]), command("gitmem", "task", "show", handoff_id)]
    if given.tasks:
        found.insert(0, command("gitmem", "task", "show", given.tasks[0].task_id))
    return found
