"""Tasks as they are: their lines in the index, folded, and the rows that are made of them."""

from __future__ import annotations

from itertools import starmap

from .. import records
from ..agents.descriptors import ACTUAL, compare_fields, role_text
from ..index import entities
from ..index.entities import first_ones, in_turn, rounds
from ..log.lines import format_at
from ..order.task import (
    DELEGATION,
    HANDOFF,
    TERMINAL,
    WAITING,
    FoldedTask,
    TaskEvent,
    is_by,
    may_decide,
    micros,
    sender_of,
)
from ..records.ids import unit_key
from ..records.lines import as_json
from ..text.strict_json import json_list
from . import ACCEPTANCES_MAX, HANDOFFS_MAX, LINKS_MAX, ONCE, READ_MAX
from .tables import TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from ..index.entities import LineRow, Lines, Rows
    from ..order.task import Sender
    from ..records.record_types import TaskRecord

    Event = TypeVar("Event", TaskEvent, "EventRow")
    Handoffs = dict[str, FoldedTask | None]
    Value = str | int | None

_TASK = (
    "SELECT l.id, l.body FROM entity_line e JOIN line l ON l.id = e.line"
    " WHERE e.kind = 'task' AND e.id = ? AND e.event = 'task' ORDER BY l.body LIMIT 1"
)
# Of a flooded task: what `choose` needs, without reading the rest of each line.
_FLOODED = (
    "SELECT l.id, e.event, e.sender, e.session, json_extract(l.body, '$.event_id'), json_extract(l.body, '$.take'), json_extract(l.body, '$.state'),"
    " CASE WHEN e.sender = :caller THEN json_extract(l.body, '$.after', '$.outcome', '$.take', '$.launch', '$.relaunch_of') END"
    " FROM entity_line e JOIN line l ON l.id = e.line WHERE e.kind = 'task' AND e.id = :id AND e.event <> 'task' ORDER BY l.body"
)
_HANDOFFS = "SELECT from_id, caller, caller_session FROM task_link WHERE to_id = ? AND kind = 'handoff' ORDER BY created, from_id"
_TAKERS = "SELECT DISTINCT sender, session FROM entity_line WHERE kind = 'task' AND id = ? AND event = 'take'"
_REPLACING = "SELECT from_id FROM task_link WHERE to_id = ? AND kind = 'supersedes' AND caller = ? AND from_id <> to_id ORDER BY from_id LIMIT ?"

_NO_MARKS = str.maketrans("", "", '[]"')


def load_task(
    db: sqlite3.Connection,
    task_id: str,
    *,
    handoffs: Handoffs | None = None,
    is_linked: bool = True,
) -> FoldedTask | None:
    """Return a task, folded from all its lines; None if its own line is not here.

    Args:
        handoffs: A cache of folded handoffs, for the load of many tasks: one handoff may be of all of them.
        is_linked: As for `folded_task`.
    """
    lines = entities.lines(db, TASK, task_id, choose=choice)
    return folded_task(db, lines, handoffs={} if handoffs is None else handoffs, is_linked=is_linked)


def folded_task(
    db: sqlite3.Connection,
    lines: Lines,
    *,
    handoffs: Handoffs,
    is_linked: bool = True,
) -> FoldedTask | None:
    """Return the task of these lines.

    Args:
        handoffs: As for `load_task`, which loads the handoffs of the task.
        is_linked: Whether other tasks may hand it over or supersede it, and count.
    """
    lowest = lowest_of(lines)
    if lowest is None:
        return None
    record: TaskRecord = lowest.record
    events = [TaskEvent(row.record, row.line) for row in lines.of("task_event")]
    replacing = []
    if is_linked:
        task_id, caller = record["task_id"], record["sender_identity"]
        for handoff_id in _handoffs(db, task_id) if record["purpose"] != HANDOFF else ():
            if handoff_id not in handoffs:
                handoffs[handoff_id] = load_task(db, handoff_id, is_linked=False)
            events += _acceptances(task_id, handoffs[handoff_id])
        replacing = [str(id) for (id,) in db.execute(_REPLACING, (task_id, caller, HANDOFFS_MAX))]
    return FoldedTask(record, events, replacing, lines.left_out)


def lowest_of(lines: Lines) -> LineRow | None:
    """Return the line of a task that counts among those that are read; None if its own line is not here."""
    return next(iter(lines.of("task")), None)


def lowest_line(db: sqlite3.Connection, task_id: str) -> tuple[int, TaskRecord] | None:
    """Return the line of a task that counts, the lowest one, with its number; None if there is none."""
    row = db.execute(_TASK, (task_id,)).fetchone()
    if row is None:
        return None
    record = records.read_kind("task", row[1].encode())
    return None if record is None else (row[0], record)


def count_own(db: sqlite3.Connection, task_id: str, identity: str, most: int) -> int:
    """Return how many events of a task, without renewals, an identity has written; at most this many are counted."""
    query = (
        "SELECT count(*) FROM (SELECT 1 FROM entity_line WHERE kind = 'task' AND id = ? AND sender = ?"
        " AND event NOT IN ('task', 'renew') LIMIT ?)"
    )
    count: int = db.execute(query, (task_id, identity, most)).fetchone()[0]
    return count


def handed_over(record: TaskRecord) -> dict[str, str]:
    """Return the giver's take of each task that a handoff hands over."""
    if record["purpose"] != HANDOFF:
        return {}
    pairs = list(zip(record.get("handoff_tasks") or (), record.get("handoff_takes") or (), strict=False))
    return dict(reversed(pairs[:HANDOFFS_MAX]))  # of a task that is named twice the first pair


def _handoffs(db: sqlite3.Connection, task_id: str) -> list[str]:
    """Return the handoffs of a task by somebody who took it, or who accepted one of these; the first ones of each step."""
    every = db.execute(_HANDOFFS, (task_id,)).fetchall()
    givers: set[tuple[str, str | None]] = set()
    found: list[str] = []
    asked = [task_id]
    while every and asked and len(found) < HANDOFFS_MAX:
        givers.update(taker for id in asked for taker in db.execute(_TAKERS, (id,)).fetchall())
        asked = [id for id, *giver in every if tuple(giver) in givers][: HANDOFFS_MAX - len(found)]
        every = [row for row in every if (row[1], row[2]) not in givers]
        found += asked
    return found


def _acceptances(task_id: str, handoff: FoldedTask | None) -> list[TaskEvent]:
    """Return the valid takes of a handoff, at most the first ones, as events of a task that it hands over."""
    given = handed_over(handoff.record).get(task_id) if handoff is not None else None
    if handoff is None or given is None:
        return []
    return [take.accepting(given, handoff.caller) for take in handoff.takes[:ACCEPTANCES_MAX]]


def choice(db: sqlite3.Connection, task_id: str, _: str) -> list[int]:
    """Return the numbers of the lines that are read of a task with too many."""
    lowest = lowest_line(db, task_id)
    if lowest is None:
        return []
    number, record = lowest
    rows = db.execute(_FLOODED, {"id": task_id, "caller": record["sender_identity"]})
    chosen = choose([*starmap(EventRow, rows)], sender_of(record), record.get("agent"))
    return [number, *(each.number for each in chosen)]


class EventRow:
    """An event by the columns that the choice needs, without the rest of its line.

    Args:
        named: The ids that its line names, as JSON; None unless the caller wrote it.
    """

    __slots__ = ("event", "id", "is_terminal", "named", "number", "sender", "take")

    def __init__(
        self, number: int, event: str, sender: str, session: str | None, id: str, take: str | None, state: str | None,
        named: str | None,
    ) -> None:  # fmt: skip
        self.number = number
        self.event = event
        self.sender: Sender = (sender, session or None)
        self.id = id
        self.take = id if event == "take" else take
        self.is_terminal = event == "status" and state in TERMINAL
        # They need no decoder: the models allow only letters, digits and dashes in ids.
        self.named = set(named.translate(_NO_MARKS).split(",")) if named else set()


def choose(events: Sequence[Event], caller: Sender, agent: str | None, most: int = READ_MAX) -> list[Event]:
    """Return the events that are read.

    Args:
        events: All events, by `(at, bytes)`.
        caller: The writer of the task.
        agent: Its addressee.
        most: The greatest number of events of each part.
    """
    if len(events) <= most:
        return list(events)

    kinds: dict[str, list[Event]] = {}
    for each in events:
        kinds.setdefault(_part_of(each, caller), []).append(each)

    def by_party(each: Event) -> bool:
        return each.sender[0] == caller[0] or is_by(each.sender, agent)

    parts: list[list[Event]] = [kinds.get("seal", [])[:most], in_turn(kinds.get("close", ()), _sender)[:most]]
    parts.append(first_ones(in_turn(kinds.get("message", ()), _sender), by_party)[:most])
    named = {id for part in parts for each in part if each.sender[0] == caller[0] for id in each.named}
    takes_of_named = {each.take for each in events if each.id in named}

    def is_known(each: Event) -> bool:
        return each.id in takes_of_named or is_by(each.sender, agent)

    takes: list[Event] = first_ones(in_turn(kinds.get("take", ()), _sender), is_known)[:most]
    parts.append(takes)
    places: dict[object, int] = {}
    for place, take in enumerate(takes):
        for who in take.sender, take.sender[0]:
            places.setdefault((take.id, who), place)

    def place_of(each: Event) -> int | None:
        """Return the place of the take under which its taker wrote an event; None for other events."""
        return places.get((each.take, each.sender[0] if each.event == "release" else each.sender))

    rest = kinds.get("", [])
    for kind in "report", "renew":
        under: list[Event] = []
        for each in kinds.get(kind, ()):
            (under if place_of(each) is not None else rest).append(each)
        under.reverse()
        parts.append(rounds(sorted(under, key=_rank), place_of)[:most])
    parts.append(in_turn(rest, _sender)[:most])
    return [each for part in parts for each in part]


def _sender(event: TaskEvent | EventRow) -> Sender:
    return event.sender


def _part_of(event: Event, caller: Sender) -> str:
    kind, (identity, _) = event.event, event.sender
    if kind in ("message", "cancel") or (kind == "status" and event.take is None):
        return "message"
    if kind in ("status", "release", "artifact"):
        return "report"
    if kind == "seal" and event.sender != caller:
        return ""
    if kind == "close" and not may_decide(identity, caller[0]):
        return ""
    return kind if kind in ("seal", "close", "take", "renew") else ""


def _rank(event: TaskEvent | EventRow) -> int:
    """Return where an event stands among those of a take, of which the last one is the first: its end, release, other reports, artifacts."""
    if event.event == "artifact":
        return 3
    return 2 if event.event == "status" and not event.is_terminal else int(event.event == "release")


def question_of(task: FoldedTask) -> TaskEvent | None:
    """Return what the holder of a task asked last; None unless it waits for an answer."""
    if task.holder is None or task.state not in WAITING:
        return None
    asked = (
        each for each in task.events.values() if each.state == task.state and each.take == task.holder.id
    )
    return max((each for each in asked if task.counts(each)), key=lambda each: each.line, default=None)


TAKEN_MAX = 32  # tasks that a session may have had at one moment and that are read
# With the tasks that it has by a handoff.
_TAKEN = (
    "SELECT coalesce(k.to_id, e.id) FROM entity_line e CROSS JOIN line l ON l.id = e.line"
    " LEFT JOIN task_link k ON k.from_id = e.id AND k.kind = 'handoff' CROSS JOIN task t ON t.task_id = coalesce(k.to_id, e.id)"
    " WHERE e.session = ? AND e.event = 'take' AND l.at <= ?"
    " AND t.purpose <> 'handoff' AND (t.ended IS NULL OR t.ended >= ?) GROUP BY 1 ORDER BY max(l.at) DESC LIMIT ?"
)


def only_held_at(
    db: sqlite3.Connection,
    sender: Sender,
    first: int,
    last: int,
    most: int = TAKEN_MAX,
    *,
    known: dict[str, FoldedTask | None] | None = None,
) -> str | None:
    """Return the task that a session had during all of a time, if it had no other one in it.

    Args:
        sender: Identity and session.
        first, last: The time, in microseconds.
        most: The number of tasks that are read; if there may be more, none is certain.
        known: A cache of folded tasks, for the questions about many times: a peer may have made a task large.
    """
    if sender[1] is None:
        return None
    rows = db.execute(_TAKEN, (sender[1], format_at(last), first, most + 1)).fetchall()
    if len(rows) > most:
        return None
    found: dict[str, bool] = {}
    known = {} if known is None else known
    for (task_id,) in rows:
        if task_id not in known:
            known[task_id] = load_task(db, str(task_id))
        task = known[task_id]
        for take in task.takes if task is not None else ():
            if task is not None and take.sender == sender and take.at <= last:
                end = _end(task, take)
                if end is None or end >= first:
                    found[str(task_id)] = take.at <= first and (end is None or end > last)
    return next((task_id for task_id, is_sure in found.items() if is_sure), None) if len(found) == 1 else None


def _end(task: FoldedTask, take: TaskEvent) -> int | None:
    """Return until when somebody had a task under a take; None if that goes on."""
    ends = [
        each.at
        for each in task.events.values()
        if each.take == take.id and (each.event == "release" or each.is_terminal) and task.counts(each)
    ]
    ends += [other.at for other in task.takes if other is not take and task.has_seen(other, take)]
    # Others have other clocks: they decide nothing before it was taken.
    decisions = (each for each in (task.seal, task.close) if each is not None)
    ends += [each.at for each in decisions if each.at >= take.at]
    return min(ends, default=None)


ROLE_MAX = 100  # characters of a requested role
TITLE_MAX = 200  # characters of the first line of a task's message
# Tasks of which several lines are here.
_SEVERAL = (
    "SELECT id FROM entity_line WHERE kind = 'task' AND event = 'task' AND id IN (SELECT value FROM json_each(?))"
    " GROUP BY id HAVING count(*) > 1"
)
_PUT_LAUNCH = "INSERT INTO task_launch VALUES (?, ?, ?) ON CONFLICT (task_id, event_id) DO UPDATE SET at = min(at, excluded.at)"


def _also(db: sqlite3.Connection, new: Rows) -> set[str]:
    """Write the links of tasks and the launches, and return the tasks that the changed ones hand over or supersede."""
    tasks, events = new.of("task"), new.of("task_event")
    written: dict[str, TaskRecord] = {row.record["task_id"]: row.record for row in tasks}
    changed = {*written, *events.column("task_id")}
    ids = json_list(sorted(written))
    for (task_id,) in db.execute(_SEVERAL, (ids,)).fetchall():
        lowest = lowest_line(db, task_id)
        if lowest is not None:
            changed |= _linked(db, "from_id", (task_id,))
            db.execute("DELETE FROM task_link WHERE from_id = ?", (task_id,))
            written[task_id] = lowest[1]
    links = [link for record in written.values() for link in _links(record)]
    db.executemany("INSERT OR IGNORE INTO task_link VALUES (?, ?, ?, ?, ?, ?)", links)
    launches = [
        (row.record["task_id"], row.record["event_id"], row.at)
        for row in events
        if row.record["event"] == "launch"
    ]
    db.executemany(_PUT_LAUNCH, launches)
    return changed | _linked(db, "from_id", changed)


def _rows(db: sqlite3.Connection, tasks: Mapping[str, Lines]) -> Iterator[Sequence[Value]]:
    linked = _linked(db, "to_id", tasks)
    handoffs: dict[str, FoldedTask | None] = {}
    for task_id, lines in tasks.items():
        lowest = lowest_of(lines)
        found = folded_task(db, lines, handoffs=handoffs, is_linked=task_id in linked)
        if found is not None and lowest is not None:
            yield (task_id, lowest.id, *_base(found.record), *_state(found))


FOLD = entities.Fold(_rows, _also, choose=choice)


def _links(record: TaskRecord) -> Iterator[tuple[Value, ...]]:
    ends = {
        "supersedes": record.get("supersedes") or (),
        "blocked_by": record.get("blocked_by") or (),
        "handoff": handed_over(record),
    }
    for kind, ids in ends.items():
        for to_id in list(ids)[:LINKS_MAX]:
            yield to_id, kind, record["task_id"], *sender_of(record), micros(record["at"])


def _linked(db: sqlite3.Connection, end: str, ids: Iterable[str]) -> set[str]:
    """Return the tasks that others hand over or supersede, of the links with one of these tasks at an end."""
    rows = db.execute(
        f"SELECT to_id FROM task_link WHERE kind <> 'blocked_by' AND {end} IN (SELECT value FROM json_each(?))",
        (json_list(sorted(ids)),),
    )
    return {to_id for (to_id,) in rows}


def _base(record: TaskRecord) -> tuple[Value, ...]:
    """Return the columns of a task's own line."""
    title = record["message"].strip().partition("\n")[0][:TITLE_MAX]
    unit = record.get("wu_id")
    return (
        record["sender_identity"], record.get("sender_session") or None, record["purpose"],
        record.get("agent"), record.get("target_role"), unit, unit_key(unit), record.get("initiative_id"), record.get("priority"),
        micros(record["at"]), title, next(iter(record.get("chain", ())[-1:]), None),
        (role_text(record.get("requested_role")) or record.get("target_role") or "")[:ROLE_MAX] or None,
        micros(record.get("deadline")) or None, int(record["semantics"] == ONCE),
        *_work(record),
    )  # fmt: skip


def _work(record: TaskRecord) -> tuple[str | None, str | None]:
    """Return what delegations of the same work have in common: work unit and requested role, and brief or idempotency key."""
    if record["purpose"] != DELEGATION:
        return None, None
    unit = unit_key(record.get("wu_id"))
    role = role_text(record.get("requested_role")) or record.get("target_role") or record.get("agent")
    brief, key = record.get("brief_digest"), record.get("idempotency_key")
    twin = f"brief {brief}" if brief else f"key {key}" if key else None
    return (f"{unit}\n{role}" if unit and role else None), twin


def _state(task: FoldedTask) -> tuple[Value, ...]:
    """Return the columns that are folded."""
    holder, session = task.holder.sender if task.holder is not None else (None, None)
    until = task.lease(task.holder) if task.holder is not None else 0
    replaced = 2 if task.stands_beside else int(task.is_replaced)
    last = max(task.events.values(), key=lambda each: each.line, default=None)
    touched = last.at if last is not None else micros(task.record["at"])
    take = task.worker_take
    said = {name: take.record[name] for name in ACTUAL if name in take.record} if take is not None else {}  # type: ignore[literal-required]
    differs = bool(said) and compare_fields({**task.record, **said}).is_any
    return (
        task.state, task.decided_by, holder, session, until, int(task.conflict), len(task.cancels), len(task.late),
        replaced, int(_is_taken(task)), touched, as_json(said) if said else None, int(differs), *_times(task),
        _json(sorted(task.takers())), _json(sorted(task.gave_up())), _json(task.refused_by()),
    )  # fmt: skip


def _json(senders: Sequence[str] | Sequence[Sender]) -> str | None:
    return as_json([*senders]) if senders else None


def _times(task: FoldedTask) -> tuple[int, int | None, int | None]:
    """Return since when a task waits for somebody, when it was first taken, and when it ended.

    A task that somebody has waits from the end of the lease on, or from a question on. Else it waits from its last launch, take or release on.
    Messages and escalations do not count.
    """
    created = micros(task.record["at"])
    first = task.takes[0].at if task.takes else None
    if task.is_finished:
        decided = task.outcome or task.seal or task.close
        ended = decided.at if decided is not None else created
        return ended, first, ended
    if task.holder is None:
        moves = [
            each.at
            for each in task.events.values()
            if each.event in ("launch", "take") or (each.event == "release" and task.counts(each))
        ]
        return max(moves, default=created), first, None
    if task.state in WAITING:
        asked = question_of(task)
        return asked.at if asked is not None else created, first, None
    return task.lease(task.holder), first, None


def _is_taken(task: FoldedTask) -> bool:
    """Return whether somebody has taken a task for whom it is: others take no duty from the addressee."""
    agent = task.record.get("agent")
    return any(agent is None or is_by(take.sender, agent) for take in task.takes)
