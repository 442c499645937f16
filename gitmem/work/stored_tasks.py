"""What the rows of tasks say, one function for each question: who has which, what is below one, what was delegated twice, what waits.

`tables` declares the rows. `task_state` reads the lines of one task, `task_list` has trees and counts.
"""

from __future__ import annotations

from ..index import entities
from ..outcome import Struct
from ..records.lines import as_json
from ..text import strict_json
from ..text.strict_json import json_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..order.task import FoldedTask, Sender

    Values = Mapping[str, str | int | None]


LISTED = 50  # tasks of a list
# Conditions on a row `t`.
IS_OPEN = "t.decided_by IS NULL AND t.replaced <> 1"
# Said so that the index of these is used, not all tasks.
UNSEALED = "(t.decided_by IS NULL OR t.decided_by = 'status')"
_BY_US = "EXISTS (SELECT 1 FROM own WHERE name = t.caller_session)"
# The open tasks that must be finished before one, as JSON.
BLOCKERS = (
    "(SELECT json_group_array(k.to_id) FROM task_link k CROSS JOIN task b ON b.task_id = k.to_id AND b.decided_by IS NULL AND b.replaced <> 1"
    " WHERE k.from_id = t.task_id AND k.kind = 'blocked_by')"
)
FIRST_OPEN = "t.decided_by IS NOT NULL, coalesce(t.priority, 'P2'), t.created DESC, t.task_id"  # an order


def select_ids(
    db: sqlite3.Connection, condition: str, values: Values, limit: int, order: str = FIRST_OPEN
) -> tuple[list[str], int]:
    """Return the ids of the first tasks that fulfil a condition on the row `t` and its line `l`, and how many more there are."""
    query = f"SELECT t.task_id FROM task t JOIN line l ON l.id = t.line WHERE {condition}"
    found, more = entities.select(db, query, values, order=order, limit=limit)
    return [task_id for (task_id,) in found], more


def columns_of(
    db: sqlite3.Connection, ids: Iterable[str], columns: Sequence[str], fields: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return columns of tasks, in the order of their ids: those named, `BLOCKERS`, and these fields of their lines as a JSON list."""
    named = ", ".join(f"t.{name}" for name in columns)
    paths = ", ".join(f"'$.{name}'" for name in fields)
    query = (
        f"SELECT {named}, {BLOCKERS}, json_extract(l.body, {paths}) FROM json_each(?) j"
        " CROSS JOIN task t ON t.task_id = j.value JOIN line l ON l.id = t.line ORDER BY j.key"
    )
    return db.execute(query, (json_list(ids),)).fetchall()


def row_of(db: sqlite3.Connection, task_id: str, columns: str) -> tuple[Any, ...] | None:
    """Return columns of a task's row; None if it is not here."""
    row: tuple[Any, ...] | None = db.execute(
        f"SELECT {columns} FROM task WHERE task_id = ?", (task_id,)
    ).fetchone()
    return row


def decided(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str | None]:
    """Return what has decided those of these tasks that are here: `seal`, `close`, `status` or None."""
    query = "SELECT task_id, decided_by FROM json_each(?) j CROSS JOIN task ON task_id = j.value"
    return dict(db.execute(query, (json_list(ids),)))


def messages(db: sqlite3.Connection, ids: Iterable[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield id, `task` or `message`, and record of the lines with the text of tasks, and of the messages to them; by task, oldest first."""
    query = (
        "SELECT e.id, e.event, l.body FROM json_each(?) j CROSS JOIN entity_line e ON e.kind = 'task' AND e.id = j.value"
        " AND e.event IN ('task', 'message') JOIN line l ON l.id = e.line ORDER BY e.id, l.body"
    )
    for task_id, event, body in db.execute(query, (json_list(ids),)):
        yield task_id, event, strict_json.read(body)


def held_in(db: sqlite3.Connection, sender: Sender) -> list[str]:
    """Return the open tasks that a session has, at most two."""
    query = (
        "SELECT task_id FROM task WHERE decided_by IS NULL AND holder IS NOT NULL AND holder = ? AND holder_session IS ?"
        " AND purpose <> 'handoff' AND replaced <> 1 LIMIT 2"
    )
    return [task_id for (task_id,) in db.execute(query, sender)]


def held_by(db: sqlite3.Connection, identity: str, most: int) -> list[tuple[str, str | None]]:
    """Return the tasks without an outcome that an agent has, each with its work unit; the last touched first."""
    query = "SELECT task_id, unit FROM task WHERE holder = ? AND decided_by IS NULL ORDER BY touched DESC, task_id LIMIT ?"
    return db.execute(query, (identity, most)).fetchall()


def count_held(db: sqlite3.Connection, sender: Sender) -> int:
    """Return how many tasks without an outcome a session has."""
    query = "SELECT count(*) FROM task WHERE holder = ? AND holder_session IS ? AND decided_by IS NULL"
    count: int = db.execute(query, sender).fetchone()[0]
    return count


def offered_to(db: sqlite3.Connection, sender: Sender, most: int) -> list[str]:
    """Return the tasks for a session or its agent that nobody has, the latest first."""
    query = (
        "SELECT task_id FROM task WHERE agent IN (?, ?) AND decided_by IS NULL AND holder IS NULL AND purpose <> 'handoff'"
        " ORDER BY created DESC, task_id LIMIT ?"
    )
    return [task_id for (task_id,) in db.execute(query, (*sender, most))]


def to_give_up(db: sqlite3.Connection, sender: Sender) -> list[str]:
    """Return the open calls, and tasks that begin only once, that a session wrote, the earliest first."""
    query = (
        f"SELECT task_id FROM task t WHERE caller = ? AND {UNSEALED} AND decided_by IS NULL"
        " AND caller_session IS ? AND replaced <> 1 AND (once = 1 OR purpose = 'call')"
        " ORDER BY created, task_id LIMIT 100"
    )
    return [task_id for (task_id,) in db.execute(query, sender)]


def open_handoffs(
    db: sqlite3.Connection, condition: str, values: Values, since: int, most: int
) -> list[tuple[str, int, str, str]]:
    """Return the handoffs without an answer that were written since a time, the latest first: id, time, title and line."""
    query = (
        "SELECT t.task_id, t.created, t.title, l.body FROM task t JOIN line l ON l.id = t.line WHERE t.purpose = 'handoff'"
        " AND t.decided_by IS NULL AND t.created > :since AND +t.holder IS NULL AND t.cancels = 0 AND t.replaced = 0"
        f" AND {condition} ORDER BY t.created DESC, t.task_id LIMIT :most"
    )
    return db.execute(query, {**values, "since": since, "most": most}).fetchall()


def callers_of(db: sqlite3.Connection, ids: Iterable[str]) -> list[tuple[str, int | None]]:
    """Return who wrote each of these tasks, and its deadline."""
    query = "SELECT caller, deadline FROM task WHERE task_id IN (SELECT value FROM json_each(?))"
    return db.execute(query, (json_list(ids),)).fetchall()


def below(db: sqlite3.Connection, root: str, most: int) -> list[str]:
    """Return the tasks within one, the first ones first. UNION leaves out what is there already: a cycle ends."""
    query = (
        "WITH RECURSIVE found (id) AS (SELECT :root UNION SELECT t.task_id FROM found CROSS JOIN task t ON t.parent = found.id LIMIT :most)"
        " SELECT t.task_id FROM found JOIN task t ON t.task_id = found.id WHERE t.task_id <> :root ORDER BY t.created, t.task_id"
    )
    return [task_id for (task_id,) in db.execute(query, {"root": root, "most": most})]


def count_open(db: sqlite3.Connection, column: str, who: str, session: str | None, now: int) -> int:
    """Return how many open tasks of sessions of this clone have an agent in a column; without those that nobody may begin any more.

    Args:
        session: The session that asks; None counts those without a session, too.
    """
    query = (
        f"SELECT count(*) FROM task t WHERE t.{column} = ?1 AND {IS_OPEN} AND purpose <> 'handoff'"
        f" AND ({_BY_US} OR (?2 IS NULL AND t.caller_session IS NULL)) AND {_MAY_BEGIN}"
    )
    count: int = db.execute(query, (who, session, now)).fetchone()[0]
    return count


_MAY_BEGIN = "(deadline IS NULL OR max(deadline, coalesce(until, 0)) > ?3)"  # or somebody works on it


def count_before(db: sqlite3.Connection, caller: Sender, created: int, task_id: str) -> int:
    """Return how many tasks a session wrote before one that were open then and are now."""
    query = (
        f"SELECT count(*) FROM task t WHERE t.caller = ?1 AND {UNSEALED} AND {IS_OPEN}"
        f" AND t.caller_session IS ?2 AND purpose <> 'handoff' AND (t.created, t.task_id) < (?3, ?4) AND {_MAY_BEGIN}"
    )
    count: int = db.execute(query, (*caller, created, task_id)).fetchone()[0]
    return count


class Delegation:
    """An open delegation that another one may repeat.

    Attributes:
        holder: Identity and session of whoever has it; None while nobody has.
        key: Of several delegations of the same work the one with the least key stays, on every clone.
    """

    def __init__(
        self, task_id: str, caller: str, session: str | None, holder: str | None, held_in: str | None, *key: str | int
    ) -> None:  # fmt: skip
        self.task_id = task_id
        self.caller: Sender = (caller, session)
        self.holder: Sender | None = (holder, held_in) if holder is not None else None
        self.key = key


# The task that stays is the least by the last four. The first take comes first, so that no later one changes what both sides were told.
_DELEGATION = (
    "o.task_id, o.caller, o.caller_session, o.holder, o.holder_session,"
    " o.first_take IS NULL, coalesce(o.first_take, 0), o.created, o.task_id"
)
_GOES_ON = "{0}.decided_by IS NULL AND {0}.replaced <> 1 AND {0}.cancels = 0"
_SAME_WORK = ("work", "twin")  # columns
_SAME = " UNION ".join(
    f"SELECT {_DELEGATION} FROM task a CROSS JOIN task o ON o.{key} = a.{key}"
    f" WHERE a.task_id = :id AND o.task_id <> a.task_id AND o.{key} IS NOT NULL AND {_GOES_ON.format('o')} AND {_GOES_ON.format('a')}"
    " AND NOT EXISTS (SELECT 1 FROM task_link k WHERE k.to_id IN (o.task_id, a.task_id) AND k.from_id IN (o.task_id, a.task_id))"
    for key in _SAME_WORK
)


def of_same_work(db: sqlite3.Connection, task_id: str, limit: int) -> list[Delegation]:
    """Return open delegations of the same work, the one that stays first."""
    rows = db.execute(f"{_SAME} ORDER BY 6, 7, 8, 9 LIMIT {limit}", {"id": task_id})
    return [Delegation(*row) for row in rows]


def delegation(db: sqlite3.Connection, task_id: str) -> Delegation:
    """Return a task as a delegation."""
    return Delegation(
        *db.execute(f"SELECT {_DELEGATION} FROM task o WHERE o.task_id = ?", (task_id,)).fetchone()
    )


# Of those whose sessions are here, the latest first, so that others' tasks, of any number, crowd nothing out.
_HERE = "IN (SELECT value FROM json_each(:here))"


def delegated_twice(db: sqlite3.Connection, here: Collection[str], most: int) -> list[str]:
    """Return open tasks that these sessions wrote or have and that others of the same work repeat."""
    query = " UNION ".join(
        f"SELECT * FROM (SELECT t.task_id FROM task t WHERE t.decided_by IS NULL AND t.{key} IS NOT NULL AND {name} {_HERE}"
        f" AND EXISTS (SELECT 1 FROM task o WHERE o.{key} = t.{key} AND o.decided_by IS NULL AND o.task_id <> t.task_id)"
        " ORDER BY t.created DESC, t.task_id LIMIT :most)"
        for key in _SAME_WORK
        for name in ("t.caller_session", "t.holder_session")
    )
    return _of_sessions(db, query, here, most, 0)


def taken_apart(db: sqlite3.Connection, here: Collection[str], most: int, since: int) -> list[str]:
    """Return open tasks that several hold, and tasks with late results, that changed after a line; of those of which these sessions have written a take or report."""
    line = "EXISTS (SELECT 1 FROM entity_line e WHERE e.kind = 'task' AND e.id = t.task_id"
    query = " UNION ".join(
        f"SELECT * FROM (SELECT t.task_id FROM task t WHERE {which} AND {line} AND e.event = '{event}' AND e.session {_HERE})"
        f" AND {line} AND e.line > :since) ORDER BY t.{time} DESC, t.task_id LIMIT :most)"
        for which, event, time in (
            ("t.conflict = 1 AND t.decided_by IS NULL", "take", "created"),
            ("t.late > 0", "status", "since"),
        )
    )
    return _of_sessions(db, query, here, most, since)


def _of_sessions(
    db: sqlite3.Connection, query: str, here: Collection[str], most: int, since: int
) -> list[str]:
    values = {"here": as_json(sorted(here)), "most": most, "since": since}
    return [task_id for (task_id,) in db.execute(query, values)]


# Of a task that a session of this clone has asked for or has.
_OURS = "EXISTS (SELECT 1 FROM own WHERE name IN (t.caller_session, t.holder_session))"
_WAITING = (
    "SELECT t.task_id, t.decided_by, t.state, t.holder, t.holder_session, t.caller, t.deadline, t.once,"
    " CASE WHEN t.since > :ahead THEN t.created ELSE t.since END AS waits,"
    f" {_OURS} AS ours FROM task t"
    f" LEFT JOIN session s ON s.session_id = t.caller_session WHERE {UNSEALED} AND {{where}} AND t.purpose <> 'handoff' AND (CASE WHEN t.decided_by"
    f" IS NULL THEN t.replaced <> 1 AND (t.holder IS NOT NULL OR (coalesce(t.agent, t.target_role) IS NOT NULL AND {BLOCKERS} = '[]'))"
    " ELSE t.decided_by = 'status' AND s.ended IS NOT NULL END)"
)
_WAITS_SINCE = "min(waits, CASE WHEN decided_by IS NULL THEN coalesce(deadline, waits) ELSE waits END)"


def waiting_longest(
    db: sqlite3.Connection, condition: str, values: Values, limit: int
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the tasks that wait for somebody since `before` or longer, and how many more there are.

    Those of this clone come first, so that others', of any number, crowd out none of them; then the longest. A row has task_id, decided_by, state, holder, holder_session, caller, deadline, once, since when it waits, whether it is ours, and the
    earlier of that time and the deadline.

    Args:
        values: Also `before`, and `ahead`: a later time comes from a wrong clock, and the writing of the task counts instead.
    """
    query = (
        f"SELECT *, {_WAITS_SINCE} FROM ({_WAITING.format(where=condition)}) WHERE {_WAITS_SINCE} <= :before"
    )
    return entities.select(db, query, values, order=f"ours DESC, {_WAITS_SINCE}, task_id", limit=limit)


class OpenTask(Struct):
    """A task for which somebody waits.

    Attributes:
        is_done: Whether it has an outcome on which its caller has not decided.
        asked: The role that it asks for; `role` is the one that may take it.
        is_held: Whether its holder, who was answered, may go on within the lease.
        since: Since when somebody waits, in microseconds.
    """

    id: str
    title: str
    state: str
    is_done: bool
    purpose: str
    agent: str | None
    role: str | None
    asked: str | None
    unit: str | None
    caller: str
    holder: str | None
    is_held: bool
    since: int


AWAITED_MAX = 500
# While somebody has a task that asks nothing, `since` is the end of the lease.
_HELD = (
    "t.decided_by IS NULL AND t.state IN ('working', 'submitted') AND t.holder IS NOT NULL AND t.since > :now"
)
_AWAITED = (
    "SELECT t.task_id, coalesce(t.title, ''), t.state, t.decided_by IS NOT NULL, t.purpose, t.agent, t.target_role, t.asked, t.unit, t.caller, t.holder,"
    f" t.state = 'submitted' AND {_HELD}, CASE WHEN t.decided_by IS NULL AND t.state = 'working' OR {_HELD} THEN coalesce(t.first_take, t.since) ELSE t.since END AS waits"
    f" FROM task t WHERE {UNSEALED} AND t.replaced <> 1 AND (t.purpose <> 'handoff' OR t.decided_by IS NULL AND t.created > :open)"
    " AND (t.holder IS NOT NULL OR t.decided_by IS NOT NULL OR t.cancels = 0 AND coalesce(t.deadline > :now, 1)"
    f" AND {BLOCKERS} = '[]')"
)


def awaited(db: sqlite3.Connection, now: int, handoffs_since: int) -> list[OpenTask]:
    """Return the tasks that somebody may take, has or has done without a decision, the newest of too many; not those that wait for others.

    Args:
        handoffs_since: From when on a handoff waits for its addressee.
    """
    values = {"now": now, "open": handoffs_since}
    rows, _ = entities.select(db, _AWAITED, values, order="waits DESC, task_id", limit=AWAITED_MAX)
    return [OpenTask(*row) for row in rows]


def launch_numbers(db: sqlite3.Connection, task: FoldedTask) -> dict[str, int]:
    """Return the number of the attempt that each launch of a task is: its place in the initiative; without one, in the task."""
    values = {"task": task.record["task_id"], "initiative": task.record.get("initiative_id")}
    group = "t.initiative_id = :initiative" if values["initiative"] else "t.task_id = :task"
    query = (
        "SELECT event_id, number FROM (SELECT a.task_id, a.event_id, row_number() OVER (ORDER BY a.at, a.task_id, a.event_id) AS number"
        f" FROM task t JOIN task_launch a ON a.task_id = t.task_id WHERE {group}) WHERE task_id = :task"
    )
    return dict(db.execute(query, values).fetchall())


def for_worker(
    db: sqlite3.Connection,
    ids: Sequence[str],
    roles: Sequence[str | None],
    now: int,
    most: int,
    skipped: int = 0,
) -> list[tuple[str, str, int | None]]:
    """Return the open tasks that a worker may run: id, caller, and the number of the last line; of each caller the first before all second ones.

    Args:
        ids: The addresses of the worker. Those of roles, two, count for tasks without an addressee.
        most: How many are returned, after so many that are `skipped`.
    """
    marks = ", ".join("?" * len(ids))
    query = (
        "SELECT id, caller, (SELECT max(e.line) FROM entity_line e WHERE e.kind = 'task' AND e.id = o.id) FROM"
        " (SELECT t.task_id AS id, t.caller AS caller FROM task t"
        f" WHERE (t.agent IN ({marks}) OR (t.agent IS NULL AND t.target_role IN (?, ?))) AND {IS_OPEN}"
        f" AND t.purpose <> 'handoff' AND (t.deadline IS NULL OR t.deadline > ? OR t.holder IN ({marks}))"
        " ORDER BY row_number() OVER (PARTITION BY t.caller ORDER BY t.created, t.task_id), t.created, t.task_id LIMIT ? OFFSET ?) o"
    )
    return db.execute(query, (*ids, *roles, now, *ids, most, skipped)).fetchall()


def asked_of(db: sqlite3.Connection, caller: str, agent: str, most: int) -> list[str]:
    """Return the tasks of a caller for an agent, the last touched first."""
    query = (
        "SELECT task_id FROM task WHERE caller = ? AND agent = ? ORDER BY touched DESC, task_id DESC LIMIT ?"
    )
    return [task_id for (task_id,) in db.execute(query, (caller, agent, most))]


def has_thread(db: sqlite3.Connection, caller: str, thread_id: str) -> bool:
    """Return whether a caller wrote a task in a thread."""
    query = "SELECT 1 FROM task t JOIN line l ON l.id = t.line WHERE t.caller = ? AND json_extract(l.body, '$.thread_id') = ? LIMIT 1"
    return db.execute(query, (caller, thread_id)).fetchone() is not None
