"""What the screen shows, and its access to the log.

Rows for agents, threads, tasks and claims are read with one look at the log; one of them is shown in detail in blocks of sanitized lines. One
thread runs all operations, another waits for changes.
"""

from __future__ import annotations

import threading
import time

from gitmem import calls
from gitmem.agents import caller as callers
from gitmem.agents import mailbox, roster
from gitmem.history import open_work
from gitmem.order.task import WAITING
from gitmem.outcome import Struct
from gitmem.signals import message_frame, thread_list, threads
from gitmem.signals.watch import ChangeWatcher
from gitmem.text.sanitize import SEPARATOR, minute
from gitmem.work import claim_work, stuck, task_list
from gitmem.work import handoffs as task_details
from gitmem.work.claims import HELD

from .. import failure
from ..environment import external_wals
from ..render import claims as claim_text
from ..render import output
from ..render import sessions as session_text
from ..render import signals as signal_text
from ..render import tasks as task_text
from ..render.output import sanitize
from ..render.text import format_ago, sender_text, value_text
from ..worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from gitmem.agents.caller import Caller
    from gitmem.agents.descriptions import SessionRow
    from gitmem.agents.roster import Roster
    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.gate import Gate
    from gitmem.signals.thread_list import ThreadRow
    from gitmem.signals.threads import Thread
    from gitmem.store import Store
    from gitmem.work.claims import ClaimRow
    from gitmem.work.stuck import StuckTask
    from gitmem.work.task_list import TaskDetail, TaskRow

    from ..environment import Environment

    Answer = TypeVar("Answer")


WAITS, AGENTS, THREADS, TASKS, CLAIMS = PANES = ("waits", "agents", "threads", "tasks", "claims")
LISTED = 200  # rows of each list; more on request
CELL_MAX = 1_000  # characters of a cell: no terminal shows more, and the paths of a claim may be 250,000
STUCK_MAX = 1_000
UNREAD_STEPS = 2_000_000  # of SQLite for the unread signals of all agents; the number of others is not shown
ASKS, NEW, QUIET, USUAL = "asks", "new", "quiet", ""  # how a row is shown
ATTENTION, UNREAD = "!", "*"
NOTHING = {
    WAITS: "Nobody waits for anybody.",
    AGENTS: "No agent is at work. `gitmem session start` begins a session.",
    THREADS: "No signals yet. `gitmem signal 'your message' --to NAME` sends one.",
    TASKS: "No tasks. `gitmem delegate` writes one.",
    CLAIMS: "Nothing is claimed. `gitmem claim PATH` claims paths.",
}


class Column(Struct):
    """A column: its heading, its greatest width, and its turn when a narrow list leaves columns out (0: never)."""

    head: str
    most: int
    turn: int = 0


# The last column of each takes what is left of the width.
COLUMNS: Mapping[str, Sequence[Column]] = {
    WAITS: [Column("", 1), Column("WHO", 16), Column("WAITS FOR", 24), Column("SINCE", 8, 1), Column("TO DO WHAT", 0)],
    AGENTS: [Column("", 1), Column("NAME", 20), Column("STATUS", 6), Column("UNREAD", 6, 3), Column("WORK", 14, 4),
             Column("ROLE", 16, 2), Column("SEEN", 11, 1), Column("DOES", 0)],
    THREADS: [Column("", 2), Column("LAST", 11, 3), Column("FROM", 16, 4), Column("N", 5, 2), Column("WORK", 12, 1),
              Column("TEXT", 0)],
    TASKS: [Column("", 1), Column("STATE", 26), Column("FOR", 18, 2), Column("FROM", 14, 1), Column("TEXT", 0)],
    CLAIMS: [Column("", 1), Column("WHO", 18), Column("UNTIL", 20, 1), Column("STATUS", 14, 2), Column("PATHS", 0)],
}  # fmt: skip


class Row:
    """A row of a list.

    Attributes:
        id: What it is about.
        cells: Its texts, one for each column.
        style: How it is shown, see `ASKS`.
        words: Its text in lower case, for the filter.
    """

    def __init__(self, id: str, cells: Sequence[str], style: str = USUAL) -> None:
        self.id = id
        self.cells = [sanitize(each[:CELL_MAX], keep="") for each in cells]
        self.style = style
        self.words = " ".join(self.cells).casefold()


class Board(Struct):
    """The lists at one moment.

    Attributes:
        who: The caller, for people.
        rows, more, heads: The rows of each list, how many more there are, and its heading.
        sessions, claims: What the rows of agents and claims are about, by id.
        unread: The number of the caller's unread signals in threads.
        notes: Warnings.
    """

    who: str
    rows: dict[str, list[Row]] = {}
    more: dict[str, int] = {}
    heads: dict[str, str] = {}
    sessions: dict[str, SessionRow] = {}
    claims: dict[str, ClaimRow] = {}
    unread: int = 0
    notes: list[str] = []

    def put(self, pane: str, rows: Sequence[Row], more: int, said: str = "") -> None:
        """Set the rows of a list; its heading says how many there are, and how many of those that are shown ask for something."""
        self.rows[pane], self.more[pane] = list(rows), more
        asks = sum(row.style == ASKS for row in rows)
        words = (f"{pane.capitalize()} {len(rows) + more}", said, f"{ATTENTION}{asks}" if asks else "")
        self.heads[pane] = " ".join(filter(None, words))


def read(store: Store, caller: Caller, limits: Mapping[str, int]) -> Board:
    """Return the lists. Mark nothing as read. The calling thread holds the store's lock.

    Args:
        limits: The number of rows of each list.
    """
    found = Board(output.plain(sender_text(caller.name, caller.reader)))
    with store.one_look():
        _put_agents(
            found,
            roster.roster(store, caller=caller, steps_most=UNREAD_STEPS, limit=limits[AGENTS], work=False),
        )
        _put_waits(found, open_work.waits(store, caller, limit=limits[WAITS]))
        _put_threads(found, thread_list.list_threads(store, caller, limit=limits[THREADS]))
        _put_tasks(found, store, caller, limits[TASKS])
        _put_claims(found, store, caller, limits[CLAIMS])
        peek = callers.peek_reason(store, caller) if caller.who is not None else None
    found.notes += filter(None, [peek])
    return found


def _put_waits(found: Board, waiting: open_work.Waits) -> None:
    rows = [
        Row(each.id, (ATTENTION if each.you == open_work.OWES else "", who, owes, since, to_do), ASKS if each.you == open_work.OWES else USUAL)
        for each, (who, _, owes, to_do, since) in session_text.wait_rows(waiting)
    ]  # fmt: skip
    found.put(WAITS, rows, waiting.more)


def _put_agents(found: Board, roll: Roster) -> None:
    found.sessions = {each["session_id"]: each for each in roll.sessions}
    live = sum(each["status"] == "live" for each in roll.sessions)
    found.put(AGENTS, [_agent(each) for each in roll.sessions], roll.more, f"({live} live)" if live else "")
    found.notes += filter(None, [roll.remark if roll.sessions else None])


def _agent(each: SessionRow) -> Row:
    unread, live = each.get("unread"), each["status"] == "live"
    work = " ".join(filter(None, (each["wu_id"], each["lane"])))
    does = SEPARATOR.join(filter(None, (each["activity"], each["worktree"])))
    cells = (
        UNREAD if unread else "", each["display_name"], each["status"], "-" if unread is None else str(unread or ""), work,
        each["role"] or "", format_ago(each["last_seen"]), does,
    )  # fmt: skip
    return Row(each["session_id"], cells, USUAL if live else QUIET)


def _put_threads(found: Board, page: thread_list.ThreadPage) -> None:
    found.unread = page.unread
    said = f"{UNREAD}{page.unread}" if page.unread else ""
    found.put(THREADS, [_thread(each) for each in page.threads], page.more, said)


def _thread(each: ThreadRow) -> Row:
    mark = (ATTENTION if each.owed else "") + (UNREAD if each.unread else "")
    cells = (
        mark, format_ago(each.last_at), each.last_sender_name, str(each.signals), each.wu_id or "", each.title,
    )  # fmt: skip
    return Row(each.thread_id, cells, ASKS if each.owed else NEW if each.unread else USUAL)


def _put_tasks(found: Board, store: Store, caller: Caller, limit: int) -> None:
    page = task_list.list_tasks(store, limit=limit)
    late = {str(each.task.task_id): each for each in stuck.find(store, limit=STUCK_MAX).stuck}
    found.put(TASKS, [_task(each, late.get(str(each.task_id)), caller) for each in page.tasks], page.more)


def _task(each: TaskRow, late: StuckTask | None, caller: Caller) -> Row:
    _, state, held, asker, about = task_text.row(each)
    asked = each.state in WAITING and each.caller == caller.reader
    said = [f"stuck: {late.why}" if late else "", "handoff" if each.purpose == "handoff" else "", state]
    needs = asked or late is not None or bool(each.mismatch) or each.conflict
    style = ASKS if needs else QUIET if each.state_text in ("completed", "canceled") else USUAL
    return Row(
        str(each.task_id),
        (ATTENTION if needs else "", ", ".join(filter(None, said)), held, asker, about),
        style,
    )


def _put_claims(found: Board, store: Store, caller: Caller, limit: int) -> None:
    page = claim_work.list_claims(store, caller, limit=limit)
    found.claims = {each.claim_id: each for each in page.claims}
    found.put(CLAIMS, [_claim(each) for each in page.claims], page.more)
    found.notes += page.warnings


def _claim(each: ClaimRow) -> Row:
    contested = bool(each.others) and each.status != HELD
    about = SEPARATOR.join(filter(None, (", ".join(each.paths), each.reason, each.wu_id)))
    cells = (
        ATTENTION if contested else "", each.name or each.owner, minute(each.until), each.status, about,
    )  # fmt: skip
    return Row(each.claim_id, cells, ASKS if contested else USUAL)


SIGNALS = 50  # of a thread at once; more on request
BYTES_MAX = 128 * 1024  # of their texts at once
GATE = "gate"
OLDER = "{} earlier signals not shown; o shows older ones"


class Block(Struct):
    """Lines that belong together.

    Attributes:
        lines: Their text.
        signal: The signal that they show.
        is_new: Whether the reader has not read it.
        is_owed: Whether it asks the reader for a decision that is missing.
    """

    lines: Sequence[str]
    signal: ShownSignal | None = None
    is_new: bool = False
    is_owed: bool = False


class Detail(Struct):
    """What is shown.

    Attributes:
        kind, id: What it is about.
        head: The beginning of a task.
        blocks: Its parts.
        more: The number of signals that are left out.
        limit: The number of signals that was asked for.
        wu: Its work unit.
        task, thread: The task or the thread that belongs to it.
        question: That of a task to whoever wrote it.
        to, to_name: The address of the agent that it is about, and its name for people.
    """

    kind: str
    id: str
    head: str
    blocks: list[Block]
    more: int = 0
    limit: int = 0
    wu: str | None = None
    task: str | None = None
    thread: str | None = None
    question: str = ""
    to: str | None = None
    to_name: str = ""


def kind_of(pane: str, id: str) -> str:
    """Return what a row of a list is about: somebody waits because of a task, or a thread."""
    return pane if pane != WAITS else TASKS if id.startswith("task-") else THREADS


def thread_detail(
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
    blocks = [Block([signal_text.thread_head(found), message_frame.PEERS])]
    for place, signal in enumerate(found.signals):
        if place == 1 and found.more:
            blocks.append(Block([OLDER.format(found.more)]))
        lines, is_new = signal_text.signal_of_thread(signal, found), signal["signal_id"] in unread
        blocks.append(Block(lines, signal, is_new, bool(signal.get("owed"))))
    blocks.append(Block(signal_text.standing(found)))
    return Detail(
        THREADS, found.thread_id, "", blocks, found.more, limit,
        wu=next((wu for each in reversed(found.signals) if (wu := each.get("wu_id"))), None),
        task=next((task for each in found.signals if (task := each.get("task_id"))), None), thread=found.thread_id,
    )  # fmt: skip


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


def task_detail(store: Store, caller: Caller, id: str, limit: int = SIGNALS) -> Detail:
    """Return a task, as `gitmem task show` does.

    Raises:
        UsageError: The log has no such task.
    """
    with store.one_look():
        found = task_details.show_handoff(store, id, caller)
        calls.attach_received(store, found, found.task)
    title, own = str(found.task["message"]).lstrip().partition("\n")[0], found.task["task_id"]
    return Detail(
        TASKS, own, sanitize(title, keep=""), [Block(task_text.detail(found))], limit=limit, wu=found.task.get("wu_id"), task=own,
        thread=found.task["thread_id"], question=_question(found) if found.state in WAITING else "",
    )  # fmt: skip


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


def listed_detail(board: Board, kind: str, id: str) -> Detail | None:
    """Return an agent or a claim, which the lists have as a whole; None if it has ended."""
    if kind == AGENTS:
        return agent_detail(board.sessions[id]) if id in board.sessions else None
    return claim_detail(board.claims[id], list(board.claims.values())) if id in board.claims else None


def claim_detail(found: ClaimRow, every: Sequence[ClaimRow]) -> Detail:
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
    return Detail(
        CLAIMS, found.claim_id, "", blocks, wu=found.wu_id, task=found.task_id, to=found.session_id or found.owner,
        to_name=sender_text(found.name, found.owner),
    )  # fmt: skip


def agent_detail(found: SessionRow) -> Detail:
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
    return Detail(
        AGENTS, found["session_id"], "", [Block([*_facts(facts), *here])], wu=found["wu_id"], task=found["task_id"],
        to=found["session_id"], to_name=sender_text(found["display_name"], found["agent_identity"]),
    )  # fmt: skip


def gate_detail(found: Gate) -> Detail:
    """Return the state of a gate."""
    return Detail(GATE, found.about, "", [Block(signal_text.gate(found))], wu=found.wu_id)


def _facts(facts: Mapping[str, str | int | list[str] | None]) -> list[str]:
    return [
        sanitize(f"{name}: {value_text(value)}", keep="")
        for name, value in facts.items()
        if value not in (None, "", [], ())
    ]


TICK_SECONDS = 2.0
AGES_SECONDS = 30.0  # without a change: ages and who is live are shown anew
PAUSE_SECONDS, PAUSES = (
    0.2,
    3.0,
)  # between two looks: at least the first, and this many times what a look takes
STOP_SECONDS = 5.0


class LogAccess:
    """The log as the screen uses it. It is read on the first look, and after each change of the log.

    Args:
        at: The environment. Its store is used by this object's thread alone from now on.
    """

    def __init__(self, at: Environment) -> None:
        self._at = at
        self._who = at.who()
        self._store = at.store()
        self._store.after_record = at.start_committer
        output.begin()  # lines for the screen have no colours of their own and any width
        output.set_options(at.directory, at.as_)
        output.set_addresses(at.short_address)
        self._worker = Worker("gitmem top")
        self._stop = threading.Event()
        self._again = threading.Event()

    async def run(self, job: Callable[[Store, Caller], Answer]) -> Answer:
        """Run an operation as the caller; return its outcome.

        Raises:
            GitmemError: It failed; also OSError and errors of SQLite.
        """
        return await self._worker.run(lambda: self._do(job))

    def _do(self, job: Callable[[Store, Caller], Answer]) -> Answer:
        with self._store.lock:
            caller = callers.find(self._store, self._who)
            assert caller is not None
            return job(self._store, caller)

    def follow(
        self, limits: Mapping[str, int], show: Callable[[Board], object], fail: Callable[[str], object]
    ) -> None:
        """Read the lists now and after each change of the log, in a thread that ends with `close`.

        Args:
            limits: The number of rows of each list; it may change.
            show: Receives the lists, in another thread.
            fail: Receives a sentence when they can't be read.
        """
        threading.Thread(
            target=self._follow, args=(limits, show, fail), name="gitmem top log", daemon=True
        ).start()

    def look_again(self) -> None:
        """Read the lists soon, although nothing has changed."""
        self._again.set()

    def _follow(
        self, limits: Mapping[str, int], show: Callable[[Board], object], fail: Callable[[str], object]
    ) -> None:
        waker = ChangeWatcher(self._store, self._stop)
        try:
            while not self._stop.is_set():
                self._again.clear()
                stamp, began = waker.stamp(), time.monotonic()
                try:
                    show(
                        self._worker.submit(
                            lambda: self._do(lambda store, caller: self._look(store, caller, limits))
                        ).result()
                    )
                except Exception as error:
                    fail(error_sentence(error))
                took = time.monotonic() - began
                self._stop.wait(max(PAUSE_SECONDS, PAUSES * took))
                self._wait(waker, stamp)
        finally:
            waker.close()

    def _look(self, store: Store, caller: Caller, limits: Mapping[str, int]) -> Board:
        store.log.read_also(external_wals(self._at.repo)[1])
        return read(store, caller, limits)

    def _wait(self, waker: ChangeWatcher, stamp: object) -> None:
        """Wait for a change, at most until ages are old; meanwhile sync if that is due."""
        until = time.monotonic() + AGES_SECONDS
        first = True
        while not (self._stop.is_set() or self._again.is_set()) and time.monotonic() < until:
            self._at.sync_if_due()
            if waker.wait(stamp, TICK_SECONDS):
                return
            if first:
                first = False
                self._worker.submit(self._store.git.close)  # ends its idle child process

    def close(self) -> None:
        """End the threads after the operations that were asked for."""
        self._stop.set()
        self._worker.stop(STOP_SECONDS)


def error_sentence(error: Exception) -> str:
    """Return an error as one sanitized line for the screen, with its hint."""
    known = failure.own_error_of(error) or failure.unexpected(error, "`gitmem doctor` checks the log.")
    return output.sanitize(" ".join(filter(None, (known.message, known.hint))), keep="")
