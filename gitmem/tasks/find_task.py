"""Find tasks by their ids, or by unambiguous beginnings of them."""

from __future__ import annotations

from ..agents import presence
from ..index.resolve_id import choose
from ..records.ids import is_id
from . import load, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import TaskRecord
    from ..store import Store


def resolve(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the id that a text is, or of which it is the only beginning.

    Raises:
        UsageError: `unknown-task`, `ambiguous-task` or `short-id`.
    """
    if is_id("task", text) and db.execute("SELECT 1 FROM task WHERE task_id = ?", (text,)).fetchone():
        return text
    rows = db.execute(
        "SELECT task_id FROM task WHERE task_id >= ? AND task_id < ? LIMIT 5", (text, f"{text}\U0010ffff")
    )
    found = [str(id) for (id,) in rows] if text.startswith("task-") else []
    lists = ("gitmem task list", "gitmem task list")
    return choose(text, found, "task", "task show", lists, writing=writing, noun="task")


def require(store: Store, text: str, *, writing: bool = False) -> FoldedTask:
    """Return the task that an id or its beginning names.

    Args:
        writing: Whether the caller acts on it: then lines that claim to be from this clone and are not do not count.

    Raises:
        UsageError: See `resolve`.
    """
    db = store.db()
    task_id = resolve(db, text, writing=writing)
    found = load.load(db, task_id, forged=not writing) or load.load(db, task_id)
    assert found is not None  # it has a row
    return found


def record_of(db: sqlite3.Connection, task_id: str) -> TaskRecord | None:
    """Return the record of a task that this clone acts on, or None if the task is not here."""
    found = load.lowest_line(db, task_id, forged=False) or load.lowest_line(db, task_id)
    return found[1] if found is not None else None


def unit_of(db: sqlite3.Connection, task_id: str | None) -> str | None:
    """Return the work unit of a task; None if it has none, or is not here."""
    record = record_of(db, task_id) if task_id else None
    return record.get("wu_id") if record is not None else None


def is_left(store: Store, caller: Caller, task: FoldedTask) -> bool:
    """Return whether a session of the caller's identity that is over has a task; one that is live or unknown may be at work."""
    left = rules.left_take(task, (caller.reader, caller.session_id))
    session = presence.trusted(store, left.sender[1] or "") if left is not None else None
    return session is not None and not session.is_current
