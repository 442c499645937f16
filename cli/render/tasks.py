"""Tasks, launches, trees, handoffs and results of calls as text."""

from __future__ import annotations

from gitmem.agents import descriptors
from gitmem.text.sanitize import first_of, minute
from gitmem.work import task_rules

from .output import paint, program, sanitize, terminal
from .text import (
    ID_SHOWN,
    SEPARATOR,
    block,
    facts,
    format_ago,
    notes,
    plain,
    plural,
    quote_lines,
    rest,
    sender_text,
    span,
    spread,
    table,
    wrapped,
)

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
    from gitmem.work.task_decisions import Launched
    from gitmem.work.task_list import (
        Durations,
        TaskDetail,
        TaskPage,
        TaskRow,
        TaskStats,
        TaskTree,
        TreeRow,
    )
    from gitmem.work.task_records import TaskChange
    from gitmem.work.task_roles import LaunchReceipt


def attempt(found: LaunchReceipt) -> list[str]:
    """Return what is said of an attempt beside its task: number and label, wave, and where it works."""
    number = f"attempt {found.attempt_number}" if found.attempt_number is not None else "attempt"
    return block(
        f"{number} ({found.attempt})" if found.attempt else number,
        found.wave and f"wave {found.wave}",
        found.branch and f"branch {found.branch}",
        found.worktree and f"worktree {found.worktree}",
    )


def launched(found: Launched) -> list[str]:
    """Return a recorded launch: which attempt it is, where, and in which role."""
    numbered = attempt(found)
    if found.initiative_id:
        numbered[0] += f" of {found.initiative_id}"
    asked, last = descriptors.role_text(found.requested_role), descriptors.role_text(found.last_actual_role)
    actual = descriptors.role_text(found.actual_role)
    return block(
        facts(
            found.task_id, "relaunched" if found.relaunch_reason else "launched", *numbered, found.wu_id, found.lane,
            found.claimed_mode, found.client, found.requested_model, found.handoff_path,
        ),
        facts(asked and f"asked for {asked}", actual and f"starts as {actual}", last and f"the last worker was {last}"),
        found.role_mismatch and plain(f"mismatch: asked for {asked}, starts as {actual}"),
        notes(found.warnings),
    )  # fmt: skip


SHOWN = 10  # of each kind
PATHS_SHOWN = 3


def handoff_given(found: NewHandoff) -> list[str]:
    """Return a new handoff: to whom, what it has, and what it leaves out."""
    node = found.handoff.checkpoint
    return block(
        facts(
            found.task["task_id"] if found.recorded else "not written",
            f"from {found.task.get('sender_name') or found.task['sender_identity']}",
            f"to {found.to}",
            found.task.get("wu_id"),
            found.signal_id and f"told {', '.join(found.signaled[:3])}",
            found.until and f"waits until {minute(found.until)}",
            plural(found.bytes, "byte"),
        ),
        node is not None and plain(f"{_head(node)}: {node.content.strip().partition(chr(10))[0]}"),
        _named(found.handoff),
        _left_out(found.left_out),
        notes(found.warnings),
    )


def handoff_content(found: HandoffContent) -> list[str]:
    """Return what a handoff has; texts of others are in a frame."""
    from gitmem.signals.message_frame import PEERS

    lines = []
    node = found.checkpoint
    if node is not None:
        lines.append(f"{_head(node)}. {PEERS}")
        texts = (node.content, node.progress, node.next_steps)
        for head, text in zip(("", "progress:", "next steps:"), texts, strict=True):
            lines += block(head, quote_lines(text)) if text else []
        lines += block(node.is_cut and f"cut; all of it: {sanitize(node.next[0])}")
    return [*lines, *_named(found), *_left_out(found.left_out)]


def _named(found: HandoffContent) -> list[str]:
    """Return a line for each task, claim and thread."""
    return [
        *_some([facts(f"task {each.task_id}", each.state, each.title) for each in found.tasks], "task"),
        *_some([f"claim {first_of(each.paths, PATHS_SHOWN)} until {minute(each.until)}" for each in found.claims], "claim"),
        *_some([facts(f"thread {each.thread_id}", f"{each.sender} {each.intent}: {each.message}", each.next[0])
                for each in found.threads], "thread"),
    ]  # fmt: skip


def _left_out(every: Sequence[LeftOut]) -> list[str]:
    return _some([f"left out: {each.id} {each.reason}" for each in every], "left out")


def _some(lines: Sequence[str], word: str) -> list[str]:
    """Return the first lines of a kind, and how many more there are."""
    more = len(lines) - SHOWN
    return block(map(plain, lines[:SHOWN]), more > 0 and f"{more} more: {word}")


def _head(node: Checkpoint) -> str:
    return f"checkpoint {node.id} of {minute(node.created_at)}"


EVENTS_SHOWN, TOLD_SHOWN = 20, 5
# What somebody did, after the name; "" where the state says it.
EVENTS = {
    "launch": "launched a worker", "take": "took it", "release": "gave it back", "status": "", "artifact": "added to the result",
    "message": "wrote", "cancel": "asked to stop", "seal": "accepted the result", "close": "closed it", "escalate": "told that it is stuck",
}  # fmt: skip
PART_SHOWN = 2_000  # characters of a part of an artifact
WORDS = {
    "release": "released", "message": "written", "seal": "accepted", "close": "closed",
}  # fmt: skip


def change(found: TaskChange) -> list[str]:
    """Return what happened to a task, and its state."""
    what = f"yours until {minute(found.until)}" if found.until else WORDS.get(found.event, "")
    if found.event == "cancel" and found.state != "canceled":
        what = "asked to stop"
    elif found.is_answer:
        what = "answered"
    elif found.reported and found.reported != found.state:
        what = task_rules.WORDS.get(found.reported, found.reported)
    told = found.told and f"told {', '.join(found.told[:TOLD_SHOWN])}"
    if found.handoff is not None:
        has: HandoffContent = found.handoff
        accepted = f"accepted; its tasks are {what}" if has.tasks else "accepted"
        return block(facts(found.task_id, accepted), handoff_content(has), notes(found.warnings))
    is_held = found.state == "submitted" and (what == "answered" or bool(found.until))
    state = None if is_held else task_rules.WORDS.get(found.state, found.state)
    head = facts(found.task_id, what, told, state)
    return block(head, _asked(found), _received(found), notes(found.warnings))


def delegated(found: NewTask) -> list[str]:
    """Return a new task: for whom, and who was told."""
    task = found.task
    whom = (
        found.resolved.display_name or found.resolved.address
        if found.resolved
        else task.get("requested_to") or f"whoever is {task.get('target_role')}"
    )
    head = facts(
        task["task_id"],
        f"from {task.get('sender_name') or task['sender_identity']}",
        f"to {whom}",
        found.resolved and f"as {descriptors.role_text(task.get('requested_role'))}",
        task.get("wu_id"),
        found.signaled and f"told {first_of(found.signaled, TOLD_SHOWN)}",
    )
    return [head, *notes(found.warnings)]


def page(found: TaskPage) -> list[str]:
    """Return a line for each task."""
    heads = ("TASK", "STATE", "FOR", "FROM", "TEXT")
    return block(_table([*map(row, found.tasks)], heads) or "No tasks.", rest(found.more))


def _table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> list[str]:
    """Return tasks as a table; on a terminal with the beginning of each id, which commands take, so that the text has room."""
    if terminal() is not None:
        rows = [[id[: id.find("task-") + ID_SHOWN], *cells] for id, *cells in rows]

    def painted(_: int, at: int, cell: str) -> str:
        return paint(cell, "" if at else "quiet") if at < 2 else cell

    return table(rows, head=head, shortened=(4, 3, 2), painted=painted)


def detail(found: TaskDetail) -> list[str]:
    """Return a task: its state, its text in a frame, who has it, and its events, each with its text in a frame."""
    from gitmem.signals import task_records
    from gitmem.signals.message_frame import PEERS, STDIN

    task = found.task
    agent, role = task.get("agent"), task.get("target_role")
    whom = sender_text(found.agent_name, agent) if agent else role
    sender = sender_text(task.get("sender_name"), task["sender_identity"])
    told = [each for each in found.events if each["event"] != "renew"]
    earlier = len(told[:-EVENTS_SHOWN]) + found.left_out + found.more_events
    return block(
        spread(
            (sender, "head"), (whom and f"for {whom}", ""), (found.state_text, found.state_text),
            (task["purpose"] != "delegation" and task["purpose"], ""), (task.get("priority"), ""), (task.get("wu_id"), "quiet"),
            (format_ago(task["created_at"]), "quiet"), (task["task_id"], "quiet"), (task["thread_id"], "quiet"),
        ),
        wrapped(PEERS),
        quote_lines(task["message"]),
        _asked(found),
        _received(found),
        found.handoff is not None and handoff_content(found.handoff),
        _holder(found),
        [plain(f"mismatch: {text}") for text in dict.fromkeys(each.text for each in found.mismatches)],
        found.conflict and "conflict: several hold it without knowing of each other",
        found.replaced_by and plain(f"replaced by {', '.join(found.replaced_by)}"),
        earlier and f"{plural(earlier, 'earlier event')} not shown",
        [line for each in told[-EVENTS_SHOWN:] for line in _event(each, found)],
        [line for said in found.contradicted_by for line in (
            plain(f"{said.signal_id} from {sender_text(said.sender_name, said.sender_identity)}"),
            *task_records.lines(said.contradicts, program()),
        )],
        found.answered_by is not None and f"To answer: {program()} task {found.answered_by} {task['task_id']} {STDIN}",
        notes(found.warnings),
    )  # fmt: skip


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
    text = each.get("message") or _artifact((each.get("payload") or {}).get("artifact"))
    state = each.get("state") or ""
    head = spread(
        (sender_text(each.get("sender_name"), each["sender_identity"]), "head"),
        (EVENTS.get(each["event"], each["event"]), ""),
        *((part, "") for part in (attempt(receipt) if receipt is not None else ())),
        (task_rules.WORDS.get(state, state), state),
        (id in found.void and "void", "bad"),
        (id in found.late and "late", "bad"),
        (each.get("reason"), ""),
        (format_ago(each["created_at"]), "quiet"),
    )
    return block(head, isinstance(text, str) and quote_lines(text))


def _artifact(value: object) -> str | None:
    """Return what is in an artifact, which a peer wrote."""
    parts = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(parts, list):
        return None
    each = [_part(part) for part in parts]
    return "\n".join(text if len(text) <= PART_SHOWN else f"{text[:PART_SHOWN]}…" for text in each)


def _part(part: object) -> str:
    """Return a part of an artifact: a text, the name and size of a file, and all else as JSON."""
    import json

    found = part if isinstance(part, dict) else {"data": part}
    if isinstance(text := found.get("text"), str):
        return text
    if isinstance(raw := found.get("raw"), str):
        size = f"{len(raw.rstrip('=')) * 3 // 4} bytes"
        kind = f"{found['mediaType']}, " if found.get("mediaType") else ""
        return f"{found.get('filename') or 'file'}: {kind}{size}"
    return json.dumps(found.get("data", found), ensure_ascii=False)


def row(each: TaskRow) -> tuple[str, ...]:
    """Return a task as cells: id, state, who has it or shall do it, who wrote it, and its text."""
    mismatch = descriptors.short_mismatch(
        role=each.role_mismatch, scope=each.scope_mismatch, model=each.model_mismatch
    )
    state = block(
        each.state_text,
        each.conflict and "conflict",
        each.cancel_requested and "cancel asked for",
        each.replaced and "replaced",
        each.blocked_by and f"waits for {len(each.blocked_by)}",
        mismatch,
    )
    held = each.worker if each.until else each.whom
    about = facts(each.priority, each.wu_id, each.title)
    return tuple(plain(str(cell)) for cell in (each.task_id, ", ".join(state), held, each.caller_name, about))


def ready(each: TaskRow) -> str:
    """Return a task that the reader may take, in one line."""
    return "task " + facts(
        each.task_id, each.priority, each.wu_id, f"for {each.whom}", f"from {each.caller_name}", each.title
    )


def _asked(found: TaskDetail | TaskChange) -> list[str]:
    """Return what was asked for, and the brief."""
    named = (("asked", found.asked), ("brief", found.brief))
    return [plain(f"{word}: {text}") for word, text in named if text]


INDENTED_MAX = 10  # levels


def tree(found: TaskTree) -> list[str]:
    """Return a heading for each initiative and work unit, and its tasks with those within them indented."""
    if not found.groups:
        return ["No tasks."]
    lines = []
    for group in found.groups:
        heading = facts(group.initiative_id, group.wu_id) or "without initiative and work unit"
        lines += [paint(heading, "head"), *_table([_row(each) for each in group.tasks])]
    if found.more or found.cut:
        lines.append(f"{found.more}{' or more' if found.cut else ''} more not shown; use --limit N")
    return lines


def stuck(found: StuckPage) -> list[str]:
    """Return a line for each stuck task, and whom it was told to."""
    rows = [
        [
            plain(str(cell))
            for cell in (each.task.task_id, each.level, each.why, each.text, each.task.title or "")
        ]
        for each in found.stuck
    ]
    if not rows:
        return ["No stuck tasks."]
    return block(
        table(rows, shortened=(4, 3)),
        rest(found.more),
        found.escalated and f"escalated: {plain(', '.join(found.escalated))}",
        notes(found.warnings),
    )


def stats(found: TaskStats) -> list[str]:
    """Return the counts, a line for each kind."""
    others = {"replaced": found.replaced, "in conflict": found.conflicts, "launched": found.launches}
    kinds = (("states", found.states), ("outcomes", found.outcomes))
    return block(
        facts(plural(found.tasks, "task"), f"{found.open} open", *_counts(others)),
        [plain(f"{name}: {', '.join(_counts(counts))}") for name, counts in kinds if counts],
        [
            plain(
                f"role {each.role}: {plural(each.tasks, 'task')}, {each.open} open, {each.completed} completed"
            )
            for each in found.roles
        ],
        took("first taken after", found.to_first_take),
        took("done after", found.to_end),
    )


def _counts(counts: Mapping[str, int]) -> list[str]:
    return [f"{count} {name}" for name, count in counts.items() if count]


def took(what: str, found: Durations) -> str:
    """Return the line of a time; "" without any."""
    if not found.count:
        return ""
    median, p90, longest = (span(each) for each in (found.median, found.p90, found.longest))
    return f"{what} {median} (median), 90% within {p90}, at most {longest}; {plural(found.count, 'task')}"


def _row(each: TreeRow) -> tuple[str, ...]:
    id, state, *others = row(each.task)
    indent = "  " * (1 + min(each.depth, INDENTED_MAX))
    said = block(state, each.launches and plural(each.launches, "attempt"), each.in_cycle and "within itself")
    return (f"{indent}{id}", ", ".join(said), *others)


ERROR_SHOWN = 2_000  # characters of an error
OMITTED_SHOWN = 10
KEPT = ("branch", "commit", "uncommitted", "worktree")  # fields of a payload: where the work of the callee is
KEPT_SHOWN = 300  # characters of each


def call_result(found: CallResult) -> list[str]:
    """Return the results of a call: of one agent or several, each text in a frame, as it is the text of a peer."""
    from gitmem.signals.message_frame import PEERS

    left = len(found.results) - found.completed - found.failed
    counts = facts(
        plural(found.completed, "result"), found.failed and f"{found.failed} failed", left and f"{left} open"
    )
    return block(
        any(each.message or each.error for each in found.results) and PEERS,
        [line for each in found.results for line in _agent(each)],
        len(found.results) > 1 and counts,
        found.transfer is not None and results_transferred(found.transfer),
        notes(found.warnings),
    )


def results_transferred(found: Transfer) -> list[str]:
    """Return what was handed over: how much, and what was left out."""
    counts = [
        f"{name.replace('_', ' ')} {count}" for name, count in found.counts.items() if name != "omitted"
    ]
    size = f"{found.bytes} of {found.budget} bytes"
    return block(
        plain(f"handed over: {', '.join([*counts, size]) if found.bytes else 'nothing'}"),
        [plain(f"not handed over: {each.id} {each.reason}") for each in found.omitted[:OMITTED_SHOWN]],
        rest(len(found.omitted) - OMITTED_SHOWN, then="; --json has all of them"),
    )


def call_previewed(found: CallPreview) -> list[str]:
    """Return what a call would do."""
    return block(
        plain(f"would call {', '.join(map(_whom, found.agents))}; nothing was written"),
        results_transferred(found.transfer) if found.transfer is not None else "would hand over nothing",
        found.text.splitlines(),
    )


def _whom(each: AgentResult | PreviewedAgent) -> str:
    """Return name and address; the name alone for a role, which has no address until somebody takes the task."""
    return f"{each.name} ({each.agent})" if each.agent not in ("", each.name) else each.name


def _agent(each: AgentResult) -> list[str]:
    """Return what became of the task of one agent."""
    is_sure = each.confirmed or each.state not in ("completed", "failed")
    texts = (
        [str(each.error[name]) for name in ("type", "message") if each.error.get(name)] if each.error else []
    )
    kept = [(name, each.payload.get(name)) for name in KEPT]
    shown = [f"{name} {value[:KEPT_SHOWN]}" for name, value in kept if isinstance(value, str)]
    return block(
        facts(
            each.task_id,
            _whom(each),
            task_rules.text_of("", str(each.state), None if is_sure else "status", held=each.is_held),
            each.resolved_by not in ("exact", "") and f"found by {each.resolved_by}",
            each.timed_out and each.state != "canceled" and "stopped waiting; the task goes on",
        ),
        each.message and quote_lines(each.message),
        each.error and quote_lines(": ".join(dict.fromkeys(texts))[:ERROR_SHOWN]),
        shown and plain(f"its work: {SEPARATOR.join(shown)}"),
    )
