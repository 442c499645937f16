"""Make the rows of tasks from their lines."""

from __future__ import annotations

from ..agents.descriptors import ACTUAL, compare_fields, role_text
from ..index import entities
from ..order.task import DELEGATION, WAITING, micros, sender_of
from ..records.ids import unit_key
from ..records.lines import as_json
from . import ONCE, task_roles, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..index.entities import Lines, Rows
    from ..order.task import FoldedTask, Sender
    from ..records.record_types import TaskRecord

    Value = str | int | None


ROLE_MAX = 100  # characters of a requested role
TITLE_MAX = 200  # characters of the first line of a task's message
LINKS_MAX = 50  # of each kind in one task; readers ignore further ones
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
    ids = entities.json_list(sorted(written))
    for (task_id,) in db.execute(_SEVERAL, (ids,)).fetchall():
        lowest = task_state.lowest_line(db, task_id)
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
        lowest = task_state.lowest_of(lines)
        found = task_state.folded_task(db, lines, handoffs=handoffs, is_linked=task_id in linked)
        if found is not None and lowest is not None:
            yield (task_id, lowest.id, *_base(found.record), *_state(found))


FOLD = entities.Fold(_rows, _also, choose=task_state.choice)


def _links(record: TaskRecord) -> Iterator[tuple[Value, ...]]:
    ends = {
        "supersedes": record.get("supersedes") or (),
        "blocked_by": record.get("blocked_by") or (),
        "handoff": task_state.handed_over(record),
    }
    for kind, ids in ends.items():
        for to_id in list(ids)[:LINKS_MAX]:
            yield to_id, kind, record["task_id"], *sender_of(record), micros(record["at"])


def _linked(db: sqlite3.Connection, end: str, ids: Iterable[str]) -> set[str]:
    """Return the tasks that others hand over or supersede, of the links with one of these tasks at an end."""
    rows = db.execute(
        f"SELECT to_id FROM task_link WHERE kind <> 'blocked_by' AND {end} IN (SELECT value FROM json_each(?))",
        (entities.json_list(sorted(ids)),),
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
    take = task_roles.worker_take(task)
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
