"""Convert lines of tasks to rows of their view, in any order of arrival: each changed task is folded again."""

from __future__ import annotations

from ..agents.descriptors import ACTUAL, compare_fields, role_text
from ..order.task import DELEGATION, WAITING, TaskEvent, micros
from ..records.ids import unit_key
from ..records.lines import as_json
from . import ONCE, task_roles, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..index.rows import Rows
    from ..order.task import FoldedTask, Sender
    from ..records.record_types import TaskEventRecord, TaskRecord

    Value = str | int | None


ROLE_MAX = 100  # characters of a requested role
TITLE_MAX = 200  # characters of the first line of a task's message
LINKS_MAX = 50  # of each kind in one task; readers ignore further ones
_BASE = (
    "line", "caller", "caller_session", "purpose", "agent", "target_role", "unit", "wu_id", "initiative_id", "priority",
    "created", "title", "parent", "asked", "deadline", "once", "work", "twin",
)  # fmt: skip
_STATE = (
    "state", "decided_by", "holder", "holder_session", "until", "conflict", "cancels", "late", "replaced", "taken", "touched", "actual",
    "mismatch", "since", "first_take", "ended", "takers", "gave_up", "refused_by",
)  # fmt: skip
_PUT = (
    f"INSERT INTO task (task_id, {', '.join(_BASE)}) VALUES (?{', ?' * len(_BASE)}) ON CONFLICT (task_id)"
    f" DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _BASE)}"
)
_PUT_LAUNCH = "INSERT INTO task_launch VALUES (?, ?, ?) ON CONFLICT (task_id, event_id) DO UPDATE SET at = min(at, excluded.at)"
_PUT_STATE = f"UPDATE task SET {', '.join(f'{name} = ?' for name in _STATE)} WHERE task_id = ?"


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add tasks and their events."""
    tasks, events = rows.of("task"), rows.of("task_event")
    new = set(tasks.column("task_id"))
    changed = new | set(events.column("task_id"))
    seen_before = _with_lines(db, changed)
    lines = [
        (
            row.record["task_id"],
            row.id,
            row.record["sender_identity"],
            row.record.get("sender_session") or None,
        )
        for row in tasks
    ]
    db.executemany("INSERT OR IGNORE INTO task_line VALUES (?, ?, ?, ?)", lines)
    columns = map(events.column, ("task_id", "event", "sender_identity", "sender_session"))
    named = [
        (task_id, number, event, sender, session or None)
        for number, task_id, event, sender, session in zip(events.ids, *columns, strict=True)
    ]
    db.executemany("INSERT OR IGNORE INTO task_event VALUES (?, ?, ?, ?, ?)", sorted(named))
    links = [link for row in tasks for link in _links(row.id, row.record)]
    db.executemany("INSERT OR IGNORE INTO task_link VALUES (?, ?, ?, ?)", links)

    lowest: dict[str, tuple[bytes, int, TaskRecord]] = {}
    for row in tasks:
        task_id = row.record["task_id"]
        if task_id not in lowest or row.line < lowest[task_id][0]:
            lowest[task_id] = row.line, row.id, row.record
    for task_id in new & seen_before:
        stored = task_state.lowest_line(db, task_id)
        if stored is not None:
            lowest[task_id] = b"", *stored
    db.executemany(_PUT, [_base(line, record) for _, line, record in lowest.values()])

    own: dict[str, list[tuple[TaskEventRecord, bytes]]] = {}
    launches = []
    for row in events:
        own.setdefault(row.record["task_id"], []).append((row.record, row.line))
        if row.record["event"] == "launch":
            launches.append((row.record["task_id"], row.record["event_id"], row.record["at"]))
    db.executemany(_PUT_LAUNCH, launches)
    linked = _linked(db, changed)
    apart = new - seen_before - linked - _linking(db, new)  # all that concerns these is in these lines
    states = []
    handoffs: dict[str, FoldedTask | None] = {}
    for task_id in sorted(changed | linked):
        found: FoldedTask | None
        if task_id in apart:
            found = task_state.of_lines(
                lowest[task_id][2], (TaskEvent(*each) for each in own.get(task_id, ()))
            )
        else:
            found = task_state.load_task(db, task_id, handoffs=handoffs)
        if found is not None:
            states.append(_state(found))
    db.executemany(_PUT_STATE, states)


def _with_lines(db: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """Return which of these tasks have lines already."""
    among = _among(ids)
    rows = db.execute(
        f"SELECT task_id FROM task_line WHERE task_id {among} UNION SELECT task_id FROM task_event WHERE task_id {among}"
    )
    return {task_id for (task_id,) in rows}


def _links(line: int, record: TaskRecord) -> list[tuple[str, str, str, int]]:
    links = {
        "supersedes": record.get("supersedes") or (),
        "blocked_by": record.get("blocked_by") or (),
        "handoff": task_state.handed_over(record),
    }
    return [
        (to_id, kind, record["task_id"], line)
        for kind, ids in links.items()
        for to_id in list(ids)[:LINKS_MAX]
    ]


def _linked(db: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """Return the tasks whose state depends on these: those that they hand over or supersede."""
    among = _among(ids)
    rows = db.execute(f"SELECT to_id FROM task_link WHERE kind <> 'blocked_by' AND from_id {among}")
    return {to_id for (to_id,) in rows}


def _linking(db: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """Return which of these tasks others hand over or supersede."""
    rows = db.execute(f"SELECT to_id FROM task_link WHERE kind <> 'blocked_by' AND to_id {_among(ids)}")
    return {to_id for (to_id,) in rows}


def _among(ids: Iterable[str]) -> str:
    """Return an SQL condition on any number of ids. They need no escaping: the models allow only letters and digits."""
    return "IN (SELECT value FROM json_each('[{}]'))".format(",".join(f'"{id}"' for id in sorted(ids)))


def _base(line: int, record: TaskRecord) -> tuple[Value, ...]:
    """Return the columns of a task's own line."""
    title = record["message"].strip().partition("\n")[0][:TITLE_MAX]
    unit = record.get("wu_id")
    return (
        record["task_id"], line, record["sender_identity"], record.get("sender_session") or None, record["purpose"],
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
    """Return the columns that are folded, and the id."""
    holder, session = task.holder.sender if task.holder is not None else (None, None)
    until = task.lease(task.holder) if task.holder is not None else 0
    replaced = 2 if task.stands_beside else int(task.is_replaced)
    last = max(task.events.values(), key=lambda each: each.line, default=None)
    touched = last.at if last is not None else micros(task.record["at"])
    take = task_roles.worker_take(task)
    said = {name: take.record[name] for name in ACTUAL if name in take.record} if take is not None else {}  # type: ignore[literal-required]
    differs = bool(said) and compare_fields({**task.record, **said}).is_any
    return (
        task.state, task.decided_by, holder, session, until, int(task.conflict), len(task.cancels), len(task.late),
        replaced, int(_is_taken(task)), touched, as_json(said) if said else None, int(differs), *_times(task),
        _json(sorted(task.takers())), _json(sorted(task.gave_up())), _json(task.refused_by()), task.record["task_id"],
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
        asked = [
            each.at
            for each in task.events.values()
            if each.state == task.state and each.take == task.holder.id and task.counts(each)
        ]
        return max(asked, default=created), first, None
    return task.lease(task.holder), first, None


def _is_taken(task: FoldedTask) -> bool:
    """Return whether somebody has taken a task for whom it is: others take no duty from the addressee."""
    agent = task.record.get("agent")
    return any(agent is None or agent in take.sender for take in task.takes)
