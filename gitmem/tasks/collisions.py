"""Work that was delegated twice, and tasks that two took apart: both sides are told, and the first take decides.

Nothing here decides anything of a task. Two delegations are of the same work if they have the work unit and the requested role,
or the brief, or the idempotency key, and neither names the other.
"""

from __future__ import annotations

from ..agents import heartbeats
from ..commit_message import sanitize
from ..records.codec import as_json
from ..text.shell_quote import command
from . import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from ..store import Store
    from .fold import FoldedTask
    from .task_facts import TaskEvent

LISTED, LOOKED_MAX = 5, 20
_OPEN = "{0}.decided_by IS NULL AND {0}.replaced <> 1 AND {0}.cancels = 0"
_SAME = " UNION ".join(
    f"SELECT o.task_id, o.caller, o.caller_session, o.holder, o.created FROM task a CROSS JOIN task o ON o.{key} = a.{key}"
    f" WHERE a.task_id = :id AND o.task_id <> a.task_id AND o.{key} IS NOT NULL AND {_OPEN.format('o')} AND {_OPEN.format('a')}"
    " AND NOT EXISTS (SELECT 1 FROM task_link k WHERE k.to_id IN (o.task_id, a.task_id) AND k.from_id IN (o.task_id, a.task_id))"
    for key in ("work", "twin")
)
# Tasks of sessions of this clone, the latest first, so that others' tasks, of any number, crowd nothing out.
_HERE = " AND {name} IN (SELECT value FROM json_each(:here)) AND NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = t.line)"
_TWICE = " UNION ".join(
    f"SELECT * FROM (SELECT t.task_id FROM task t WHERE t.decided_by IS NULL AND t.{key} IS NOT NULL"
    f"{_HERE.format(name=name)} AND EXISTS (SELECT 1 FROM task o WHERE o.{key} = t.{key} AND o.decided_by IS NULL AND o.task_id <> t.task_id)"
    " ORDER BY t.created DESC, t.task_id LIMIT :most)"
    for key in ("work", "twin")
    for name in ("t.caller_session", "t.holder_session")
)
_OF_CALLER = "SELECT caller, caller_session, holder_session FROM task WHERE task_id = ?"
_IN_CONFLICT = (
    "SELECT t.task_id FROM task t WHERE t.conflict = 1 AND t.decided_by IS NULL AND EXISTS (SELECT 1 FROM task_event e WHERE"
    " e.task_id = t.task_id AND e.event = 'take' AND e.session IN (SELECT value FROM json_each(:here))"
    " AND NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = e.line)) ORDER BY t.created DESC, t.task_id LIMIT :most"
)
_MARK = "task collisions"  # in the index: the line up to which sessions were told
_MARKS = "SELECT (SELECT value FROM meta WHERE key = ?), (SELECT max(id) FROM line)"


class SameWork:
    """An open delegation of the work of another one.

    Attributes:
        holder: Who has taken it; None while nobody has.
    """

    __slots__ = ("caller", "caller_session", "holder", "task_id")

    def __init__(self, task_id: str, caller: str, caller_session: str | None, holder: str | None) -> None:
        self.task_id = task_id
        self.caller = caller
        self.caller_session = caller_session
        self.holder = holder

    def sentence(self, task_id: str) -> str:
        """Return what whoever concerns the other task should know."""
        if self.holder is not None:
            return (
                f"{sanitize(self.holder)} has the same work already, as {self.task_id} of {sanitize(self.caller)}. "
                f"If that is enough: {command('gitmem', 'task', 'cancel', task_id)}."
            )
        return f"{sanitize(self.caller)} delegated the same work as {self.task_id}. The first take decides: agree who cancels."


def same_work(db: sqlite3.Connection, task_id: str) -> list[SameWork]:
    """Return open delegations of the same work, the earliest ones."""
    rows = db.execute(f"{_SAME} ORDER BY 5, 1 LIMIT {LISTED}", {"id": task_id})
    return [SameWork(*row[:4]) for row in rows]


def sentences(db: sqlite3.Connection, task_id: str) -> list[str]:
    """Return a sentence about each open delegation of the same work."""
    return [each.sentence(task_id) for each in same_work(db, task_id)]


def news(store: Store, most: int = LOOKED_MAX) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: the session, a word for what it is about, and a sentence.

    Nothing if no line has arrived since everything was yielded.

    Args:
        most: The number of tasks that are read, of each kind.
    """
    db = store.index.db
    before, newest = db.execute(_MARKS, (_MARK,)).fetchone()
    if before == str(newest):
        return
    here = heartbeats.known_sessions(store).keys()
    values = {"here": as_json(sorted(here)), "most": most}
    for (task_id,) in db.execute(_TWICE, values).fetchall():
        caller, session, holder_session = db.execute(_OF_CALLER, (task_id,)).fetchone()
        for other in same_work(db, task_id):
            for who in {session, holder_session} & here:
                if (other.caller, other.caller_session) != (caller, session) or who != session:
                    yield (
                        who,
                        f"{task_id}/{other.task_id}",
                        f"delegated twice: {task_id}: {other.sentence(task_id)}",
                    )
    for (task_id,) in db.execute(_IN_CONFLICT, values).fetchall():
        task = load.load(db, task_id, forged=False)
        held = task.held if task is not None and task.conflict else []
        for take in held:
            session = take.sender[1] or ""
            others = ", ".join(sanitize(each.sender[0]) for each in held if each is not take)[:200]
            if session in here:
                yield session, f"{task_id}/{take.id}", _conflict(task_id, others, is_first=take is held[0])
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_MARK, str(newest)))


def about_result(task: FoldedTask, event_id: str) -> list[str]:
    """Return what the writer of a result, or of a seal, should know of other results and takes."""
    own = task.events.get(event_id)
    by = _name(task.outcome) if task.outcome is not None else "its caller"
    if own in task.late:
        return [f"Your result is late: that of {by} counts."]
    if own is not None and own is task.seal and task.outcome is not None and task.outcome.event == "status":
        others = ", ".join(dict.fromkeys(map(_name, task.late)))[:200]
        return [f"It accepts the result of {by}{f'; another result exists, of {others}' if others else ''}."]
    if own is not None and own is task.outcome and task.conflict:
        others = ", ".join(_name(each) for each in task.held if each.id != own.take)[:200]
        return [f"{others} took it, too: the first result counts, until the caller seals it."]
    return []


def _name(event: TaskEvent) -> str:
    return sanitize(event.record.get("sender_name") or event.sender[0])


def _conflict(task_id: str, others: str, *, is_first: bool) -> str:
    """Return what a taker is told about takes that it had not seen."""
    both = f"conflict: {others} took {task_id}, too, in a clone that had not synced. The first result counts: talk"
    if is_first:
        return f"{both}: {command('gitmem', 'task', 'show', task_id)}"
    give_back = command("gitmem", "task", "release", task_id, "--reason", "taken twice")
    return f"{both}, or give yours back: {give_back}"
