"""What the lists show: rows for agents, threads, tasks and claims, read with one look at the log.

Nothing here knows Textual. All cells are sanitized; they are shown as plain text.
"""

from __future__ import annotations

from gitmem.agents import roster
from gitmem.claims import claim_list
from gitmem.claims.standing_claims import HELD
from gitmem.signals import decisions_for_others, thread_list
from gitmem.tasks import WAITING, stuck, task_list
from gitmem.text.sanitize import SEPARATOR

from ..render import tasks as task_text
from ..render.output import sanitize
from ..render.text import format_ago, minute, sender_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.agents.caller import Caller
    from gitmem.agents.descriptions import SessionRow
    from gitmem.agents.roster import Roster
    from gitmem.claims.claim_answers import ClaimRow
    from gitmem.signals.thread_list import ThreadRow
    from gitmem.store import Store
    from gitmem.tasks.stuck import StuckTask
    from gitmem.tasks.task_list import TaskRow

AGENTS, THREADS, TASKS, CLAIMS = PANES = ("agents", "threads", "tasks", "claims")
LISTED = 200  # rows of each list; more on request
CELL_MAX = 1_000  # characters of a cell: no terminal shows more, and the paths of a claim may be 250,000
STUCK_MAX = 1_000
UNREAD_STEPS = 2_000_000  # of SQLite for the unread signals of all agents; the number of others is not shown
ASKS, NEW, QUIET, USUAL = "asks", "new", "quiet", ""  # how a row is shown
ATTENTION, UNREAD = "!", "*"
NOTHING = {
    AGENTS: "No agent is at work. `gitmem session start` begins a session.",
    THREADS: "No signals yet. `gitmem signal 'your message' --to NAME` sends one.",
    TASKS: "No tasks. `gitmem delegate` writes one.",
    CLAIMS: "Nothing is claimed. `gitmem claim PATH` claims paths.",
}


class Column:
    """A column: its heading, its greatest width, and its turn when a narrow list leaves columns out (0: never)."""

    def __init__(self, head: str, most: int, turn: int = 0) -> None:
        self.head = head
        self.most = most
        self.turn = turn


# The last column of each takes what is left of the width.
COLUMNS: Mapping[str, Sequence[Column]] = {
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


class Board:
    """The lists at one moment.

    Attributes:
        who: The caller, for people.
        rows, more, heads: The rows of each list, how many more there are, and its heading.
        sessions, claims: What the rows of agents and claims are about, by id.
        unread, owed: The caller's signals.
        notes: Warnings.
    """

    def __init__(self, who: str) -> None:
        self.who = who
        self.rows: dict[str, list[Row]] = {}
        self.more: dict[str, int] = {}
        self.heads: dict[str, str] = {}
        self.sessions: dict[str, SessionRow] = {}
        self.claims: dict[str, ClaimRow] = {}
        self.unread = self.owed = 0
        self.notes: list[str] = []

    def put(self, pane: str, rows: Sequence[Row], more: int, *said: str) -> None:
        """Set the rows of a list; `said` are the parts of its heading after the number of all rows."""
        self.rows[pane], self.more[pane] = list(rows), more
        self.heads[pane] = " ".join([f"{pane.capitalize()} {len(rows) + more}", *filter(None, said)])


def read(store: Store, caller: Caller, limits: Mapping[str, int]) -> Board:
    """Return the lists. Mark nothing as read. The calling thread holds the store's lock.

    Args:
        limits: The number of rows of each list.
    """
    found = Board(sender_text(caller.name, caller.reader))
    with store.one_look():
        _put_agents(found, roster.roster(store, caller=caller, steps_most=UNREAD_STEPS, limit=limits[AGENTS]))
        _put_threads(found, thread_list.list_threads(store, caller, limit=limits[THREADS]))
        _put_tasks(found, store, caller, limits[TASKS])
        _put_claims(found, store, caller, limits[CLAIMS])
        peek = decisions_for_others.peek_reason(store, caller) if caller.who is not None else None
    found.notes += filter(None, [peek])
    return found


def _put_agents(found: Board, roll: Roster) -> None:
    found.sessions = {each["session_id"]: each for each in roll.sessions}
    rows = [_agent(each) for each in roll.sessions]
    live = sum(each["status"] == "live" for each in roll.sessions)
    found.put(AGENTS, rows, roll.more, f"({live} live)" if live else "")
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
    found.unread, found.owed = page.unread, page.owed
    said = (f"{UNREAD}{page.unread}" if page.unread else "", f"{ATTENTION}{page.owed}" if page.owed else "")
    found.put(THREADS, [_thread(each) for each in page.threads], page.more, *said)


def _thread(each: ThreadRow) -> Row:
    mark = (ATTENTION if each.owed else "") + (UNREAD if each.unread else "")
    cells = (
        mark, format_ago(each.last_at), each.last_sender_name, str(each.signals), each.wu_id or "", each.title,
    )  # fmt: skip
    return Row(each.thread_id, cells, ASKS if each.owed else NEW if each.unread else USUAL)


def _put_tasks(found: Board, store: Store, caller: Caller, limit: int) -> None:
    page = task_list.list_tasks(store, limit=limit)
    late = {str(each.task.task_id): each for each in stuck.find(store, limit=STUCK_MAX).stuck}
    rows = [_task(each, late.get(str(each.task_id)), caller) for each in page.tasks]
    asks = sum(row.style == ASKS for row in rows)
    found.put(TASKS, rows, page.more, f"{ATTENTION}{asks}" if asks else "")


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
    page = claim_list.list_claims(store, caller, limit=limit)
    found.claims = {each.claim_id: each for each in page.claims}
    rows = [_claim(each) for each in page.claims]
    contested = sum(row.style == ASKS for row in rows)
    found.put(CLAIMS, rows, page.more, f"{ATTENTION}{contested}" if contested else "")
    found.notes += page.warnings


def _claim(each: ClaimRow) -> Row:
    contested = bool(each.others) and each.status != HELD
    about = SEPARATOR.join(filter(None, (", ".join(each.paths), each.reason, each.wu_id)))
    cells = (
        ATTENTION if contested else "", each.name or each.owner, minute(each.until), each.status, about,
    )  # fmt: skip
    return Row(each.claim_id, cells, ASKS if contested else USUAL)
