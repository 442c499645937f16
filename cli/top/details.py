"""What the detail pane shows: a thread, a task, a claim, an agent or a gate, in blocks of sanitized lines."""

from __future__ import annotations

from gitmem.agents import mailbox
from gitmem.handoffs import detail as task_details
from gitmem.invocation import received
from gitmem.signals import message_frame, threads
from gitmem.tasks import WAITING

from ..render import claims as claim_text
from ..render import signals as signal_text
from ..render import tasks as task_text
from ..render.output import sanitize
from ..render.text import format_ago, minute, plural, sender_text, value_text
from .board import AGENTS, CLAIMS, PANES, TASKS, THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.agents.caller import Caller
    from gitmem.agents.descriptions import SessionRow
    from gitmem.claims.claim_answers import ClaimRow
    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.gate import Gate
    from gitmem.signals.thread_outcomes import Thread
    from gitmem.store import Store
    from gitmem.tasks.task_list import TaskDetail

    from .board import Board

SIGNALS = 50  # of a thread at once; more on request
BYTES_MAX = 128 * 1024  # of their texts at once
RECIPIENTS_MAX = 50
GATE = "gate"
KINDS = (*PANES, GATE)
OLDER = "{} earlier signals not shown; o shows older ones"


class Block:
    """Lines that belong together.

    Attributes:
        lines: Their text.
        signal: The signal that they show.
        is_new: Whether the reader has not read it.
        is_owed: Whether it asks the reader for a decision that is missing.
    """

    def __init__(self, lines: Sequence[str], signal: ShownSignal | None = None) -> None:
        self.lines = list(lines)
        self.signal = signal
        self.is_new = self.is_owed = False


class Detail:
    """What is shown.

    Attributes:
        kind, id: What it is about.
        head: Its heading.
        blocks: Its parts.
        more: The number of signals that are left out.
        limit: The number of signals that was asked for.
        wu: Its work unit.
        task, thread: The task or the thread that belongs to it.
        asks: Whether it is a task with a question to whoever wrote it.
        question: That question.
        to, to_name: The address of the agent that it is about, and its name for people.
    """

    def __init__(self, kind: str, id: str, head: str, blocks: Sequence[Block]) -> None:
        self.kind = kind
        self.id = id
        self.head = sanitize(head, keep="")
        self.blocks = list(blocks)
        self.more = self.limit = 0
        self.wu: str | None = None
        self.task: str | None = None
        self.thread: str | None = None
        self.asks = False
        self.question = self.to_name = ""
        self.to: str | None = None


def thread(
    store: Store, caller: Caller, id: str, limit: int = SIGNALS, *, bytes_most: int = BYTES_MAX
) -> Detail:
    """Return the first signal of a thread and the last ones, at most `limit`, whose texts fit `bytes_most` for each page. Mark nothing as read.

    Raises:
        UsageError: The log has no such thread.
    """
    with store.one_look():
        found = threads.thread(store, id, caller, limit=limit)
        _fit(found, bytes_most * max(1, limit // SIGNALS))
        who = (caller.reader, caller.session_id, caller.workspace)
        unread = {each for _, each in mailbox.unread_ids(store.db(), *who, store.now())}
    total = plural(len(found.signals) + found.more, "signal")
    blocks = [Block([f"{found.thread_id}: {total}", message_frame.PEERS])]
    for place, signal in enumerate(found.signals):
        if place == 1 and found.more:
            blocks.append(Block([OLDER.format(found.more)]))
        one = Block(signal_text.signal_of_thread(signal, RECIPIENTS_MAX), signal)
        one.is_new = signal["signal_id"] in unread
        one.is_owed = bool(signal.get("owed"))
        blocks.append(one)
    blocks.append(Block(signal_text.standing(found, RECIPIENTS_MAX)))
    title = " / ".join(each.text for each in found.in_force) or found.thread_id
    shown = Detail(THREADS, found.thread_id, title, blocks)
    shown.more, shown.limit, shown.thread = found.more, limit, found.thread_id
    shown.wu = next((wu for each in reversed(found.signals) if (wu := each.get("wu_id"))), None)
    shown.task = next((task for each in found.signals if (task := each.get("task_id"))), None)
    return shown


def _fit(found: Thread, left: int) -> None:
    """Leave out the older of the last signals until the texts fit; the first and the last one stay."""
    left -= len(found.signals[0]["message"]) if found.signals else 0
    kept = len(found.signals)
    for place in range(len(found.signals) - 1, 0, -1):
        left -= len(found.signals[place]["message"])
        if left < 0 and place < len(found.signals) - 1:
            break
        kept = place
    found.more += max(0, kept - 1)
    del found.signals[1:kept]


def task(store: Store, caller: Caller, id: str, limit: int = SIGNALS) -> Detail:
    """Return a task, as `gitmem task show` does.

    Raises:
        UsageError: The log has no such task.
    """
    with store.one_look():
        found = task_details.show(store, id, caller)
        received.attach(store, found, found.task)
    title = str(found.task["message"]).lstrip().partition("\n")[0]
    shown = Detail(TASKS, found.task["task_id"], title, [Block(task_text.detail(found))])
    shown.wu, shown.task, shown.thread = found.task.get("wu_id"), shown.id, found.task["thread_id"]
    shown.asks, shown.limit = found.state in WAITING, limit
    shown.question = _question(found) if shown.asks else ""
    return shown


def _question(found: TaskDetail) -> str:
    """Return what the holder of a task asked last."""
    if found.holder is None:
        return ""
    who = (found.holder["event_id"], found.holder["sender_identity"])
    for each in reversed(found.events):
        is_asked = each["event"] == "status" and each.get("state") in WAITING
        if is_asked and (each.get("take"), each["sender_identity"]) == who:
            return each.get("message") or ""
    return ""


def listed(board: Board, kind: str, id: str) -> Detail | None:
    """Return an agent or a claim, which the lists have as a whole; None if it has ended."""
    if kind == AGENTS:
        return agent(board.sessions[id]) if id in board.sessions else None
    return claim(board.claims[id], list(board.claims.values())) if id in board.claims else None


def claim(found: ClaimRow, every: Sequence[ClaimRow]) -> Detail:
    """Return a claim, and those that are in its way.

    Args:
        every: The claims that stand.
    """
    facts = {
        "claim": found.claim_id, "by": sender_text(found.name, found.owner), "session": found.session_id,
        "status": found.status, "mode": found.mode, "since": minute(found.since),
        "until": minute(found.until), "work unit": found.wu_id, "task": found.task_id, "why": found.reason,
    }  # fmt: skip
    paths = [f"  {sanitize(each, keep='')}" for each in found.paths]
    blocks = [Block(_facts(facts)), Block(["paths:", *paths])]
    others = [claim_text.row(each) for each in every if each.claim_id in found.others]
    if others:
        blocks.append(Block(["in each other's way:", *(f"  {each}" for each in others)]))
    shown = Detail(CLAIMS, found.claim_id, ", ".join(found.paths), blocks)
    shown.wu, shown.task, shown.to = found.wu_id, found.task_id, found.session_id or found.owner
    shown.to_name = sender_text(found.name, found.owner)
    return shown


def agent(found: SessionRow) -> Detail:
    """Return a session of an agent."""
    facts = {
        "identity": found["agent_identity"], "session": found["session_id"], "status": found["status"],
        "seen": format_ago(found["last_seen"]), "unread": found.get("unread"), "role": found["role"],
        "model": found["model"], "client": found["client"], "work unit": found["wu_id"], "lane": found["lane"],
        "initiative": found["initiative_id"], "task": found["task_id"], "doing": found["activity"],
        "about": found["headline"], "said": found["summary"], "worktree": found["worktree"], "branch": found["branch"],
        "workspace": found["workspace_id"], "edits": found.get("edits"), "handoffs": found.get("handoffs"),
    }  # fmt: skip
    here = [] if found["here"] else ["in another clone"]
    shown = Detail(AGENTS, found["session_id"], found["display_name"], [Block([*_facts(facts), *here])])
    shown.wu, shown.task, shown.to = found["wu_id"], found["task_id"], found["session_id"]
    shown.to_name = sender_text(found["display_name"], found["agent_identity"])
    return shown


def gate(found: Gate) -> Detail:
    """Return the state of a gate."""
    shown = Detail(GATE, found.about, f"Gate of {found.about}", [Block(signal_text.gate(found))])
    shown.wu = found.wu_id
    return shown


def _facts(facts: Mapping[str, str | int | list[str] | None]) -> list[str]:
    return [
        sanitize(f"{name}: {value_text(value)}", keep="")
        for name, value in facts.items()
        if value not in (None, "", [], ())
    ]
