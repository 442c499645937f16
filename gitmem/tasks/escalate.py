"""Escalate stuck tasks: an event of the task for each level, and a notice to whoever asked for it and whoever has it.

No process watches tasks. Whoever looks at them escalates what is stuck by then, at most once for each task, take and level: the event and
the notice (`signals.notices`) are the same in all clones.
"""

from __future__ import annotations

from ..agents.addressing import Resolved
from ..agents.delivery import delivery_lock
from ..errors import GitmemError, UsageError
from ..order.content import ANNOUNCER, ESCALATION
from ..records.ids import keyed_id
from ..records.lines import as_json
from ..signals import announcements, send
from . import append, find_task, stuck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import SignalFields
    from ..store import Store
    from .stuck import StuckPage, StuckTask

ESCALATED_MAX = 20  # in one call
LOOKED_MAX = 5  # as a part of another operation
LOCK_WAIT_SECONDS = 3.0


def escalate(store: Store, caller: Caller, page: StuckPage, most: int = ESCALATED_MAX) -> None:
    """Escalate the tasks of a page, unless that was done before; note on the page which were.

    Raises:
        StoreError: An event can't be recorded.
    """
    if not page.stuck:
        return
    with delivery_lock(store, "escalate tasks", wait_seconds=LOCK_WAIT_SECONDS):
        for each in page.stuck:
            if len(page.escalated) >= most:
                return
            try:
                is_new = _escalate(store, caller, each)
            except UsageError as error:
                page.warnings.append(f"{each.task.task_id} was not escalated: {error.message}")
                continue
            if is_new:
                page.escalated.append(str(each.task.task_id))


def look(store: Store, caller: Caller) -> list[str]:
    """Escalate what is stuck, as a part of another operation; return a sentence if tasks of the caller's are. Never raise an error of ours."""
    try:
        found = stuck.find(store, limit=ESCALATED_MAX)
        escalate(store, caller, found, LOOKED_MAX)
    except GitmemError:
        return []
    own = sum(each.task.caller == caller.reader for each in found.stuck)
    return [f"Stuck tasks of yours: {own}; `gitmem task list --stuck` shows them."] if own else []


def _escalate(store: Store, caller: Caller, one: StuckTask) -> bool:
    task = find_task.require(store, str(one.task.task_id), writing=True)
    take = task.holder.id if task.holder is not None and not task.is_finished else ""
    line = _event(store, caller, task, take, one)
    recipients = sorted(
        {task.caller[0], *([task.holder.sender[0]] if take and task.holder is not None else [])}
    )
    if not set(recipients) - set(caller.ids):
        if line is None:
            return False
        append.record(store, caller, [line], f"escalates {one.task.task_id}", task.record, text=one.level)
        return True
    fields = _notice(store, caller, str(one.task.task_id), take, one.level, recipients)
    if announcements.is_notice_recorded(store, caller, fields):
        return False
    stream, body = store.line("signal", fields)
    resolved = [Resolved(address, address, "exact") for address in recipients]
    send.record_signal(store, caller, stream, body, resolved, more=[line] if line is not None else ())
    return True


def _event(
    store: Store, caller: Caller, task: FoldedTask, take: str, one: StuckTask
) -> tuple[str, bytes] | None:
    """Return the line of the event; None if the task has it, or has too many events."""
    id = keyed_id("tev", "escalate", task.record["task_id"], take, one.level)
    if id in task.events or append.too_many(store, caller, task, "escalate") is not None:
        return None
    _, line = append.event_line(
        store,
        caller,
        task,
        "escalate",
        {"take": take or None, "level": one.level, "reason": one.why},
        event_id=id,
    )
    return line


def _notice(
    store: Store, caller: Caller, task_id: str, take: str, level: str, recipients: Sequence[str]
) -> SignalFields:
    """Return the fields of the notice: functions of its key, which has a digest of all that it depends on."""
    digest = keyed_id(ESCALATION, as_json([task_id, take, level, recipients]))
    fields = announcements.notice_fields(store, caller, ESCALATION, f"{digest} {task_id} is stuck: {level}")
    fields["recipients"] = list(recipients)
    fields["target_agent"] = recipients[0]
    fields["thread_id"] = keyed_id("thread", ANNOUNCER, ESCALATION, task_id)
    fields["interrupt_class"] = "priority"
    return fields
