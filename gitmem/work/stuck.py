"""Tasks that wait for somebody for too long: why, since when, and how badly. Clocks only decide what is displayed.

Handoffs are not among them: one without an answer is returned to its giver, and an accepted one waits for nobody.
"""

from __future__ import annotations

from ..agents import presence, waiting_work
from ..agents.delivery import delivery_lock
from ..commit_message import sanitize
from ..errors import GitmemError, UsageError
from ..log.lines import format_at
from ..order.content import ANNOUNCER, ESCALATION
from ..order.task import LEASE_MAX_MICROS, WAITING, escalation_id
from ..outcome import Outcome, command
from ..records.ids import keyed_id, unit_key
from ..records.lines import as_json
from . import stored_tasks, task_records, task_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..records.record_types import SignalFields
    from ..store import Store
    from .task_list import TaskRow


MINUTE = 60 * 1_000_000
LEVELS = ((120 * MINUTE, "critical"), (60 * MINUTE, "error"), (30 * MINUTE, "warning"))
# Later times come from a wrong clock: then the writing of the task counts.
AHEAD_MICROS = LEASE_MAX_MICROS + 5 * MINUTE


class StuckTask(Outcome):
    """A task that is stuck.

    Attributes:
        why: `untaken`, `crashed` (the lease is over and the session has ended), `overdue` (the lease is over), `lost` (so, of a task
            that may begin only once), `unanswered`, `timeout` (the deadline is over), or `orphaned` (nobody seals its result).
        level: `warning` after half an hour, `error` after an hour, `critical` after two.
        since: Since when, in ISO 8601.
        text: A sentence about it.
        step: The command that goes on with it.
    """

    task: TaskRow
    why: str
    level: str
    since: str
    text: str
    step: str


class StuckPage(Outcome):
    """Stuck tasks, see `find`; how many more there are; and the tasks whose stop was told to others now."""

    def __init__(self, stuck: Sequence[StuckTask], more: int) -> None:
        self.stuck = list(stuck)
        self.more = more
        self.escalated: list[str] = []
        self.warnings: list[str] = []
        self.next = [each.step for each in stuck[:3]]


def find(
    store: Store, caller: Caller | None = None, *, wu: str | None = None, limit: int = stored_tasks.LISTED
) -> StuckPage:
    """Return the stuck tasks, those of sessions of this clone first, then the longest first.

    Args:
        caller: Only its tasks, as in `task_list.list_tasks`.
        wu: Only tasks on this work unit.
        limit: The number of tasks to return.
    """
    now = store.now()
    where = ["1"]
    values: dict[str, str | int | None] = {
        "ahead": now + AHEAD_MICROS, "wu": unit_key(wu), "before": now - LEVELS[-1][0],
    }  # fmt: skip
    if caller is not None:
        from .task_list import OF_CALLER

        where.append(OF_CALLER)
        values |= waiting_work.values_for(caller, now)
    if wu:
        where.append("t.wu_id = :wu")
    db = store.db()
    found, more = stored_tasks.waiting_longest(db, " AND ".join(where), values, limit)
    if not found:  # of most looks beside another operation
        return StuckPage((), more)
    from . import task_list

    rows = task_list.rows_of(db, [row[0] for row in found])
    return StuckPage([_stuck(store, rows[row[0]], row, now) for row in found], more)


def _stuck(store: Store, task: TaskRow, row: Sequence[object], now: int) -> StuckTask:
    id, decided_by, state, holder, session_id, caller, deadline, once, waits, _, at = row
    assert isinstance(at, int)
    assert isinstance(waits, int)
    level = next(level for least, level in LEVELS if now - at >= least)
    who, asks = sanitize(str(holder)), sanitize(str(caller))
    waited = presence.format_age(now - waits)

    def step(word: str, *text: str) -> str:
        return command("gitmem", "task", word, str(id), *text)

    def made(why: str, text: str, next: str) -> StuckTask:
        return StuckTask(task, why, level, format_at(at), text, next)

    if decided_by is not None:
        return made("orphaned", f"its result came {waited}, and the session of {asks}, who asked for it, has ended",
                    step("accept", "its caller has ended"))  # fmt: skip
    if isinstance(deadline, int) and now - deadline >= LEVELS[-1][0]:
        return made("timeout", f"its deadline was {presence.format_age(now - deadline)}", step("show"))
    if holder is None:
        return made("untaken", f"nobody has taken it since {waited}", step("launch"))
    if state in WAITING:
        return made("unanswered", f"{who} asked {waited}", step("show"))
    session = presence.get(store, str(session_id)) if session_id is not None else None
    over = f"the time of {who} ended {waited}"
    if once:
        return made("lost", f"{over}; it begins only once", step("accept", "its worker is lost", "--failed"))
    if session is not None and not session.is_current:
        return made("crashed", f"{over}, its session has ended or is gone",
                    step("launch", "--again", "its worker is gone"))  # fmt: skip
    seen = f", its session was seen {presence.format_age(session.age)}" if session is not None else ""
    return made("overdue", f"{over}{seen}", step("launch", "--again", "its time ran out"))


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


def escalate_due(store: Store, caller: Caller) -> list[str]:
    """Escalate what is stuck, as a part of another operation; return a sentence if tasks of the caller's are. Never raise an error of ours."""
    try:
        found = find(store, limit=ESCALATED_MAX)
        escalate(store, caller, found, LOOKED_MAX)
    except GitmemError:
        return []
    own = sum(each.task.caller == caller.reader for each in found.stuck)
    return [f"Stuck tasks of yours: {own}; `gitmem task list --stuck` shows them."] if own else []


def _escalate(store: Store, caller: Caller, one: StuckTask) -> bool:
    task = task_rules.require(store, str(one.task.task_id), writing=True)
    take = task.holder.id if task.holder is not None and not task.is_finished else ""
    line = _event(store, caller, task, take, one)
    recipients = sorted(
        {task.caller[0], *([task.holder.sender[0]] if take and task.holder is not None else [])}
    )
    if not set(recipients) - set(caller.ids):
        if line is None:
            return False
        task_records.record(
            store, caller, [line], f"escalates {one.task.task_id}", task.record, text=one.level
        )
        return True
    from ..agents.addressing import Resolved  # hardly any look finds a task to escalate
    from ..signals import announcements, send

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
    id = escalation_id(task.record["task_id"], take, one.level)
    known = task.events.get(id)
    if (known is not None and known.is_derived) or task_records.too_many(
        store, caller, task, "escalate"
    ) is not None:
        return None
    _, line = task_records.event_line(
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
    from ..signals import announcements

    digest = keyed_id(ESCALATION, as_json([task_id, take, level, recipients]))
    fields = announcements.notice_fields(store, caller, ESCALATION, f"{digest} {task_id} is stuck: {level}")
    fields["recipients"] = list(recipients)
    fields["target_agent"] = recipients[0]
    fields["thread_id"] = keyed_id("thread", ANNOUNCER, ESCALATION, task_id)
    fields["interrupt_class"] = "priority"
    return fields
