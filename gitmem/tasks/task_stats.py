"""Count tasks: by state, outcome and role, and how long they wait and take."""

from __future__ import annotations

from ..outcome import Outcome
from ..records.ids import unit_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..store import Store

    Values = Mapping[str, str | None]

GROUPS_MAX = 20  # of each kind; the rest is counted together
OTHERS = "(others)"
NO_ROLE = "(no role)"
# What clocks of several machines make negative counts as nothing.
_DONE = "(t.state <> 'canceled' OR t.first_take IS NOT NULL)"
_DURATION = "max(0, t.{end} - t.created)"


class Durations(Outcome):
    """Times in seconds; all but `count` are None without any."""

    def __init__(self, count: int, values: Sequence[float]) -> None:
        self.count = count
        found: Sequence[float | None] = values or (None, None, None)
        self.median, self.p90, self.longest = found


class RoleCount(Outcome):
    """The tasks for a role: all, those without an outcome, and those whose outcome is `completed`."""

    def __init__(self, role: str, tasks: int, open: int, completed: int) -> None:
        self.role = role
        self.tasks = tasks
        self.open = open
        self.completed = completed


class TaskStats(Outcome):
    """Counts of tasks.

    Attributes:
        open: Those without an outcome that no other task replaces.
        states: The number of tasks in each state.
        outcomes: Of tasks with an outcome: how many their callers have sealed, others have closed, and nobody has confirmed.
        roles: The most frequent requested roles.
        to_first_take: From its writing to the first valid take.
        to_end: From its writing to its outcome; without tasks that were canceled before anybody took them.
    """

    def __init__(self) -> None:
        self.tasks = self.open = self.replaced = self.conflicts = self.launches = 0
        self.states: dict[str, int] = {}
        self.outcomes: dict[str, int] = {}
        self.roles: list[RoleCount] = []
        self.to_first_take = self.to_end = Durations(0, ())
        self.next = ["gitmem task list --open"]


def stats(store: Store, *, wu: str | None = None, initiative: str | None = None) -> TaskStats:
    """Return counts of all tasks.

    Args:
        wu: Only of tasks on this work unit.
        initiative: Only of tasks of this initiative.
    """
    conditions = {"t.wu_id = :wu": unit_key(wu), "t.initiative_id = :initiative": initiative}
    where = " AND ".join(text for text, value in conditions.items() if value) or "1"
    values = {"wu": unit_key(wu), "initiative": initiative}
    db = store.db()
    found = TaskStats()
    found.tasks, found.open, found.replaced, found.conflicts = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE decided_by IS NULL AND replaced <> 1), count(*) FILTER (WHERE replaced <> 0),"
        f" count(*) FILTER (WHERE conflict) FROM task t WHERE {where}",
        values,
    ).fetchone()
    query = f"SELECT count(*) FROM task t JOIN task_launch a ON a.task_id = t.task_id WHERE {where}"
    (found.launches,) = db.execute(query, values).fetchone()
    found.states = _grouped(db, "t.state", where, values)
    decided = f"{where} AND t.decided_by IS NOT NULL"
    found.outcomes = _grouped(
        db,
        "CASE t.decided_by WHEN 'seal' THEN 'sealed' WHEN 'close' THEN 'closed' ELSE 'unconfirmed' END",
        decided,
        values,
    )
    found.roles = _roles(db, where, values)
    found.to_first_take = _durations(db, "first_take", where, values)
    found.to_end = _durations(db, "ended", f"{where} AND {_DONE}", values)
    return found


def _grouped(db: sqlite3.Connection, what: str, where: str, values: Values) -> dict[str, int]:
    query = f"SELECT {what}, count(*) FROM task t WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most"
    return dict(db.execute(query, {**values, "most": GROUPS_MAX}).fetchall())


def _roles(db: sqlite3.Connection, where: str, values: Values) -> list[RoleCount]:
    """Return the most frequent roles, and the others together."""
    rows = db.execute(
        "SELECT coalesce(asked, :none), count(*), count(*) FILTER (WHERE decided_by IS NULL AND replaced <> 1),"
        f" count(*) FILTER (WHERE decided_by IS NOT NULL AND state = 'completed') FROM task t WHERE {where}"
        " GROUP BY 1 ORDER BY 2 DESC, 1",
        {**values, "none": NO_ROLE},
    ).fetchall()
    others = rows[GROUPS_MAX:]
    if others:
        rows[GROUPS_MAX:] = [(OTHERS, *(sum(row[at] for row in others) for at in (1, 2, 3)))]
    return [RoleCount(*row) for row in rows]


def _durations(db: sqlite3.Connection, end: str, where: str, values: Values) -> Durations:
    source = f"FROM task t WHERE {where} AND t.{end} IS NOT NULL"
    (count,) = db.execute(f"SELECT count(*) {source}", values).fetchone()
    if not count:
        return Durations(0, ())
    query = f"SELECT {_DURATION.format(end=end)} {source} ORDER BY 1 LIMIT 1 OFFSET :at"
    places = ((count - 1) // 2, (count * 9 - 1) // 10, count - 1)
    found = [db.execute(query, {**values, "at": at}).fetchone()[0] for at in places]
    return Durations(count, [round(each / 1e6, 3) for each in found])
