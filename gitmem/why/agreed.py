"""The thread in which a commit was agreed: that of its task, else those of its work unit; and who stands where now."""

from __future__ import annotations

from ..agents import presence
from ..log.lines import format_at, parse_at
from ..outcome import Outcome
from ..records.ids import unit_key
from ..signals import threads
from ..signals.causality import FoldedThread
from ..tasks import find_task
from ..text.sanitize import title

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

THREADS_MAX = 3  # of a work unit
LOOKED_AT = 20
RECIPIENTS_MAX = 20
BY_TASK, BY_UNIT = "task", "work unit"


class AgreedThread(Outcome):
    """A thread about a commit's task or work unit.

    Attributes:
        by: `task` or `work unit`: how it belongs to the commit.
        agreed, rejected, pending: The names of recipients by where they stand now.
        agreed_then: Those who had agreed when the commit was made.
        reversed: Those who had agreed then, and do not any more.
    """

    __slots__ = (
        "thread_id",
        "by",
        "title",
        "opened_by",
        "agreed",
        "rejected",
        "pending",
        "agreed_then",
        "reversed",
    )

    def __init__(self, thread_id: str, by: str) -> None:
        self.thread_id = thread_id
        self.by = by
        self.title = ""
        self.opened_by = ""
        self.agreed: list[str] = []
        self.rejected: list[str] = []
        self.pending: list[str] = []
        self.agreed_then: list[str] = []
        self.reversed: list[str] = []


class TaskOfCommit(Outcome):
    """The task of a commit: its title and state."""

    __slots__ = ("task_id", "title", "state", "caller", "thread_id")

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.title = ""
        self.state = "unknown"
        self.caller = ""
        self.thread_id: str | None = None


def task(db: sqlite3.Connection, task_id: str) -> TaskOfCommit:
    """Return the task that a record names, also one that is not here."""
    found = TaskOfCommit(task_id)
    record = find_task.record_of(db, task_id)
    if record is not None:
        row = db.execute("SELECT state FROM task WHERE task_id = ?", (task_id,)).fetchone()
        found.title, found.thread_id = title(record["message"]), record["thread_id"]
        found.state = str(row[0]) if row is not None else found.state
        found.caller = (
            presence.names_by_reader(db).get(record["sender_identity"]) or record["sender_identity"]
        )
    return found


def threads_of(
    db: sqlite3.Connection, task_thread: str | None, wu_id: str | None, committed: int
) -> list[AgreedThread]:
    """Return the threads about a commit.

    Args:
        task_thread: The thread of its task.
        wu_id: Its work unit.
        committed: When it was made, in microseconds.
    """
    wanted = [(task_thread, BY_TASK)] if task_thread else []
    if wu_id:
        wanted += [(each, BY_UNIT) for each in _of_unit(db, wu_id, committed) if each != task_thread]
    found = [_thread(db, thread_id, by, committed) for thread_id, by in wanted]
    kept = [
        each
        for each in found
        if each is not None and (each.by == BY_TASK or each.agreed_then or each.rejected)
    ]
    return kept[:THREADS_MAX]


def _of_unit(db: sqlite3.Connection, wu_id: str, committed: int) -> list[str]:
    """Return the threads with a proposal on a work unit before a commit, the last one first."""
    rows = db.execute(
        "SELECT s.thread, max(l.at) FROM signal s JOIN line l ON l.id = s.line WHERE s.wu_id = ? AND s.intent = 'PROPOSE'"
        " AND s.wu_id <> '' AND l.at <= ? GROUP BY s.thread ORDER BY 2 DESC LIMIT ?",
        (unit_key(wu_id), format_at(committed), LOOKED_AT),
    )
    return [str(thread) for thread, _ in rows.fetchall()]


def _thread(db: sqlite3.Connection, thread_id: str, by: str, committed: int) -> AgreedThread | None:
    signals = threads.load(db, thread_id)
    folded = FoldedThread(signals)
    if folded.root is None:
        return None
    found = AgreedThread(thread_id, by)
    names = presence.names_by_reader(db)
    root = folded.root.record
    found.title = title(root["message"])
    found.opened_by = root.get("sender_name") or root["sender_identity"]
    before = FoldedThread(
        {id: each for id, each in signals.items() if parse_at(each.record["at"]) <= committed}
    )
    for reader in list(dict.fromkeys(root["recipients"]))[:RECIPIENTS_MAX]:
        name = names.get(reader) or reader
        now, then = folded.decision(reader), before.decision(reader) if before.root is not None else None
        intent = now.intent if now is not None else ""
        {"AGREE": found.agreed, "REJECT": found.rejected, "COUNTER": found.rejected}.get(
            intent, found.pending
        ).append(name)
        if then is not None and then.intent == "AGREE":
            found.agreed_then.append(name)
            if intent != "AGREE":
                found.reversed.append(name)
    return found
