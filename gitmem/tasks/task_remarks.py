"""What is said beside a task that does not count: forged events, and signals of its thread that contradict its record."""

from __future__ import annotations

from .. import records
from ..agents import presence
from ..agents.serialize import sender_name_from
from ..commit_message import sanitize
from ..outcome import Outcome
from ..signals import may_contradict, task_records
from . import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..records.record_types import SignalRecord, TaskRecord
    from ..records.shown_types import TaskDifference

READ_MAX = 100  # the latest signals of a thread, which are compared
FORGED_MAX = 50
_FORGED = (
    "SELECT DISTINCT e.event, f.name FROM task_event e JOIN forged f ON f.line = e.line WHERE e.task_id = ?"
    " ORDER BY e.event, f.name LIMIT ?"
)
_OF_THREAD = "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? ORDER BY l.at DESC, l.body DESC LIMIT ?"


class Contradiction(Outcome):
    """A signal that says something else of a task than its record, which counts."""

    def __init__(
        self, signal: SignalRecord, sender_name: str | None, contradicts: Sequence[TaskDifference]
    ) -> None:
        self.signal_id = signal["signal_id"]
        self.sender_identity = signal["sender_identity"]
        self.sender_name = sender_name
        self.contradicts = list(contradicts)


def contradictions(db: sqlite3.Connection, task: TaskRecord, *, most: int = READ_MAX) -> list[Contradiction]:
    """Return the signals of a task's thread that differ from its record, oldest first.

    Args:
        most: The number of signals to compare, the latest ones.
    """
    tasks, names = task_records.TaskRecords(db), presence.names_by_session(db)
    found = []
    for (body,) in reversed(db.execute(_OF_THREAD, (task["thread_id"], most)).fetchall()):
        signal = records.read_kind("signal", body.encode())
        if signal is None or not may_contradict(signal):
            continue
        differs = [each for each in tasks.of_signal(signal) if each["task_id"] == task["task_id"]]
        if differs:
            found.append(Contradiction(signal, sender_name_from(names, signal), differs))
    return found


def forged(db: sqlite3.Connection, task_id: str) -> list[str]:
    """Return a sentence for a record that makes somebody else the caller, and for each kind of event that claims to be from this clone."""
    other, found = load.other_record(db, task_id), []
    if other is not None:
        who, caller = (sanitize(each["sender_identity"]) for each in other)
        found.append(
            f"FORGED: an earlier record by {who} has the id of this task by {caller}. It has no effect on commands here; other clones "
            f"take {who} for the caller."
        )
    return found + [
        f"FORGED: a {sanitize(event)} of this task claims to be from {sanitize(name)} of this clone but was not written here. "
        "It has no effect on commands here; other clones count it."
        for event, name in db.execute(_FORGED, (task_id, FORGED_MAX)).fetchall()
    ]
