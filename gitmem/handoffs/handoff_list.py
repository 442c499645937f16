"""List the handoffs that wait for an answer: for the roster, the inbox and the context of an agent."""

from __future__ import annotations

from .. import records
from ..agents import presence, waiting_work
from ..commit_message import sanitize
from ..log.lines import format_at
from ..order.task import sender_of
from ..outcome import Outcome, command
from ..tasks import HANDOFF_MICROS, load, task_roles
from ..text.sanitize import SEPARATOR
from . import content

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..agents.descriptions import SessionRow
    from ..agents.roster import Roster
    from ..records.record_types import TaskRecord
    from ..store import Store

WAITING, RETURNED = "waiting", "returned"
LISTED = 20
NAMED = 1  # offers whose text names all that they have
RETURNED_MICROS = 7 * 24 * 3600 * 1_000_000  # for how long a giver is told that nobody has answered
# Those without an answer; not what was written in the name of this clone by others.
_OPEN = (
    "SELECT t.task_id, t.created, t.title, l.body FROM task t JOIN line l ON l.id = t.line WHERE t.purpose = 'handoff'"
    " AND t.decided_by IS NULL AND t.created > :since AND +t.holder IS NULL AND t.cancels = 0 AND t.replaced = 0"
    " AND NOT EXISTS (SELECT 1 FROM forged f WHERE f.line = t.line){whose} ORDER BY t.created DESC, t.task_id LIMIT :most"
)
_ADDRESSEE = (
    "(t.agent IN (:reader, :session) OR (t.agent IS NULL AND t.target_role IN (:role, :lifecycle)"
    f" AND t.caller_session IS NOT :session AND {waiting_work.NOT_REFUSED})) AND t.created > :open"
)


class HandoffRow(Outcome):
    """A handoff without an answer.

    Attributes:
        status: `waiting`, or `returned` after 24 hours.
        giver: The agent who hands over; `giver_name` and `to` are names for people.
        agent: Whom it is for; None for one that is for whoever has `target_role`.
        until: The end of the 24 hours in ISO 8601.
        gone: Whether the giver has none of the tasks and claims that it names any more.
        text: A sentence about it; `next` has the command that answers it, or that withdraws it.
    """

    def __init__(
        self, record: TaskRecord, title: str, created: int, now: int, to: str, *, gone: bool
    ) -> None:
        self.task_id = record["task_id"]
        self.title = title
        self.status = WAITING if created + HANDOFF_MICROS > now else RETURNED
        self.giver = record["sender_identity"]
        self.giver_session = record.get("sender_session") or None
        self.giver_name = record.get("sender_name") or self.giver
        self.agent = record.get("agent")
        self.target_role = record.get("target_role")
        self.to = to
        self.wu_id = record.get("wu_id")
        self.tasks = len(record.get("handoff_tasks") or ())
        self.claims = len(record.get("handoff_claims") or ())
        self.threads = len(record.get("handoff_threads") or ())
        self.gone = gone
        self.created_at, self.until = format_at(created), format_at(created + HANDOFF_MICROS)
        self.text = ""
        self.next: list[str] = []

    def is_for(self, one: SessionRow) -> bool:
        """Return whether a session may accept it."""
        if self.agent is not None:
            return self.agent in (one["reader_identity"], one["session_id"])
        return one["session_id"] != self.giver_session and _has_role(one["role"], self.target_role)


class VoidAcceptance(Outcome):
    """A task that the caller took by accepting a handoff, although it had ended: its caller sealed the giver's result."""

    def __init__(self, task_id: str, handoff_id: str, text: str) -> None:
        self.task_id = task_id
        self.handoff_id = handoff_id
        self.text = text
        self.next = [command("gitmem", "task", "show", task_id)]


class HandoffsOf(Outcome):
    """The handoffs of one caller.

    Attributes:
        offered: Those that others offer to it.
        given: Its own ones without an answer.
        void: The tasks of those that it accepted in the last two days, of which the acceptance does not count.
    """

    def __init__(
        self, offered: Sequence[HandoffRow], given: Sequence[HandoffRow], void: Sequence[VoidAcceptance]
    ) -> None:
        self.offered = list(offered)
        self.given = list(given)
        self.void = list(void)


def of_caller(store: Store, caller: Caller, *, limit: int = LISTED) -> HandoffsOf:
    """Return the handoffs that a caller may accept, and its own ones that wait or were returned, the latest first."""
    db, now = store.db(), store.now()
    role, lifecycle = task_roles.addressed_by(caller)
    values = {
        "reader": caller.reader, "session": caller.session_id, "role": role, "lifecycle": lifecycle, "open": now - HANDOFF_MICROS,
    }  # fmt: skip
    offered = _rows(store, f" AND {_ADDRESSEE}", values, HANDOFF_MICROS, limit)
    given = _rows(store, " AND +t.caller = :reader", values, RETURNED_MICROS, limit)
    for at, each in enumerate(offered):
        what = _named(store, each) if at < NAMED else _what(each)
        gone = ", but has none of its tasks and claims any more" if each.gone else ""
        each.next = [command("gitmem", "task", word, each.task_id) for word in ("show", "take")]
        who = f"{sanitize(each.giver_name)} offers ({each.next[0]}){gone}"  # first: readers may cut the end
        each.text = f"{who}: {what}; next steps: {sanitize(each.title)}"
    for each in given:
        answer = "waiting" if each.status == WAITING else "returned: nobody has answered in 24 hours"
        gone = ", of which you have no task or claim any more" if each.gone else ""
        each.text = (
            f"You hand over {_what(each)} to {sanitize(each.to)}, {answer}{gone}: {sanitize(each.title)}"
        )
        each.next = [command("gitmem", "task", "cancel", each.task_id)]
    return HandoffsOf(offered, given, _void(db, now, caller, limit))


def waiting(store: Store, limit: int = LISTED) -> list[HandoffRow]:
    """Return the handoffs of all agents that wait for an answer, the latest first."""
    return _rows(store, "", {}, HANDOFF_MICROS, limit)


def add_to(store: Store, found: Roster) -> Roster:
    """Add to each session of a roster sentences about the handoffs that it gives, or may accept; return the roster."""
    rows = _rows(store, "", {}, HANDOFF_MICROS, LISTED)
    for one in found.sessions:
        given = [
            f"handed over to {sanitize(each.to)}, {WAITING}{gone_text(each)} ({each.task_id})"
            for each in rows
            if each.giver_session == one["session_id"]
        ]
        offered = [
            f"offered by {sanitize(each.giver_name)}{gone_text(each)} ({each.task_id})"
            for each in rows
            if each.is_for(one)
        ]
        one["handoffs"] = [*given, *offered]
    return found


def gone_text(row: HandoffRow) -> str:
    """Return what to say after a handoff whose giver has nothing of it left; "" for others."""
    return ", whose tasks and claims its giver has no more" if row.gone else ""


def _void(db: sqlite3.Connection, now: int, caller: Caller, limit: int) -> list[VoidAcceptance]:
    sender = caller.reader, caller.session_id
    values = {**waiting_work.values_for(caller, now), "most": limit}
    found = []
    for task_id, handoff_id in db.execute(f"{waiting_work.VOID} ORDER BY 1 LIMIT :most", values).fetchall():
        task = load.load(db, task_id)
        if task is not None and any(each.replaces and each.sender == sender for each in task.void):
            decided = sanitize(task.record.get("sender_name") or task.caller[0])
            text = f"{task_id} is not yours: {decided} had decided it ({task.state}) before you accepted {handoff_id}."
            found.append(VoidAcceptance(task_id, handoff_id, text))
    return found


def _rows(
    store: Store, whose: str, values: dict[str, str | int | None], age: int, limit: int
) -> list[HandoffRow]:
    db, now = store.db(), store.now()
    rows = db.execute(_OPEN.format(whose=whose), {**values, "since": now - age, "most": limit}).fetchall()
    names = presence.names_by_reader(db)
    found = []
    for _, created, title, body in rows:
        record = records.read_kind("task", body.encode())
        if record is not None:
            agent = record.get("agent")
            to = (names.get(agent) or agent) if agent else f"role:{record.get('target_role')}"
            found.append(HandoffRow(record, title, created, now, to, gone=content.is_gone(store, record)))
    return found


def _named(store: Store, row: HandoffRow) -> str:
    """Return what a handoff has, with ids, titles, paths and the first words of the checkpoint; without what the giver has no more."""
    named = load.lowest_line(store.db(), row.task_id)
    assert named is not None  # it has a row
    had = _what(row) if row.gone else ""
    about = sanitize(row.wu_id) if row.wu_id and not had else ""
    text = content.of(store, named[1], sender_of(named[1])).text()
    return SEPARATOR.join(filter(None, (had, about, sanitize(text)))) or _what(row)


def _what(row: HandoffRow) -> str:
    """Return what a handoff has, such as `2 tasks and 1 claim`."""
    counts = ((row.tasks, "task"), (row.claims, "claim"), (row.threads, "thread"))
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    about = [sanitize(row.wu_id)] if row.wu_id else []
    return " · ".join([*about, *parts]) or "the work"


def _has_role(role: str | None, wanted: str | None) -> bool:
    """Return whether an actual role is the wanted one; a wanted role without a specialty means each of them."""
    return role is not None and wanted is not None and (role == wanted or role.partition("/")[0] == wanted)
