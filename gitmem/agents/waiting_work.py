"""Tasks and claims, as far as the packages below them ask the index: which wait for a reader beside signals, and what they say.

An inbox with nothing unread is answered without the packages of tasks and claims, unless one of these finds something.
"""

from __future__ import annotations

from ..log.lines import format_at
from ..trust import own_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from .caller import Caller

    Values = Mapping[str, str | int | None]
    HeldSession = tuple[str, str | None, str | None, int, str | None, str | None]


# Tasks and claims that wait for a reader beside signals: an inbox with nothing unread is answered without their packages.
WEEK_MICROS = 7 * 24 * 3600 * 1_000_000  # for how long a giver is told that nobody has answered a handoff
DAY_MICROS = 24 * 3600 * 1_000_000
MONTH_MICROS = 30 * DAY_MICROS  # for which somebody is waited for who has not answered a signal
VOID_MICROS = 2 * DAY_MICROS  # for how long a taker is told that a part of what it accepted is not its own
GRACE_MICROS = 15 * 60 * 1_000_000  # for which a claim that is over may have been renewed elsewhere
_FREE = "t.decided_by IS NULL AND t.holder IS NULL AND t.replaced <> 1 AND t.cancels = 0 AND coalesce(t.deadline > :now, 1)"
# A task for a role is not offered to who has rejected it.
NOT_REFUSED = (
    "(t.refused_by IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(t.refused_by) r WHERE json_extract(r.value, '$[0]') = :reader"
    " AND json_extract(r.value, '$[1]') IS :session))"
)
# Each is a query for ids of tasks; each part of it uses an index: the unary plus keeps SQLite from that of `agent`, under which all tasks
# for roles are one entry. Handoffs to a reader end after a day.
_FOR_READER = (
    "SELECT t.task_id FROM task t WHERE t.decided_by IS NULL AND t.agent IN (:reader, :session) AND "
    + _FREE
    + " AND (t.purpose <> 'handoff' OR t.created > :day_ago)"
)
_FOR_ROLE = (
    "SELECT t.task_id FROM task t WHERE t.decided_by IS NULL AND +t.agent IS NULL AND t.target_role IN (:lifecycle, :role) AND "
    + _FREE
    + f" AND t.caller_session IS NOT :session AND (t.purpose <> 'handoff' OR t.created > :day_ago) AND {NOT_REFUSED}"
)
OFFERED = f"{_FOR_READER} UNION ALL {_FOR_ROLE}"
# A question, an end that is not sealed, a conflict or a mismatch of a task that the reader wrote. An accepted handoff waits for nobody.
ASKING = (
    "SELECT t.task_id FROM task t WHERE t.caller = :reader AND (t.decided_by IS NULL OR t.decided_by = 'status')"
    " AND (t.decided_by = 'status' OR t.state IN ('input-required', 'auth-required') OR t.conflict OR t.mismatch)"
    " AND (t.purpose <> 'handoff' OR t.conflict)"
)
# Tasks that the reader's session took by accepting a handoff, and that their callers sealed: perhaps with the giver's result.
VOID = (
    "SELECT t.task_id, h.task_id FROM task h JOIN task_link k ON k.from_id = h.task_id AND k.kind = 'handoff'"
    " JOIN task t ON t.task_id = k.to_id WHERE h.purpose = 'handoff' AND h.created > :void_since AND +h.holder = :reader"
    " AND h.holder_session IS :session AND t.decided_by = 'seal' AND t.holder_session IS NOT :session"
)
_GIVEN = (
    "SELECT 1 FROM task t WHERE t.caller = :reader AND (t.decided_by IS NULL OR t.decided_by = 'status')"
    " AND t.decided_by IS NULL AND t.purpose = 'handoff' AND t.created > :week_ago"
)
_CLAIM = "SELECT 1 FROM path_claim WHERE until > :now AND NOT released AND owner"
_FOUND = (
    f"SELECT EXISTS ({OFFERED}) OR EXISTS ({ASKING}) OR EXISTS ({_GIVEN}) OR EXISTS ({VOID})"
    f" OR (EXISTS ({_CLAIM} = :reader) AND EXISTS ({_CLAIM} <> :reader))"
)
_OWN = f"{_FOUND} OR EXISTS (SELECT 1 FROM task WHERE decided_by IS NULL AND holder = :reader) OR EXISTS ({_CLAIM} = :reader)"
_OF_ALL = (
    "SELECT EXISTS (SELECT 1 FROM task WHERE decided_by IS NULL AND holder IS NOT NULL)"
    " OR EXISTS (SELECT 1 FROM task WHERE decided_by IS NULL AND purpose <> 'handoff')"
    " OR EXISTS (SELECT 1 FROM task WHERE purpose = 'handoff' AND decided_by IS NULL AND created > :day_ago)"
    " OR EXISTS (SELECT 1 FROM path_claim WHERE until > :recent)"
)


def values_of(
    reader: str, session: str | None, lifecycle_role: str | None, specialty_profile: str | None, now: int
) -> Values:
    """Return the values for the queries of this module."""
    return {
        "reader": reader,
        "session": session,
        "lifecycle": lifecycle_role,
        "role": f"{lifecycle_role}/{specialty_profile}",
        "now": now,
        "day_ago": now - DAY_MICROS,
        "week_ago": now - WEEK_MICROS,
        "void_since": now - VOID_MICROS,
    }


def values_for(caller: Caller, now: int) -> Values:
    """Return the values for a caller, see `values_of`."""
    record = caller.record or {}
    return values_of(
        caller.reader, caller.session_id, record.get("lifecycle_role"), record.get("specialty_profile"), now
    )


def is_any(db: sqlite3.Connection, values: Values) -> bool:
    """Return whether a task or claim may wait for a reader; see `values_of`."""
    return bool(db.execute(_FOUND, values).fetchone()[0])


def is_any_of(db: sqlite3.Connection, values: Values) -> bool:
    """Return whether a task or claim may wait for a reader or be its own; see `values_of`."""
    return bool(db.execute(_OWN, values).fetchone()[0])


def is_any_of_all(db: sqlite3.Connection, now: int) -> bool:
    """Return whether a task is open, or anybody may have a claim, or a handoff waits."""
    values = {"day_ago": now - DAY_MICROS, "recent": now - GRACE_MICROS}
    return bool(db.execute(_OF_ALL, values).fetchone()[0])


def may_anybody_wait(db: sqlite3.Connection, now: int) -> bool:
    """Return whether a signal of the last month asks for an answer, or a task is open or waits for its caller's decision."""
    query = (
        "SELECT EXISTS (SELECT 1 FROM asked WHERE at > ?)"
        " OR EXISTS (SELECT 1 FROM task t WHERE t.decided_by IS NULL OR t.decided_by = 'status')"
    )
    return bool(db.execute(query, (format_at(now - MONTH_MICROS),)).fetchone()[0])


_OF_BODY = ("thread_id", "lane", "target_role", "requested_role", "requested_ownership_scope")


def task_row(db: sqlite3.Connection, task_id: str) -> Sequence[Any] | None:
    """Return what signals and nodes may contradict of a task; None if it is unknown.

    Returns:
        Its id, caller, agent, unit, initiative and state, whether it is open, its holder, the holder's session, what the holder stated, and
        as JSON its thread, lane, role, requested role and scope.
    """
    fields = ", ".join(f"'$.{name}'" for name in _OF_BODY)
    query = (
        "SELECT t.task_id, t.caller, t.agent, t.unit, t.initiative_id, t.state, t.decided_by IS NULL AND t.replaced <> 1, t.holder,"
        f" t.holder_session, t.actual, json_extract(l.body, {fields})"
        " FROM task t JOIN line l ON l.id = t.line WHERE t.task_id = ?"
    )
    row: Sequence[Any] | None = db.execute(query, (task_id,)).fetchone()
    return row


def open_tasks_on(db: sqlite3.Connection, unit: str, most: int) -> list[str]:
    """Return the open tasks on a work unit, the oldest first, at most so many."""
    query = (
        "SELECT task_id FROM task WHERE wu_id = ? AND decided_by IS NULL AND wu_id IS NOT NULL AND replaced <> 1"
        " ORDER BY created, task_id LIMIT ?"
    )
    return [str(id) for (id,) in db.execute(query, (unit, most))]


def is_proposal_of(db: sqlite3.Connection, signal_id: str, thread_id: str, sender: str) -> bool:
    """Return whether a signal of a thread is a proposal of this sender."""
    query = "SELECT 1 FROM signal WHERE signal_id = ? AND thread = ? AND sender = ? AND intent = 'PROPOSE'"
    return db.execute(query, (signal_id, thread_id, sender)).fetchone() is not None


def line_of_claim(db: sqlite3.Connection, claim_id: str) -> bytes | None:
    """Return the line by which a claim stands; None if it is unknown."""
    query = "SELECT l.body FROM path_claim c JOIN line l ON l.id = c.line WHERE c.claim_id = ?"
    row = db.execute(query, (claim_id,)).fetchone()
    return str(row[0]).encode() if row is not None else None


def is_claimed(db: sqlite3.Connection, unit: str) -> bool:
    """Return whether a claim names a work unit."""
    return db.execute("SELECT 1 FROM path_claim WHERE wu_id = ? LIMIT 1", (unit,)).fetchone() is not None


def held_session(db: sqlite3.Connection, ids: Iterable[str], until: int) -> HeldSession | None:
    """Return the one open session of this clone among these that holds its name until then.

    Returns:
        Its id, identity, workspace, when its name is free, and the two parts of its role. None without one, and with several.
    """
    query = (
        "SELECT session_id, agent_identity, workspace_id,"
        " (SELECT max(until) FROM tenure t WHERE t.session_id = s.session_id) AS held,"
        " lifecycle_role, specialty_profile FROM session s WHERE ended IS NULL AND held > ? AND session_id = ?"
    )
    found: list[HeldSession] = [row for id in ids for row in db.execute(query, (until, id)).fetchall()]
    return found[0] if len(found) == 1 and own_sessions.is_own(db, found[0][0]) else None
