"""Who waits for whom: answers that threads ask for, and tasks that nobody has taken, that somebody has, asks about or has done."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence, signal_rows, waiting_work
from ..agents.descriptions import sender_name_from
from ..log.lines import format_at
from ..order.task import HANDOFF, WAITING, WORKING
from ..outcome import Outcome, PartOfAnswer, command
from ..signals import next_steps
from ..signals.thread_lines import ThreadCache
from ..signals.thread_list import owes
from ..text.sanitize import title
from ..work import HANDOFF_MICROS, stored_tasks, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator

    from ..agents.caller import Caller
    from ..records.record_types import SignalRecord
    from ..signals.thread_list import Selection
    from ..store import Store
    from ..work.stored_tasks import OpenTask


ANSWER, TASK, ACCEPTANCE = "answer", "task", "acceptance"  # what is owed; also `handoff`
YOU, OWES, WAITS = "you", "owes", "waits"
LISTED = 50
ASKED_MAX = 500  # signals that ask for something, the newest, of which the threads are looked at
FOLD_MAX_BYTES = 1024 * 1024


class Wait(Outcome, kw_only=True):
    """Somebody waits for somebody.

    Attributes:
        waiter, owes: Their addresses; None for whoever has `role` may do it. `waiter_name`, `owes_name` are for people.
        you: Whether the caller `owes` it or `waits` for it; None otherwise.
        what: An `answer`, a `task`, its `acceptance` or a `handoff`.
        state: Of a task as A2A has it; None for an answer to a signal.
        is_held: Whether somebody has the task and was answered.
        role: The role that the task asks for, such as one that reviews.
        text: The beginning of what was said.
        since: When the waiting began, in ISO 8601.
        id: The signal or the task. `thread_id` is that of the signal.
        next: The command that ends the waiting if the caller owes it; for others the one that shows it.
    """

    waiter: str
    waiter_name: str
    owes: str | None
    owes_name: str
    you: str | None = None
    what: str
    state: str | None = None
    role: str | None = None
    is_held: bool = False
    text: str
    wu_id: str | None
    since: str
    id: str
    thread_id: str | None = None
    next: list[str] = []


class Waits(PartOfAnswer):
    """Who waits for whom, the longest first, before them what the caller owes; `more` is the number of those left out, the oldest."""

    rows: list[Wait]
    more: int = 0

    @property
    def steps(self) -> list[str]:
        """The commands that end what the caller owes longest."""
        return next((each.next for each in self.rows if each.you == OWES), [])

    def lines(self, without: Collection[str] = (), *, whole: bool = False, via: str = "gitmem") -> list[str]:
        """Return a line for each, see `PartOfAnswer.lines`."""
        return [" ".join(words_of(each)) + f" ({each.id})" for each in self.rows if each.id not in without]


def words_of(wait: Wait) -> tuple[str, str, str, str]:
    """Return four parts of a sentence for the caller, such as `Dora`, `waits for`, `you` and `to answer "Freeze it"`; they have a peer's text."""
    role = f" as {wait.role}" if wait.role and wait.owes and wait.what == TASK else ""
    waiter, verb = (YOU, "wait for") if wait.you == WAITS else (wait.waiter_name, "waits for")
    return waiter, verb, YOU if wait.you == OWES else wait.owes_name, f'{to_do(wait)} "{wait.text}"{role}'


def to_do(wait: Wait) -> str:
    """Return what is owed as a verb, such as `to answer`."""
    if wait.what == ANSWER:
        return "to answer"
    if wait.what == ACCEPTANCE:
        return "to accept" if wait.state == "completed" else f"to accept as {wait.state}"
    return (
        "to finish"
        if wait.state == WORKING or wait.is_held
        else "to take over"
        if wait.what == HANDOFF
        else "to take"
    )


def waits(
    store: Store,
    caller: Caller | None = None,
    *,
    only: Selection | None = None,
    limit: int = LISTED,
    fold_most: int = FOLD_MAX_BYTES,
) -> Waits:
    """Return who waits for whom. Mark nothing as read.

    Args:
        caller: The caller, if known: what it owes comes first.
        only: Only what is on a work unit, concerns an agent, or happened since a time.
        limit: The number of rows: of what the caller owes the oldest, of the others the newest.
        fold_most: Maximum bytes of lines of threads to fold; of further ones the receipts alone say what is answered.
    """
    found = [*_answers(store, caller, fold_most), *_of_tasks(store, caller)]
    if only is not None:
        found = [each for each in found if _matches(only, each)]
    found.sort(key=lambda each: (each.since, each.id))
    own = [each for each in found if each.you == OWES][:limit]
    others = [each for each in found if each.you != OWES]
    rows = own + others[max(0, len(others) - (limit - len(own))) :]
    return Waits(rows, len(found) - len(rows))


def _matches(only: Selection, wait: Wait) -> bool:
    is_new = not only.since or wait.since >= format_at(only.since)
    return is_new and only.has_unit(wait.wu_id) and only.has_any(wait.waiter, wait.owes)


def _answers(store: Store, caller: Caller | None, fold_most: int) -> Iterator[Wait]:
    """Yield who owes an answer to which signal."""
    db = store.db()
    cache, names = ThreadCache(db, fold_most), presence.names_by_reader(db)
    of_sessions = presence.names_by_session(db)
    asked = signal_rows.newest_asked(db, format_at(store.now() - waiting_work.MONTH_MICROS), ASKED_MAX)
    cache.lines.read_ahead([id for id, *_ in asked])
    for id, thread, readers in asked:
        record: SignalRecord | None = None
        for reader in readers:
            yours = caller is not None and reader in caller.ids
            if not owes(
                db, cache, thread, id, [reader, *(caller.ids if caller is not None and yours else ())]
            ):
                continue
            record = record or records.read_kind("signal", mailbox.line_of(db, id))
            if record is None:
                break
            sender = record["sender_identity"]
            if sender == reader:
                continue
            waits = caller is not None and sender in caller.ids
            yield Wait(
                waiter=sender,
                waiter_name=sender_name_from(of_sessions, record) or sender,
                owes=reader,
                owes_name=names.get(reader) or reader,
                you=OWES if yours else WAITS if waits else None,
                what=ANSWER,
                text=title(record["message"]),
                wu_id=record.get("wu_id"),
                since=record["at"],
                id=id,
                thread_id=thread,
                next=next_steps.decide(record) if yours else [command("gitmem", "thread", thread)],
            )


def _of_tasks(store: Store, caller: Caller | None) -> Iterator[Wait]:
    """Yield who waits for what of a task."""
    db, now = store.db(), store.now()
    names = presence.names_by_reader(db)
    offered = _offered(db, caller, now)
    for task in stored_tasks.awaited(db, now, now - HANDOFF_MICROS):
        waiter, owes, what = _sides(task)
        if waiter == owes:
            continue
        ours = caller.ids if caller is not None else []
        you = OWES if owes in ours or task.id in offered else WAITS if waiter in ours else None
        role = f"whoever is {task.role}" if task.role else "anybody"
        yield Wait(
            waiter=waiter,
            waiter_name=names.get(waiter) or waiter,
            owes=owes,
            owes_name=names.get(owes) or owes if owes else role,
            you=you,
            what=what,
            state=task.state,
            role=task.asked,
            is_held=bool(task.is_held),
            text=title(_question(db, task) or task.title),
            wu_id=task.unit,
            since=format_at(task.since),
            id=task.id,
            next=[command("gitmem", "task", _verb(task, what) if you == OWES else "show", task.id)],
        )


def _offered(db: sqlite3.Connection, caller: Caller | None, now: int) -> set[str]:
    """Return the tasks that the caller may take."""
    if caller is None:
        return set()
    rows = db.execute(waiting_work.OFFERED, waiting_work.values_for(caller, now))
    return {str(id) for (id,) in rows}


def _sides(task: OpenTask) -> tuple[str, str | None, str]:
    """Return who waits, for whom, and for what."""
    if task.is_done:
        return task.holder or task.agent or task.caller, task.caller, ACCEPTANCE
    if task.state in WAITING and task.holder:
        return task.holder, task.caller, ANSWER
    return task.caller, task.holder or task.agent, HANDOFF if task.purpose == HANDOFF else TASK


def _question(db: sqlite3.Connection, task: OpenTask) -> str:
    """Return what the holder of a task asks; "" if it asks nothing."""
    if task.is_done or task.state not in WAITING:
        return ""
    folded = task_state.load_task(db, task.id)
    asked = task_state.question_of(folded) if folded is not None else None
    return asked.record.get("message") or "" if asked is not None else ""


def _verb(task: OpenTask, what: str) -> str:
    """Return the subcommand of `gitmem task` by which whoever owes it goes on."""
    if what == ACCEPTANCE:
        return "accept"
    return "take" if task.holder is None else "show"
