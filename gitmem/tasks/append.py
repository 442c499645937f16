"""Append lines of tasks to the log: the event with what its writer had seen, and the message of its commit."""

from __future__ import annotations

from ..agents import descriptors
from ..commit_message import SUBJECT_MAX, body, cut, sanitize
from ..log.lines import CommitMessage
from ..order.task import TERMINAL
from ..outcome import Outcome
from ..records import ids
from . import EVENTS_MAX, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NotRequired, TypedDict

    from ..agents.caller import Caller
    from ..log.local_log import Appended
    from ..order.task import FoldedTask, TaskEvent
    from ..records.record_types import TaskRecord
    from ..store import Store
    from .rules import Refusal

    class TakeFacts(TypedDict):
        """What a take or a launch says about the worker: role, scope, and what it runs in."""

        actual_role: NotRequired[dict[str, Any]]
        actual_ownership_scope: NotRequired[dict[str, Any]]
        model: NotRequired[str | None]
        client: NotRequired[str | None]
        worktree: NotRequired[str | None]
        branch: NotRequired[str | None]
        launch: NotRequired[str | None]

    class EventContent(TakeFacts):
        """The content of an event beside its ids and its sender."""

        take: NotRequired[str | None]
        until: NotRequired[str | None]
        state: NotRequired[str | None]
        outcome: NotRequired[str | None]
        answers_digest: NotRequired[str | None]
        message: NotRequired[str | None]
        payload: NotRequired[dict[str, Any]]
        append: NotRequired[bool]
        last_chunk: NotRequired[bool]
        reason: NotRequired[str | None]
        level: NotRequired[str | None]
        relaunch_of: NotRequired[str | None]


AFTER_MAX = 64  # ids in `after`; heads beyond that are concurrent events of no consequence
_DECIDING = ("seal", "close", "take", "release", "cancel")
_UNLIMITED = (*TERMINAL, "renew", "release")
# Of this clone: with the events of others, whatever their names, a peer could keep anybody from work.
_OWN = (
    "SELECT count(*) FROM (SELECT 1 FROM task_event e JOIN line l ON l.id = e.line WHERE e.task_id = ? AND e.sender = ?"
    f" AND e.event <> 'renew' AND {load.IS_OWN}{load.NOT_FORGED} LIMIT ?)"
)


class TaskChange(Outcome):
    """A recorded event of a task.

    Attributes:
        task_id: The task.
        event_id: The event; that of the earlier one if nothing was written.
        event: What happened.
        state: The state of the task after it.
        reported: Of a report: the state that it says, which may not be that of the task.
        until: The end of the caller's lease in ISO 8601, of a take or renewal.
        role_mismatch: Whether the taker has another role than requested; None if one of them is not stated. So for scope and model.
        asked: Of a take: the role, model, scope and deadline that were asked for, in one line; so `brief`: its path, and its state here.
        told: The names of those to whom a signal about it was sent.
        recorded: Whether an event was written.
        commit: Its commit; None while it waits for one.
        handoff: What an accepted handoff has; None for another task.
        received: What the task hands over to its taker; None if nothing.
    """

    def __init__(
        self, task_id: str, event_id: str, event: str, state: str, compared: Mapping[str, Any]
    ) -> None:
        self.task_id = task_id
        self.event_id = event_id
        self.event = event
        self.state = state
        self.reported: str | None = None
        self.until: str | None = None
        descriptors.set_fields(self, compared)
        self.asked: str | None = None
        self.brief: str | None = None
        self.told: list[str] = []
        self.recorded = False
        self.commit: str | None = None
        self.handoff: Any = None  # an outcome of a package above; so `received`
        self.received: Any = None
        self.warnings: list[str] = []
        self.next: list[str] = []


def event_line(
    store: Store,
    caller: Caller,
    task: FoldedTask,
    event: str,
    fields: EventContent,
    *,
    event_id: str | None = None,
    more_seen: Sequence[str] = (),
    allow_secret: bool = False,
) -> tuple[str, tuple[str, bytes]]:
    """Return the id and the line of a new event.

    Args:
        task: The task with all events that its writer has seen.
        event_id: Its id; a new one by default.
        more_seen: Ids of events that are written in the same entry before it.

    Raises:
        RecordError, SecretError: A value is invalid.
    """
    id = event_id or ids.new_id("tev", store.random)
    content: Any = {
        "event_id": id,
        "task_id": task.record["task_id"],
        "event": event,
        "after": [*more_seen, *after(task, caller)],
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
        **fields,
    }
    return id, store.line("task_event", content, allow_secret=allow_secret)


def too_many(store: Store, caller: Caller, task: FoldedTask, what: str) -> Refusal | None:
    """Return why a caller may write no more of a task: its identity has written many events here, so something runs away.

    Args:
        what: The event, or the state that it reports. Renewals do not count, and they, ends and releases have no limit.
    """
    if what in _UNLIMITED:
        return None
    values = (task.record["task_id"], caller.reader, EVENTS_MAX)
    (count,) = store.db().execute(_OWN, values).fetchone()
    if count < EVENTS_MAX:
        return None
    return "too-many-events", f"has {EVENTS_MAX} events of yours, and no more are allowed but its end"


def after(task: FoldedTask, caller: Caller) -> list[str]:
    """Return the events that nobody had seen yet when this caller writes; of a flooded task those that decide first."""
    heads = task.heads()
    if len(heads) <= AFTER_MAX:
        return [each.id for each in heads]

    def rank(each: TaskEvent) -> tuple[bool, bool]:
        return each.sender == (
            caller.reader,
            caller.session_id,
        ), each.event in _DECIDING or each.state in TERMINAL

    return [each.id for each in sorted(heads, key=rank, reverse=True)[:AFTER_MAX]]


def seen_of_handed_over(store: Store, handoff: FoldedTask) -> list[str]:
    """Return the last events of the tasks that a handoff hands over: its acceptance is an event of them, too."""
    found: list[str] = []
    for task_id in load.handed_over(handoff.record):
        task = load.load(store.db(), task_id, forged=False)
        found += [each.id for each in task.heads()[:AFTER_MAX]] if task is not None else []
    return found


def record(
    store: Store,
    caller: Caller,
    lines: Sequence[tuple[str, bytes]],
    what: str,
    task: TaskRecord,
    *,
    text: str = "",
    deferred: bool = False,
) -> Appended:
    """Append lines as one entry.

    Args:
        what: The subject of the commit, after the caller's name.
        text: Its body.
        deferred: Whether the entry waits for the next commit.

    Raises:
        StoreError: The store could not be written. Nothing was recorded.
    """
    trailers = [("Task", task["task_id"]), ("Thread", task["thread_id"])]
    work_unit = task.get("wu_id")
    who = [(key, value) for key, value in caller.trailers() if key != "WU"]
    message = CommitMessage(
        caller.author,
        cut(sanitize(f"{caller.name or caller.reader} {what}"), SUBJECT_MAX),
        body(text),
        [
            (key, sanitize(value))
            for key, value in [*trailers, *([("WU", work_unit)] if work_unit else []), *who]
        ],
    )
    every = [*lines, *caller.keepalive(store)]
    caller.touch(store)
    return store.record(every, message, deferred=deferred)
