"""What an answer in the thread of a task changes of the task: the events that are written with it, in one entry.

The signal alone decides nothing: an addressee's REJECT comes with the status `rejected`, the caller's answer to a question with a
`message`. AGREE takes nothing.
"""

from __future__ import annotations

from ..order.task import WAITING
from ..outcome import command
from ..signals.reply import TaskAnswer
from . import append, load, rules, task_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import SignalFields, SignalRecord
    from ..store import Store
    from .append import EventContent


def of_reply(
    store: Store, caller: Caller, answered: SignalRecord, about: SignalRecord, fields: SignalFields
) -> TaskAnswer:
    """Return the events and remarks for a new signal in the thread of a task.

    Args:
        answered: The signal that it answers.
        about: The signal that names the task: the answered one, or the root of the thread.
        fields: Those of the new signal; it gets the ids of a task that it changes.
    """
    found = TaskAnswer()
    task_id = about.get("task_id") or ""
    db = store.db()
    task = load.load(db, task_id, forged=False) or load.load(db, task_id)
    if task is None or task.record["thread_id"] != fields["thread_id"]:
        return found
    if task.caller[0] == caller.reader:
        if (
            task.state in WAITING
            and task.holder is not None
            and answered["sender_identity"] == task.holder.sender[0]
        ):
            _put(store, caller, task, "message", {"message": fields["message"]}, found, fields)
        return found
    is_asked = task_signals.is_by_caller(about, task) and any(
        each in about["recipients"] for each in caller.ids
    )
    if not is_asked or fields["intent"] not in ("AGREE", "REJECT"):
        return found
    if fields["intent"] == "REJECT":
        _reject(store, caller, task, found, fields)
    elif _may_take(store, caller, task):
        found.warnings = [f"AGREE does not take {task_id}; `gitmem task take` does."]
        found.next = [command("gitmem", "task", "take", task_id)]
    return found


def _may_take(store: Store, caller: Caller, task: FoldedTask) -> bool:
    """Return whether the caller may take a task that it does not have."""
    sender = (caller.reader, caller.session_id)
    return rules.own_take(task, sender) is None and rules.take(task, sender, caller.ids, store.now()) is None


def _reject(store: Store, caller: Caller, task: FoldedTask, found: TaskAnswer, fields: SignalFields) -> None:
    """Add the event with which an addressee refuses a task, unless it has taken or refused it before."""
    task_id, sender = task.record["task_id"], (caller.reader, caller.session_id)
    why = rules.refuse(task, sender, caller.ids)
    if rules.own_take(task, sender) is not None:
        found.warnings = [f"You have {task_id}, and this REJECT does not give it back."]
        found.next = [command("gitmem", "task", "release", task_id)]
    elif fields.get("via"):
        found.warnings = [f"{task_id} is not rejected: only its addressee does that."]
    elif why is not None:
        found.warnings = [f"{task_id} {why[1]}: this REJECT changes nothing of it."]
    elif task.rejection_by(sender) is None:
        text = fields["message"]
        content: EventContent = {
            "state": "rejected",
            "message": text,
            "reason": task_signals.first_line(text),
        }
        _put(store, caller, task, "status", content, found, fields)
        is_only = task.record.get("agent") is not None
        found.warnings = [f"{task_id} is rejected." if is_only else f"{task_id} stays open for others."]


def _put(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    content: EventContent,
    found: TaskAnswer,
    fields: SignalFields,
) -> None:
    fields["task_id"] = fields["delegation_id"] = task.record["task_id"]
    _, line = append.event_line(
        store, caller, task, event, content, allow_secret=True
    )  # the signal is checked
    found.lines.append(line)
