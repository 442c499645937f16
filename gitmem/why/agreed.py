"""The thread in which a commit was agreed: that of its task, else those of its work unit; and who stands where now."""

from __future__ import annotations

from ..agents import presence
from ..log.lines import format_at, parse_at
from ..outcome import Outcome
from ..records.ids import unit_key
from ..signals import threads
from ..signals.agreement import FoldedThread
from ..signals.thread_outcomes import Proposal
from ..tasks import SUBMITTED, WAITING, load
from ..text.sanitize import title

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..tasks.fold import FoldedTask
    from ..tasks.task_facts import TaskEvent

THREADS_MAX = 3  # of a work unit
LOOKED_AT = 20
RECIPIENTS_MAX = 20
BY_TASK, BY_UNIT = "task", "work unit"
RELEASED, REJECTED, REPLACED = "given back", "rejected", "taken over"


class TaskAnswer(Outcome):
    """What somebody has done with a task: taking it answers the signal that asked for it.

    Attributes:
        agent, name: Who.
        state: What became of that: a state of tasks, `given back`, or `taken over` by somebody else; `rejected` without a take.
        at: Since when.
    """

    def __init__(self, agent: str, name: str, state: str, event: TaskEvent) -> None:
        self.agent = agent
        self.name = name
        self.state = state
        self.at = event.record["at"]


class AgreedThread(Outcome):
    """A thread about a commit's task or work unit.

    Attributes:
        by: `task` or `work unit`: how it belongs to the commit.
        agreed_on: The proposal that every party has agreed to; None if there is none.
        in_force: That proposal, else the latest one, or those that conflict.
        agreed, rejected, pending: The names of those who did not write it, by where they stand now.
        agreed_then: Those who had agreed when the commit was made, to the proposal in force then.
        replaced: Whether another one, or none, is in force now.
        ended: Why that one is not: `replaced` or `withdrawn`; "" if it is.
        reversed: Those who had agreed then, and are against what is in force now.
        answers: What its takers, and those who rejected it, did with the task; they are not pending.
    """

    def __init__(self, thread_id: str, by: str) -> None:
        self.thread_id = thread_id
        self.by = by
        self.agreed_on: Proposal | None = None
        self.in_force: list[Proposal] = []
        self.agreed: list[str] = []
        self.rejected: list[str] = []
        self.pending: list[str] = []
        self.agreed_then: list[str] = []
        self.replaced = False
        self.ended = ""
        self.reversed: list[str] = []
        self.answers: list[TaskAnswer] = []


class TaskOfCommit(Outcome):
    """The task of a commit: its title and state."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.title = ""
        self.state = "unknown"
        self.caller = ""
        self.thread_id: str | None = None


def task(db: sqlite3.Connection, task_id: str, folded: FoldedTask | None) -> TaskOfCommit:
    """Return the task that a record names, also one that is not here."""
    found = TaskOfCommit(task_id)
    if folded is not None:
        record = folded.record
        found.title, found.thread_id = title(record["message"]), record["thread_id"]
        found.state = folded.state
        found.caller = (
            presence.names_by_reader(db).get(record["sender_identity"]) or record["sender_identity"]
        )
    return found


def folded_task(db: sqlite3.Connection, task_id: str | None) -> FoldedTask | None:
    """Return a task with its events, if it is here."""
    return load.load(db, task_id) if task_id is not None else None


def _answers(db: sqlite3.Connection, task: FoldedTask) -> dict[tuple[str, str | None], TaskAnswer]:
    """Return what the last ones who took a task, or rejected it, did with it."""
    names = presence.names_by_reader(db)
    found: dict[tuple[str, str | None], TaskAnswer] = {}
    for event in [*task.rejections, *task.takes][-RECIPIENTS_MAX:]:
        agent = event.sender[0]
        state, last = (REJECTED, event) if event.is_rejection else _state(task, event)
        found[event.sender] = TaskAnswer(agent, names.get(agent) or agent, state, last)
    return found


def _state(task: FoldedTask, take: TaskEvent) -> tuple[str, TaskEvent]:
    """Return what became of a take, and the event that says so."""
    own = [each for each in task.events.values() if each.take == take.id and each is not take]
    ends = [each for each in own if task.counts(each) and (each.is_terminal or each.event == "release")]
    if ends:
        last = max(ends, key=lambda each: each.line)
        return RELEASED if last.event == "release" else str(last.state), last
    if take in task.held:
        return task.state, task.seal or task.close or _since(task, own) or take
    return REPLACED, take


def _since(task: FoldedTask, own: list[TaskEvent]) -> TaskEvent | None:
    """Return the event by which its holder waits for an answer, or has got one; None if neither is so."""
    if task.state == SUBMITTED:
        found = [
            each
            for each in task.events.values()
            if each.event == "message" and each.sender[0] == task.caller[0]
        ]
    else:
        found = [each for each in own if each.state in WAITING and each.state == task.state]
    return max(found, key=lambda each: each.line, default=None)


def threads_of(
    db: sqlite3.Connection, task: FoldedTask | None, wu_id: str | None, committed: int
) -> list[AgreedThread]:
    """Return the threads about a commit.

    Args:
        task: Its task.
        wu_id: Its work unit.
        committed: When it was made, in microseconds.
    """
    task_thread = task.record["thread_id"] if task is not None else None
    wanted = [(task_thread, BY_TASK)] if task_thread else []
    if wu_id:
        wanted += [(each, BY_UNIT) for each in _of_unit(db, wu_id, committed) if each != task_thread]
    found = [
        _thread(db, thread_id, by, committed, task if by == BY_TASK else None) for thread_id, by in wanted
    ]
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


def _thread(
    db: sqlite3.Connection,
    thread_id: str,
    by: str,
    committed: int,
    task: FoldedTask | None,
) -> AgreedThread | None:
    signals = threads.load(db, thread_id)
    folded = FoldedThread(signals)
    if folded.root is None:
        return None
    found = AgreedThread(thread_id, by)
    names = presence.names_by_reader(db)
    found.in_force = [Proposal(each, names) for each in folded.in_force.values()]
    found.agreed_on = found.in_force[0] if folded.agreed_on is not None else None
    answers = _answers(db, task) if task is not None else {}
    answered = {each for sender in answers for each in sender}
    before = FoldedThread(
        {id: each for id, each in signals.items() if parse_at(each.record["at"]) <= committed}
    )
    found.replaced = bool(before.in_force) and before.in_force.keys() != folded.in_force.keys()
    found.ended = next(filter(None, map(folded.ended, before.in_force)), "") if found.replaced else ""
    lists = {"agree": found.agreed, "reject": found.rejected, "pending": found.pending}
    for reader in list(folded.parties if folded.in_force else ())[:RECIPIENTS_MAX]:
        name = names.get(reader) or reader
        now, _ = folded.stands(reader)
        is_author = any(each.is_by(reader) for each in folded.in_force.values())
        if not (is_author and now != "reject") and (
            now != "pending" or not (folded.settled or reader in answered)
        ):
            lists[now].append(name)
        if reader in before.asked and before.stands(reader)[0] == "agree":
            found.agreed_then.append(name)
            if now not in ("agree", "pending"):
                found.reversed.append(name)
    told = {REJECTED: found.rejected}  # by a signal, too
    found.answers = [each for each in answers.values() if each.name not in told.get(each.state, ())]
    return found
