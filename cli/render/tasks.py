"""Tasks, launches, trees, handoffs and results of calls as text."""

from __future__ import annotations

from gitmem.agents import descriptors

from .output import paint, program, sanitize
from .text import SEPARATOR, format_ago, minute, plain, plural, quote_lines, sender_text, span, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.calls.bundle import Received, Transfer
    from gitmem.calls.call import CallPreview, PreviewedAgent
    from gitmem.calls.call_result import AgentResult, CallResult
    from gitmem.records.record_types import ShownTaskEvent
    from gitmem.work.give_handoff import NewHandoff
    from gitmem.work.handoffs import Checkpoint, HandoffContent, LeftOut
    from gitmem.work.new_task import NewTask
    from gitmem.work.stuck import StuckPage
    from gitmem.work.task_list import (
        Durations,
        LaunchReceipt,
        TaskDetail,
        TaskPage,
        TaskRow,
        TaskStats,
        TaskTree,
        TreeRow,
    )
    from gitmem.work.task_records import TaskChange
    from gitmem.work.task_roles import BriefCheck
    from gitmem.work.task_work import Launched


def attempt(found: LaunchReceipt) -> list[str]:
    """Return what is said of an attempt beside its task: number and label, wave, and where it works."""
    number = f"attempt {found.attempt_number}" if found.attempt_number is not None else "attempt"
    parts = [
        f"{number} ({found.attempt})" if found.attempt else number,
        f"wave {found.wave}" if found.wave else None,
        f"branch {found.branch}" if found.branch else None,
        f"worktree {found.worktree}" if found.worktree else None,
    ]
    return [part for part in parts if part]


def launched(found: Launched) -> list[str]:
    """Return a recorded launch: which attempt it is, where, and in which role."""
    numbered = attempt(found)
    if found.initiative_id:
        numbered[0] += f" of {found.initiative_id}"
    what = "relaunched" if found.relaunch_reason else "launched"
    parts = [
        found.task_id, what, *numbered, found.wu_id, found.lane, found.claimed_mode, found.client, found.requested_model,
        found.handoff_path,
    ]  # fmt: skip
    asked, last = descriptors.role_text(found.requested_role), descriptors.role_text(found.last_actual_role)
    actual = descriptors.role_text(found.actual_role)
    roles = [
        f"asked for {asked}" if asked else None,
        f"starts as {actual}" if actual else None,
        f"the last worker was {last}" if last else None,
    ]
    lines = [SEPARATOR.join(filter(None, parts)), SEPARATOR.join(filter(None, roles))]
    if found.role_mismatch:
        lines.append(f"mismatch: asked for {asked}, starts as {actual}")
    return [plain(line) for line in [*lines, *(f"note: {each}" for each in found.warnings)] if line]


def brief(found: BriefCheck) -> list[str]:
    """Return whether a brief is the attested one, and what was attested."""
    size = plural(found.attested_length, "byte") if found.attested_length is not None else None
    via = f"with {found.attested_client}" if found.attested_client else None
    attested = [f"attested {format_ago(found.attested_at)}", via, size, f"SHA-256 {found.attested_sha256}"]
    lines = [
        plain(SEPARATOR.join((found.task_id, found.path, found.status))),
        plain(SEPARATOR.join(filter(None, attested))),
    ]
    return [*lines, *([plain(f"note: {found.sentence}")] if found.sentence else [])]


SHOWN = 10  # of each kind
PATHS_SHOWN = 3


def handoff_given(found: NewHandoff) -> list[str]:
    """Return a new handoff: to whom, what it has, and what it leaves out."""
    told = f"told {', '.join(found.signaled[:3])}" if found.signal_id else ""
    parts = [
        found.task["task_id"] if found.recorded else "not written",
        f"from {found.task.get('sender_name') or found.task['sender_identity']}",
        f"to {found.to}",
        found.task.get("wu_id"),
        told,
        f"waits until {minute(found.until)}" if found.until else "",
        plural(found.bytes, "byte"),
    ]
    lines = [plain(SEPARATOR.join(str(each) for each in parts if each))]
    node = found.handoff.checkpoint
    lines += [plain(f"{_head(node)}: {_first_line(node.content)}")] if node is not None else []
    lines += _named(found.handoff)
    return [*lines, *_left_out(found.left_out), *(plain(f"note: {each}") for each in found.warnings)]


def handoff_content(found: HandoffContent) -> list[str]:
    """Return what a handoff has; texts of others are in a frame."""
    from gitmem.signals.message_frame import PEERS

    lines = []
    node = found.checkpoint
    if node is not None:
        lines.append(f"{_head(node)}. {PEERS}")
        texts = (node.content, node.progress, node.next_steps)
        for head, text in zip(("", "progress:", "next steps:"), texts, strict=True):
            if text:
                lines += [*([head] if head else []), *quote_lines(text)]
        if node.is_cut:
            lines.append(f"cut; all of it: {sanitize(node.next[0])}")
    return [*lines, *_named(found), *_left_out(found.left_out)]


def _named(found: HandoffContent) -> list[str]:
    """Return a line for each task, claim and thread."""
    tasks = [f"task {each.task_id}{SEPARATOR}{each.state}{SEPARATOR}{each.title}" for each in found.tasks]
    claims = []
    for each in found.claims:
        more = f" and {len(each.paths) - PATHS_SHOWN} more" if each.paths[PATHS_SHOWN:] else ""
        claims.append(f"claim {', '.join(each.paths[:PATHS_SHOWN])}{more} until {minute(each.until)}")
    threads = [
        f"thread {each.thread_id}{SEPARATOR}{each.sender} {each.intent}: {each.message}{SEPARATOR}{each.next[0]}"
        for each in found.threads
    ]
    return [
        line
        for some, word in ((tasks, "task"), (claims, "claim"), (threads, "thread"))
        for line in _some(some, word)
    ]


def _left_out(every: Sequence[LeftOut]) -> list[str]:
    return _some([f"left out: {each.id} {each.reason}" for each in every], "left out")


def _some(lines: Sequence[str], word: str) -> list[str]:
    """Return the first lines of a kind, and how many more there are."""
    more = len(lines) - SHOWN
    return [*map(plain, lines[:SHOWN]), *([f"{more} more: {word}"] if more > 0 else [])]


def _head(node: Checkpoint) -> str:
    return f"checkpoint {node.id} of {minute(node.created_at)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


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
        return [plain(line), *handoff_content(has), *_notes(found.warnings)]
    line = SEPARATOR.join(filter(None, (found.task_id, what, told, found.state)))
    return [plain(line), *_asked(found), *_received(found), *_notes(found.warnings)]


def delegated(found: NewTask) -> list[str]:
    """Return a new task: for whom, and who was told."""
    task = found.task
    role = descriptors.role_text(task.get("requested_role"))
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
    lines += handoff_content(found.handoff) if found.handoff is not None else []
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
        descriptors.short_mismatch(
            role=each.role_mismatch, scope=each.scope_mismatch, model=each.model_mismatch
        ),
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


INDENTED_MAX = 10  # levels


def tree(found: TaskTree) -> list[str]:
    """Return a heading for each initiative and work unit, and its tasks with those within them indented."""
    if not found.groups:
        return ["No tasks."]
    lines = []
    for group in found.groups:
        heading = SEPARATOR.join(filter(None, (group.initiative_id, group.wu_id)))
        lines.append(paint(plain(heading or "without initiative and work unit"), "head"))
        lines += table([_row(each) for each in group.tasks], shortened=(4, 3, 2))
    if found.more or found.cut:
        lines.append(f"{found.more}{' or more' if found.cut else ''} more not shown; use --limit N")
    return lines


def stuck(found: StuckPage) -> list[str]:
    """Return a line for each stuck task, and whom it was told to."""
    if not found.stuck:
        return ["No stuck tasks."]
    rows = [
        tuple(
            plain(str(cell))
            for cell in (each.task.task_id, each.level, each.why, each.text, each.task.title or "")
        )
        for each in found.stuck
    ]
    lines = table(rows, shortened=(4, 3))
    lines += [f"{found.more} more not shown; use --limit N"] if found.more else []
    lines += [f"escalated: {plain(', '.join(found.escalated))}"] if found.escalated else []
    return [*lines, *(plain(f"note: {each}") for each in found.warnings)]


def stats(found: TaskStats) -> list[str]:
    """Return the counts, a line for each kind."""
    notes = {"replaced": found.replaced, "in conflict": found.conflicts, "launched": found.launches}
    lines = [SEPARATOR.join([plural(found.tasks, "task"), f"{found.open} open", *_counts(notes)])]
    lines += [
        f"{name}: {', '.join(_counts(counts))}"
        for name, counts in (("states", found.states), ("outcomes", found.outcomes))
        if counts
    ]
    lines += [
        f"role {each.role}: {plural(each.tasks, 'task')}, {each.open} open, {each.completed} completed"
        for each in found.roles
    ]
    lines += _durations("first taken after", found.to_first_take) + _durations("done after", found.to_end)
    return [plain(line) for line in lines]


def _counts(counts: Mapping[str, int]) -> list[str]:
    return [f"{count} {name}" for name, count in counts.items() if count]


def _durations(what: str, found: Durations) -> list[str]:
    if not found.count:
        return []
    median, p90, longest = (span(each) for each in (found.median, found.p90, found.longest))
    return [f"{what} {median} (median), 90% within {p90}, at most {longest}; {plural(found.count, 'task')}"]


def _row(each: TreeRow) -> tuple[str, ...]:
    id, state, *others = row(each.task)
    indent = "  " * (1 + min(each.depth, INDENTED_MAX))
    notes = [
        plural(each.launches, "attempt") if each.launches else "",
        "within itself" if each.in_cycle else "",
    ]
    return (f"{indent}{id}", ", ".join(filter(None, (state, *notes))), *others)


ERROR_SHOWN = 2_000  # characters of an error
OMITTED_SHOWN = 10
KEPT = ("branch", "commit", "uncommitted", "worktree")  # fields of a payload: where the work of the callee is
KEPT_SHOWN = 300  # characters of each


def call_result(found: CallResult) -> list[str]:
    """Return the results of a call: of one agent or several, each text in a frame, as it is the text of a peer."""
    from gitmem.signals.message_frame import PEERS

    lines = [PEERS] if any(each.message or each.error for each in found.results) else []
    for each in found.results:
        lines += _agent(each)
    if len(found.results) > 1:
        left = len(found.results) - found.completed - found.failed
        parts = [
            plural(found.completed, "result"),
            f"{found.failed} failed" if found.failed else "",
            f"{left} open" if left else "",
        ]
        lines.append(plain(SEPARATOR.join(filter(None, parts))))
    lines += results_transferred(found.transfer) if found.transfer is not None else []
    return [*lines, *(plain(f"note: {each}") for each in found.warnings)]


def results_transferred(found: Transfer) -> list[str]:
    """Return what was handed over: how much, and what was left out."""
    counts = [
        f"{name.replace('_', ' ')} {count}" for name, count in found.counts.items() if name != "omitted"
    ]
    size = f"{found.bytes} of {found.budget} bytes"
    lines = [plain(f"handed over: {', '.join([*counts, size]) if found.bytes else 'nothing'}")]
    lines += [plain(f"not handed over: {each.id} {each.reason}") for each in found.omitted[:OMITTED_SHOWN]]
    more = len(found.omitted) - OMITTED_SHOWN
    return [*lines, *([f"{more} more not shown; --json has all of them"] if more > 0 else [])]


def call_previewed(found: CallPreview) -> list[str]:
    """Return what a call would do."""
    lines = [plain(f"would call {', '.join(map(_whom, found.agents))}; nothing was written")]
    lines += (
        results_transferred(found.transfer) if found.transfer is not None else ["would hand over nothing"]
    )
    return [*lines, *found.text.splitlines()]


def _whom(each: AgentResult | PreviewedAgent) -> str:
    """Return name and address; the name alone for a role, which has no address until somebody takes the task."""
    return f"{each.name} ({each.agent})" if each.agent not in ("", each.name) else each.name


def _agent(each: AgentResult) -> list[str]:
    """Return what became of the task of one agent."""
    state = (
        each.state
        if each.confirmed or each.state not in ("completed", "failed")
        else f"{each.state} (unconfirmed)"
    )
    parts = [
        each.task_id,
        _whom(each),
        state,
        f"found by {each.resolved_by}" if each.resolved_by not in ("exact", "") else "",
        "stopped waiting; the task goes on" if each.timed_out and each.state != "canceled" else "",
    ]
    lines = [plain(SEPARATOR.join(filter(None, parts)))]
    if each.message:
        lines += quote_lines(each.message)
    if each.error:
        texts = [str(each.error[name]) for name in ("type", "message") if each.error.get(name)]
        said = ": ".join(dict.fromkeys(texts))
        lines += quote_lines(said[:ERROR_SHOWN])
    kept = [(name, each.payload.get(name)) for name in KEPT]
    shown = [f"{name} {value[:KEPT_SHOWN]}" for name, value in kept if isinstance(value, str)]
    return [*lines, *([plain(f"its work: {SEPARATOR.join(shown)}")] if shown else [])]
