"""What is owed on the page: decisions on signals, replies to workers, takes of tasks, and confirmations of results."""

from __future__ import annotations

from ..log.lines import format_at
from ..order.task import HANDOFF, SUBMITTED, WAITING
from ..signals.many_threads import owed
from ..tasks import HANDOFF_MICROS, load
from .texts import millis_of, put, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..order.thread import ThreadSignal
    from ..signals.many_threads import ManyThreads
    from ..tasks.task_list import TaskRow
    from .board_contract import Owed
    from .contract import TaskSpan
    from .lanes import Lanes

OWED_MAX = 500
QUESTIONS_MAX = 100  # tasks of which the question is read


class OwedRows:
    """What is owed, the oldest first.

    Args:
        threads: The signals of the page.
        tasks: Its tasks; `spans` are what the page shows of them, by id.
        now: Microseconds.

    Attributes:
        rows: The rows, the newest if there are too many.
        omitted: How many are left out.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        threads: ManyThreads,
        tasks: Sequence[TaskRow],
        spans: Mapping[str, TaskSpan],
        lanes: Lanes,
        now: int,
    ) -> None:
        self._db = db
        self._lanes = lanes
        self._now = now
        self._questions_left = QUESTIONS_MAX
        of_tasks: dict[str, Owed] = {}
        for task in tasks:
            row = self._of_task(task, spans[str(task.task_id)])
            if row is not None:
                of_tasks[str(task.task_id)] = row
        asked = [each for each in owed(db, threads) if not self._is_of_task(*each, of_tasks)]
        answers = [self._answer(*each) for each in asked[:OWED_MAX]]
        self.rows = sorted([*answers, *of_tasks.values()], key=lambda row: row["since"])[-OWED_MAX:]
        self.omitted = len(asked) + len(of_tasks) - len(self.rows)

    def _is_of_task(
        self, reader: str, signal: ThreadSignal, thread: str, of_tasks: Mapping[str, Owed]
    ) -> bool:
        """Return whether a task says already what is owed to its signal; then note that signal beside it."""
        row = of_tasks.get(signal.record.get("task_id") or "")
        if row is None or row.get("agent") not in (None, self._lanes.of(reader)):
            return False
        row.setdefault("signal", signal.id)
        row.setdefault("thread", thread)
        return True

    def _answer(self, reader: str, signal: ThreadSignal, thread: str) -> Owed:
        record = signal.record
        row: Owed = {
            "what": "answer",
            "agent": self._lanes.of(reader),
            "to": self._lanes.of(record["sender_identity"], None, record.get("sender_name")),
            "since": millis_of(record["at"]),
            "text": title(record["message"]),
            "signal": signal.id,
            "thread": thread,
        }
        put(row, "wu", record.get("wu_id"))
        put(row, "task", record.get("task_id"))
        return row

    def _of_task(self, task: TaskRow, span: TaskSpan) -> Owed | None:
        """Return what is owed for a task: of its caller to the worker, or of those who are asked to its caller."""
        caller = span["from"]
        worker = span.get("holder") or span.get("to") or caller
        row: Owed
        if task.is_unconfirmed:
            ended = span.get("ended", span["at"])
            row = {"what": "confirmation", "agent": caller, "to": worker, "since": ended, "text": ""}
        elif not span["open"]:
            return None
        elif task.state in WAITING:
            row = {"what": "reply", "agent": caller, "to": worker, "since": span["at"], "text": ""}
            self._put_question(row, task)
        elif task.state == SUBMITTED and not task.holder and self._may_be_taken(task):
            row = {"what": "take", "to": caller, "since": span["at"], "text": ""}
            if "to" in span:
                row["agent"] = span["to"]
            else:
                row["target"] = span.get("target", "")
        else:
            return None
        row["task"] = span["id"]
        row["text"] = row["text"] or title(str(task.title or ""))
        put(row, "wu", task.wu_id)
        return row

    def _put_question(self, row: Owed, task: TaskRow) -> None:
        """Set what a worker asks, and since when."""
        self._questions_left -= 1
        folded = load.load(self._db, str(task.task_id)) if self._questions_left >= 0 else None
        if folded is None or folded.holder is None:
            return
        asked = [
            each
            for each in folded.events.values()
            if each.state == task.state and each.take == folded.holder.id and folded.counts(each)
        ]
        if asked:
            last = max(asked, key=lambda each: each.line)
            row["since"] = millis_of(last.record["at"])
            row["text"] = title(last.record.get("message") or "")

    def _may_be_taken(self, task: TaskRow) -> bool:
        is_late = task.deadline is not None and task.deadline <= format_at(self._now)
        is_lapsed = task.purpose == HANDOFF and str(task.created_at) <= format_at(self._now - HANDOFF_MICROS)
        return not (is_late or is_lapsed or task.cancel_requested)
