"""Which tasks and claims wait for a reader beside signals, by the index alone.

An inbox with nothing unread is answered without the packages of tasks and claims, unless one of these finds something.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from .caller import Caller

    Values = Mapping[str, str | int | None]


WEEK_MICROS = 7 * 24 * 3600 * 1_000_000  # for how long a giver is told that nobody has answered a handoff
DAY_MICROS = 24 * 3600 * 1_000_000
VOID_MICROS = 2 * DAY_MICROS  # for how long a taker is told that a part of what it accepted is not its own
GRACE_MICROS = 15 * 60 * 1_000_000  # for which a claim that is over may have been renewed elsewhere

_FREE = "t.decided_by IS NULL AND t.holder IS NULL AND t.replaced <> 1 AND t.cancels = 0 AND coalesce(t.deadline > :now, 1)"
# A task for a role is not offered to who has rejected it; a rejection that was written elsewhere in the name of a session here changes nothing.
NOT_REFUSED = (
    "(t.refused_by IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(t.refused_by) r WHERE json_extract(r.value, '$[0]') = :reader"
    " AND json_extract(r.value, '$[1]') IS :session) OR EXISTS (SELECT 1 FROM entity_line e JOIN forged f ON f.line = e.line"
    " WHERE e.kind = 'task' AND e.id = t.task_id AND e.event = 'status' AND e.sender = :reader AND e.session IS :session))"
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
