"""Tasks as text."""

from __future__ import annotations

from gitmem.roles import mismatch

from . import handoffs
from .claims import minute
from .output import paint, program
from .sessions import plain
from .task_launches import attempt
from .text import SEPARATOR, format_ago, plural, quote_lines, sender_text, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.handoffs.content import HandoffContent
    from gitmem.invocation.received import Received
    from gitmem.records.shown_types import ShownTaskEvent
    from gitmem.tasks.append import TaskChange
    from gitmem.tasks.new_task import NewTask
    from gitmem.tasks.task_list import TaskDetail, TaskPage, TaskRow

EVENTS_SHOWN, TOLD_SHOWN = 20, 5
PART_SHOWN = 2_000  # characters of a part of an artifact
WORDS = {
    "release": "released", "message": "written", "seal": "sealed", "close": "closed",
}  # fmt: skip


def change(found: TaskChange) -> list[str]:
    """Return what happened to a task, and its state."""
    what = f"yours until {minute(found.until)}" if found.until else WORDS.get(found.event, "")
    if found.event == "cancel" and found.state != "canceled":
        what = "asked to stop"
    elif found.event == "message" and found.told and found.state == "submitted":
        what = "answered"
    elif found.reported and found.reported != found.state:
        what = found.reported
    told = f"told {', '.join(found.told[:TOLD_SHOWN])}" if found.told else None
    if found.handoff is not None:
        has: HandoffContent = found.handoff
        line = SEPARATOR.join(
            filter(None, (found.task_id, f"accepted; its tasks are {what}" if has.tasks else "accepted"))
        )
        return [plain(line), *handoffs.content(has), *_notes(found.warnings)]
    line = SEPARATOR.join(filter(None, (found.task_id, what, told, found.state)))
    return [plain(line), *_asked(found), *_received(found), *_notes(found.warnings)]


def delegated(found: NewTask) -> list[str]:
    """Return a new task: for whom, and who was told."""
    task = found.task
    role = mismatch.role_text(task.get("requested_role"))
    told = [f"told {', '.join(found.signaled[:TOLD_SHOWN])}"] if found.signaled else []
    if found.signaled[TOLD_SHOWN:]:
        told[0] += f" and {len(found.signaled) - TOLD_SHOWN} more"
    whom = (
        found.resolved.display_name or found.resolved.address
        if found.resolved
        else task.get("requested_to") or f"whoever is {task.get('target_role')}"
    )
    sender = f"from {task.get('sender_name') or task['sender_identity']}"
    parts = [
        task["task_id"],
        sender,
        f"to {whom}",
        f"as {role}" if found.resolved else "",
        task.get("wu_id"),
        *told,
    ]
    lines = [plain(SEPARATOR.join(str(part) for part in parts if part))]
    return [*lines, *_notes(found.warnings)]


def page(found: TaskPage) -> list[str]:
    """Return a line for each task."""
    if not found.tasks:
        return ["No tasks."]
    rows = [("TASK", "STATE", "FOR", "FROM", "TEXT"), *map(row, found.tasks)]
    lines = table(
        rows, shortened=(4, 3, 2), painted=lambda row, _, cell: cell if row else paint(cell, "head")
    )
    return [*lines, *([f"{found.more} more not shown; use --limit N"] if found.more else [])]


def detail(found: TaskDetail) -> list[str]:
    """Return a task: its state, its text in a frame, who has it, and its events, each with its text in a frame."""
    from gitmem.signals import task_records
    from gitmem.signals.message_frame import PEERS, STDIN

    task = found.task
    agent, role = task.get("agent"), task.get("target_role")
    whom = sender_text(found.agent_name, agent) if agent else role
    parts = [
        task["task_id"], found.state_text, task["purpose"], task.get("priority"), task.get("wu_id"),
        f"for {whom}" if whom else None, task["thread_id"],
    ]  # fmt: skip
    sender = sender_text(task.get("sender_name"), task["sender_identity"])
    lines = [
        plain(SEPARATOR.join(filter(None, parts))),
        f"from {sender}, {format_ago(task['created_at'])}. {PEERS}",
    ]
    lines += [*quote_lines(task["message"]), *_asked(found), *_received(found)]
    lines += handoffs.content(found.handoff) if found.handoff is not None else []
    lines += _holder(found)
    lines += [plain(f"mismatch: {text}") for text in dict.fromkeys(each.text for each in found.mismatches)]
    lines += ["conflict: several hold it without knowing of each other"] if found.conflict else []
    lines += [plain(f"replaced by {', '.join(found.replaced_by)}")] if found.replaced_by else []
    told = [each for each in found.events if each["event"] != "renew"]
    left_out = found.left_out + found.more_events
    if len(told) > EVENTS_SHOWN or left_out:
        lines.append(f"{plural(len(told[:-EVENTS_SHOWN]) + left_out, 'earlier event')} not shown")
    for each in told[-EVENTS_SHOWN:]:
        lines += _event(each, found)
    for said in found.contradicted_by:
        by = sender_text(said.sender_name, said.sender_identity)
        lines += [plain(f"{said.signal_id} from {by}"), *task_records.lines(said.contradicts, program())]
    if found.answered_by is not None:
        lines.append(f"To answer: {program()} task {found.answered_by} {task['task_id']} {STDIN}")
    return [*lines, *_notes(found.warnings)]


def _received(found: TaskChange | TaskDetail) -> list[str]:
    """Return what a task hands over; its texts are framed and sanitized."""
    has: Received | None = found.received
    return has.text.splitlines() if has is not None else []


def _holder(found: TaskDetail) -> list[str]:
    """Return who has a task, or whose result its caller accepted."""
    is_finished = found.outcome is not None or found.seal is not None or found.close is not None
    if found.task["purpose"] == "handoff":
        is_overtaken = found.state == "completed" and bool(found.cancels)
        return ["accepted before the withdrawal was known"] if is_overtaken else []
    if found.seal is not None and found.outcome is not None and found.outcome["event"] == "status":
        by = found.outcome
        return [f"accepted: the result of {sender_text(by.get('sender_name'), by['sender_identity'])}"]
    if found.holder is not None and not is_finished:
        return [f"held by {sender_text(found.holder.get('sender_name'), found.holder['sender_identity'])}"]
    return []


def _event(each: ShownTaskEvent, found: TaskDetail) -> list[str]:
    """Return an event: what, by whom, when, whether it counts, and its text in a frame."""
    id = each["event_id"]
    receipt = next((one for one in found.launches if one.launch == id), None)
    parts = [
        each["event"],
        *(attempt(receipt) if receipt is not None else ()),
        each.get("state"),
        sender_text(each.get("sender_name"), each["sender_identity"]),
        format_ago(each["created_at"]),
        "void" if id in found.void else "",
        "late" if id in found.late else "",
        each.get("reason"),
    ]
    text = each.get("message") or _artifact((each.get("payload") or {}).get("artifact"))
    return [
        plain(SEPARATOR.join(str(part) for part in parts if part)),
        *(quote_lines(text) if isinstance(text, str) else []),
    ]


def _artifact(value: object) -> str | None:
    """Return what is in an artifact, which a peer wrote: texts, and all else as JSON."""
    import json

    parts = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(parts, list):
        return None
    each = [part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else
            json.dumps(part.get("data", part) if isinstance(part, dict) else part, ensure_ascii=False) for part in parts]  # fmt: skip
    return "\n".join(text if len(text) <= PART_SHOWN else f"{text[:PART_SHOWN]}…" for text in each)


def row(each: TaskRow) -> tuple[str, ...]:
    """Return a task as cells: id, state, who has it or shall do it, who wrote it, and its text."""
    notes = [
        "conflict" if each.conflict else "",
        "cancel asked for" if each.cancel_requested else "",
        "replaced" if each.replaced else "",
        f"waits for {len(each.blocked_by)}" if each.blocked_by else "",
        mismatch.short(role=each.role_mismatch, scope=each.scope_mismatch, model=each.model_mismatch),
    ]
    state = ", ".join(filter(None, [each.state_text, *notes]))
    held = f"{each.worker} has it" if each.until else each.whom
    about = SEPARATOR.join(str(part) for part in (each.priority, each.wu_id, each.title) if part)
    cells = (each.task_id, state, held, each.caller_name, about)
    return tuple(plain(str(cell)) for cell in cells)


def ready(each: TaskRow) -> str:
    """Return a task that the reader may take, in one line."""
    by = f"from {each.caller_name}"
    parts = (each.task_id, each.priority, each.wu_id, f"for {each.whom}", by, each.title)
    return plain("task " + SEPARATOR.join(str(part) for part in parts if part))


def _asked(found: TaskDetail | TaskChange) -> list[str]:
    """Return what was asked for, and the brief."""
    named = (("asked", found.asked), ("brief", found.brief))
    return [plain(f"{word}: {text}") for word, text in named if text]


def _notes(warnings: list[str]) -> list[str]:
    return [plain(f"note: {each}") for each in warnings]
