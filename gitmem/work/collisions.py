"""Work that was delegated twice, and tasks that two took apart: both sides are told, and which task stays.

Nothing here decides anything of a task. Two delegations are of the same work if they have the work unit and the requested role,
or the brief, or the idempotency key, and neither names the other.
"""

from __future__ import annotations

from ..agents import delivery, heartbeats
from ..commit_message import sanitize
from ..order.task import may_decide
from ..outcome import command
from . import stored_tasks, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator

    from ..agents.caller import Caller
    from ..order.task import FoldedTask, Sender, TaskEvent
    from ..store import Store
    from .stored_tasks import Delegation


LISTED, LOOKED_MAX = 5, 20
TWICE = "delegated twice"


def sentences(db: sqlite3.Connection, task_id: str, viewer: Sender | None) -> list[str]:
    """Return a sentence about each open delegation of the same work, with what the viewer may do about it.

    Args:
        viewer: Identity and session of whoever reads it; None if that is not known.
    """
    return [text for _, _, text in _about(db, task_id, viewer)]


def of_answer(store: Store, caller: Caller | None, task_id: str) -> list[str]:
    """Return `sentences` for an answer to the caller, whose session then needs no notice of them."""
    viewer = (caller.reader, caller.session_id) if caller is not None else None
    found = sentences(store.db(), task_id, viewer)
    if found and caller is not None and caller.session_id is not None:
        delivery.drop_notices(store.repo.state, caller.session_id, f"{TWICE}: {task_id}: ")
    return found


def _about(
    db: sqlite3.Connection, task_id: str, viewer: Sender | None
) -> Iterator[tuple[Delegation, str, str]]:
    """Yield each delegation of the same work with a word and a sentence; of a task that gives way only the one that stays."""
    others = stored_tasks.of_same_work(db, task_id, LISTED)
    if not others:
        return
    task = stored_tasks.delegation(db, task_id)
    if task.key < others[0].key:
        for other in others:
            yield other, f"{task_id}/{other.task_id}", _sentence(other, task, other, viewer)
    else:
        first = others[0]
        stays = all(first.key < each.key for each in stored_tasks.of_same_work(db, first.task_id, 1))
        word = "gives-way" if stays else "open"
        yield (
            first,
            f"{task_id}/{first.task_id}/{word}",
            _sentence(first, first if stays else None, task, viewer),
        )


def _sentence(other: Delegation, stays: Delegation | None, ends: Delegation, viewer: Sender | None) -> str:
    """Return what a viewer of one of two delegations should know of the other one.

    Args:
        stays: The one that stays; None if both give way to others, which are not of the same work as each other.
    """
    who = "You" if viewer is not None and other.caller[0] == viewer[0] else sanitize(other.caller[0])
    has = ""
    if other.holder is not None:
        has = ", and you have it" if other.holder == viewer else f", and {sanitize(other.holder[0])} has it"
    said = f"{who} delegated the same work as {other.task_id}{has}."
    if stays is None:
        return f"{said} Agree who cancels."
    said = f"{said} {stays.task_id} stays"
    if _may_cancel(ends, viewer):
        which = "the other" if ends is other else "this"
        return f"{said}. Cancel {which} one: {command('gitmem', 'task', 'cancel', ends.task_id)}"
    if ends is not other and ends.holder is not None and ends.holder == viewer:
        return f"{said}. Give this one back: {command('gitmem', 'task', 'release', ends.task_id, TWICE)}"
    return f"{said}; {sanitize(ends.caller[0])} should cancel {ends.task_id}."


def _may_cancel(task: Delegation, viewer: Sender | None) -> bool:
    return viewer is not None and may_decide(viewer[0], task.caller[0])


def news(store: Store, since: int = 0, most: int = LOOKED_MAX) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: the session, a word for what it is about, and a sentence.

    Args:
        since: The line up to which they were told before.
        most: The number of tasks that are read, of each kind.
    """
    here = frozenset(heartbeats.known_sessions(store))
    db = store.index.db
    for task_id in stored_tasks.delegated_twice(db, here, most):
        yield from _news_of_same_work(db, task_id, here)
    for task_id in stored_tasks.taken_apart(db, here, most, since):
        task = task_state.load_task(db, task_id)
        if task is None:
            continue
        for take in task.held if task.conflict and not task.is_finished else ():
            if take.sender[1] in here:
                yield take.sender[1] or "", f"{task_id}/{take.id}", _conflict(task, take)
        for result in task.late:
            if result.sender[1] in here:
                show = command("gitmem", "task", "show", task_id)
                yield result.sender[1] or "", f"{task_id}/{result.id}", f"late: {_late(task)} {show}"


def _news_of_same_work(
    db: sqlite3.Connection, task_id: str, here: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    task = stored_tasks.delegation(db, task_id)
    for who in dict.fromkeys(filter(None, (task.caller, task.holder))):
        for other, about, text in _about(db, task_id, who) if who[1] in here else ():
            if (other.caller, task.caller) != (who, who):  # the answer to its second delegation said it
                yield who[1] or "", about, f"{TWICE}: {task_id}: {text}"


def _late(task: FoldedTask) -> str:
    """Return why a late result does not count."""
    own = f"your result of {task.record['task_id']} came late"
    decision = task.seal or task.close
    if task.outcome is not None and task.outcome.event == "status":
        return f"{own}: that of {_name(task.outcome)} {'counts' if decision is None else 'was accepted'}:"
    by = sanitize(decision.sender[0] if decision is not None else task.caller[0])
    return f"{own}: {by} had ended the task as {task.state}:"


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


def _conflict(task: FoldedTask, take: TaskEvent) -> str:
    """Return what a taker is told about takes that it had not seen."""
    task_id = task.record["task_id"]
    others = ", ".join(sanitize(each.sender[0]) for each in task.held if each is not take)[:200]
    both = f"conflict: {others} took {task_id}, too, in a clone that had not synced. The first result counts. Talk"
    if take is task.held[0]:
        return f"{both} to them: {command('gitmem', 'task', 'show', task_id)}"
    return f"{both}, or give yours back: {command('gitmem', 'task', 'release', task_id, 'taken twice')}"
