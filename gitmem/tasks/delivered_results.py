"""Seal what was shown to the session that wrote a task: a result, or that a task which it wants canceled was given back.

The seals are recorded with the receipts.
"""

from __future__ import annotations

from ..log.lines import digest
from . import append, load, rules, task_decisions, task_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..records.shown_types import ShownSignal
    from ..store import Store
    from .append import EventContent
    from .fold import FoldedTask


def seals(store: Store, caller: Caller, shown: Iterable[ShownSignal]) -> list[tuple[str, bytes]]:
    """Return the seals of the tasks that the caller's session wrote, and whose result or release is in these signals.

    A result that may be tried again, that is shown in part, that only claims to be from this clone, or that may be of another text is not sealed. A task that is
    to be canceled and that nobody has any more ends as its writer's own cancellation would end it now.

    Args:
        shown: Signals that were shown to the caller as their reader, not by a look into somebody's inbox.
    """
    found: dict[str, tuple[str, bytes]] = {}
    for signal in shown:
        task_id = signal.get("task_id")
        if not task_id or task_id in found or "message_cut" in signal:
            continue
        task = load.load(store.db(), task_id, forged=False)
        if task is None or rules.seal(task, (caller.reader, caller.session_id)) is not None:
            continue
        fields = task_decisions.outcome_fields(task) if _is_result(task, signal) else _cancellation(task)
        if fields is not None and task_decisions.doubt(store, task) is None:
            _, found[task_id] = append.event_line(store, caller, task, "seal", fields)
    return list(found.values())


def _cancellation(task: FoldedTask) -> EventContent | None:
    """Return the fields of a seal that cancels a task; None if nobody who may has asked for that, or somebody has the task."""
    wishes = [each for each in task.cancels if rules.close(task, each.sender) is None]
    if not wishes or task.is_finished or not rules.may_cancel_at_once(task):
        return None
    return {"outcome": wishes[-1].id, "answers_digest": digest(wishes[-1].line), "state": "canceled"}


def _is_result(task: FoldedTask, signal: Mapping[str, Any]) -> bool:
    """Return whether a signal tells about the outcome of a task: anybody may name a task in one."""
    result = task.outcome
    if not task_signals.tells_caller(task) or task.decided_by != "status" or result is None:
        return False
    sender = signal["sender_identity"], signal.get("sender_session") or None
    if sender != result.sender or signal["message"] != task_signals.result_text(task, result):
        return False
    error = (result.record.get("payload") or {}).get("error")
    return not (isinstance(error, dict) and error.get("retryable") is True)
