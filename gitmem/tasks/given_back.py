"""Cancel what its writer wants canceled once the writer is told that it was given back. To be shown a result accepts nothing.

The seals are recorded with the receipts.
"""

from __future__ import annotations

from ..log.lines import digest
from . import append, load, rules, task_decisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import ShownSignal
    from ..store import Store
    from .append import EventContent


def cancellations(store: Store, caller: Caller, shown: Iterable[ShownSignal]) -> list[tuple[str, bytes]]:
    """Return the seals that cancel tasks of these signals: those that the caller's session wrote and wants canceled, and that nobody has any more.

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
        fields = _cancellation(task)
        if fields is not None and task_decisions.doubt(store, task) is None:
            _, found[task_id] = append.event_line(store, caller, task, "seal", fields)
    return list(found.values())


def _cancellation(task: FoldedTask) -> EventContent | None:
    """Return the fields of a seal that cancels a task; None if nobody who may has asked for that, or somebody has the task."""
    wishes = [each for each in task.cancels if rules.close(task, each.sender) is None]
    if not wishes or task.is_finished or not rules.may_cancel_at_once(task):
        return None
    return {"outcome": wishes[-1].id, "answers_digest": digest(wishes[-1].line), "state": "canceled"}
