"""What sessions of the page did after their last record: claims, commits, events of tasks, and rules that they passed."""

from __future__ import annotations

from ..index.engine import StepLimit
from ..tasks.task_list import array
from .texts import millis_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from .board_contract import PassedRule
    from .contract import ClaimSpan, CommitMark, SessionBar, TaskSpan

EVENT_STEPS = 10_000_000  # of SQLite, for the events of tasks
_EVENTS = (
    "SELECT e.session, max(l.at) FROM json_each(?) j CROSS JOIN task_event e ON e.task_id = j.value"
    " JOIN line l ON l.id = e.line WHERE e.session IS NOT NULL GROUP BY e.session"
)


def extend(bars: Sequence[SessionBar], signs: Sequence[tuple[str, int]], now: int) -> None:
    """Let each session that has not ended last at least until its last sign of life. Nothing counts after now.

    Args:
        bars: They are changed.
        signs: Sessions and times.
        now: Milliseconds.
    """
    last: dict[str, int] = {}
    for session, at in signs:
        if last.get(session, 0) < at <= now:
            last[session] = at
    for bar in bars:
        if "end" not in bar:
            bar["last"] = max(bar["last"], last.get(bar["id"], 0))


def find(
    db: sqlite3.Connection,
    tasks: Sequence[TaskSpan],
    claims: Sequence[ClaimSpan],
    commits: Sequence[CommitMark],
    passed: Sequence[PassedRule],
) -> list[tuple[str, int]]:
    """Return sessions and when they did something; of tasks nothing if they have too many events.

    A commit counts if a record names its session and not only another clone says so.
    """
    rows = StepLimit(db, EVENT_STEPS).ask(_rows, db, array(each["id"] for each in tasks))
    return [*((session, millis_of(at)) for session, at in rows or ()), *_signs(claims, commits, passed)]


def _rows(db: sqlite3.Connection, ids: str) -> list[tuple[str, str]]:
    return db.execute(_EVENTS, (ids,)).fetchall()


def _signs(
    claims: Sequence[ClaimSpan], commits: Sequence[CommitMark], passed: Sequence[PassedRule]
) -> Iterator[tuple[str, int]]:
    for claim in claims:
        if "session" in claim:
            yield claim["session"], claim["start"]
    for commit in commits:
        if "session" in commit and "inferred" not in commit and "foreign" not in commit:
            yield commit["session"], commit["at"]
    for row in passed:
        if "session" in row:
            yield row["session"], row["at"]
