"""What the board of the page shows: lanes and bars of sessions, marks of signals, spans of tasks and claims, and who owes what."""

from __future__ import annotations

from .. import records
from ..agents import mailbox, presence
from ..agents.mailbox import of_readers
from ..index import entities
from ..log.lines import parse_at
from ..order.task import HANDOFF, TERMINAL
from ..records.ids import role_of
from ..signals import threads as thread_answers
from ..text.addresses import PERSON, words_of, writer_of
from ..text.sanitize import sanitize
from ..text.strict_json import json_list
from ..work import HANDOFFS_MAX, claims, tables, task_list, task_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from ..agents.presence import Presence
    from ..order.claim import FoldedClaim
    from ..order.thread import FoldedThread, ThreadSignal
    from ..records.record_types import TaskRecord
    from ..signals.thread_list import ManyThreads, Selection
    from ..store import Store
    from ..work.claims import Budget, StandingClaim
    from ..work.task_list import TaskRow

    Fields = dict[str, Any]  # of an entry of the page's data, or of all: see docs/page-data.md
    Receipt = tuple[str, str, int]  # lane, state, time
    Recorded = Mapping[
        str, tuple[str, str]
    ]  # by reader: the time of the first receipt, the state of the latest


TEXT_MAX = 2_000  # characters of a signal, a node or the result of a task
SHORT_MAX = 200  # of a title, a path or a name
TITLE_MAX = 100
_KEPT = "\n\t"


def cut(text: str, most: int = TEXT_MAX) -> tuple[str, int]:
    """Return the beginning of a text that a peer wrote, sanitized, and how many characters are left out."""
    return sanitize(text[:most], _KEPT), max(0, len(text) - most)


def short(text: str, most: int = SHORT_MAX) -> str:
    """Return the beginning of a text, sanitized; `…` marks a cut."""
    return sanitize(text if len(text) <= most else text[: most - 1] + "…")


def title(text: str) -> str:
    """Return the beginning of the first line of a text, sanitized."""
    return short(text[: 4 * TITLE_MAX].strip().partition("\n")[0], TITLE_MAX)


def put(fields: Any, key: str, value: object) -> None:
    """Set a field to a short text, unless there is none."""
    if value:
        fields[key] = short(str(value))


def millis(micros: int) -> int:
    """Return milliseconds."""
    return micros // 1_000


def millis_of(at: str) -> int:
    """Return the milliseconds of the time of a line; 0 for a date that does not exist, in a line written by hand."""
    try:
        return parse_at(at) // 1_000
    except ValueError:
        return 0


LANES_MAX = 500
SESSIONS_MAX = 2_000
OTHERS = "others"  # the lane of those beyond `LANES_MAX`


class Lanes:
    """Lanes by address. An address that nobody asked for has none.

    Args:
        sessions: The sessions that the page has.
        most: How many lanes there are beside that of the others.
    """

    def __init__(self, store: Store, sessions: Sequence[Presence], most: int = LANES_MAX) -> None:
        self._store = store
        self._db = store.db()
        self._most = most
        self._readers = {one.session_id: one.reader for one in sessions}
        self._latest: dict[str, Presence] = {}
        for one in sorted(sessions, key=lambda one: (one.ended is None, one.last_seen, one.session_id)):
            self._latest[one.reader] = one
        self._ids: dict[str, str] = {}  # by address
        self._lanes: dict[str, Fields] = {}  # by id
        self._by_reader: dict[str, str] = {}
        self.omitted = 0

    def of(self, address: str, at: int | None = None, name: str | None = None) -> str:
        """Return the id of the lane of an address.

        Args:
            address: An agent identity, a session id or a person.
            at: When it did something, milliseconds.
            name: What a record calls it, if no session is known.
        """
        id = self._ids.get(address)
        if id is None:
            id = self._ids[address] = self._of_reader(self._reader_of(address), name)
        lane = self._lanes[id]
        if name and lane["name"] == lane["identity"]:  # another record had only the address
            put(lane, "name", name)
        if at is not None:
            if not lane["last"]:
                lane["first"] = lane["last"] = at
            elif at < lane["first"]:
                lane["first"] = at
            elif at > lane["last"]:
                lane["last"] = at
        return id

    def all(self, addresses: Iterable[str]) -> list[str]:
        """Return the ids of the lanes of addresses, each once."""
        return list(dict.fromkeys(map(self.of, addresses)))

    def of_person(self, mail: str) -> str | None:
        """Return the id of the lane of the person with a mail address; None if nothing on the page is of that person."""
        found = [id for reader, id in self._by_reader.items() if words_of(reader) == PERSON + mail]
        return found[0] if len(found) == 1 else None

    def lanes(self) -> list[Fields]:
        """Return all lanes: those at work first, the last at work before others."""
        return sorted(
            self._lanes.values(), key=lambda lane: (not lane["live"], -lane["last"], lane["identity"])
        )

    def _reader_of(self, address: str) -> str:
        if address in self._readers or address in self._latest:
            return self._readers.get(address, address)
        row = self._db.execute(
            "SELECT agent_identity FROM session WHERE session_id = ?", (address,)
        ).fetchone()
        return (row[0] if row else None) or address

    def _of_reader(self, reader: str, name: str | None) -> str:
        if reader in self._by_reader:
            return self._by_reader[reader]
        if len(self._lanes) >= self._most:
            self.omitted += 1
            self._lanes.setdefault(OTHERS, _lane(OTHERS, "others", ""))
            id = OTHERS
        else:
            id = f"a{len(self._lanes)}"
            one = self._latest.get(reader)
            shown = one.name if one is not None else presence.names_by_reader(self._db).get(reader)
            address = presence.short_address(self._store, reader)
            lane = self._lanes[id] = _lane(id, shown or name or address, address)
            put(lane, "writer", writer_of(reader))
            if one is not None:
                lane["live"] = one.status == "live"
                put(lane, "client", one.record.get("client"))
                put(lane, "role", role_of(one.record))
        self._by_reader[reader] = id
        return id


class SessionBars:
    """The sessions of the page: those that match and were last at work.

    Attributes:
        found: The sessions, the last at work first.
        omitted: How many are left out.
        current: Those that are live or idle, on any work unit: what waits for them may be on another one.
    """

    def __init__(self, store: Store, only: Selection) -> None:
        (total,) = store.db().execute("SELECT count(*) FROM session").fetchone()
        every = presence.latest(store, SESSIONS_MAX)
        self.omitted = total - len(every)
        since = only.since or 0
        self.found = [
            one
            for one in every
            if max(one.last_seen, one.started) >= since
            and only.has_unit(one.wu_id)
            and only.has_any(one.reader, one.session_id)
        ]
        self.current = [one for one in every if one.is_current and only.has_any(one.reader, one.session_id)]

    def bars(self, lanes: Lanes) -> list[Fields]:
        """Return the sessions, the oldest first."""
        found = []
        for one in sorted(self.found, key=lambda one: (one.started, one.session_id)):
            start, last = millis(one.started), max(millis(one.started), millis(one.last_seen))
            bar: Fields = {
                "id": one.session_id,
                "agent": lanes.of(one.reader, start),
                "name": short(one.name),
                "start": start,
                "last": last,
                "live": one.status == "live",
                "status": one.status,
            }
            lanes.of(one.reader, last)
            if one.ended is not None:
                bar["end"] = millis(one.ended)
            put(bar, "role", role_of(one.record))
            put(bar, "wu", one.record.get("wu_id"))
            put(bar, "worktree", one.record.get("worktree"))
            put(bar, "branch", one.record.get("branch"))
            put(bar, "model", one.record.get("model"))
            put(bar, "activity", one.record.get("activity"))
            found.append(bar)
        return found


def _lane(id: str, name: str, identity: str) -> Fields:
    return {
        "id": id, "name": short(name), "identity": short(identity), "person": identity.startswith(PERSON), "live": False,
        "first": 0, "last": 0,
    }  # fmt: skip


SIGNALS_MAX = 20_000
RECEIPTS_MAX = 100_000  # of all signals
OF_SIGNAL_MAX = 200  # recipients and receipts of one signal


class SignalMarks:
    """The signals and threads of the page.

    Attributes:
        marks: The signals, the oldest first.
        states: Their threads, that with the newest signal first.
        omitted: How many signals are left out.
    """

    def __init__(self, db: sqlite3.Connection, threads: ManyThreads, lanes: Lanes) -> None:
        self._lanes = lanes
        self._receipts_left = RECEIPTS_MAX
        self._recorded = mailbox.receipts_of(db, [id for id, _ in threads.ids])
        found = [self._mark(id, thread, threads) for id, thread in threads.ids]
        self.marks: list[Fields] = [each for each in reversed(found) if each is not None]
        self.omitted = threads.more + len(found) - len(self.marks)
        shown: dict[str, int] = {}
        for mark in self.marks:
            shown[mark["thread"]] = shown.get(mark["thread"], 0) + 1
        self.states = [
            self._state(id, folded, shown[id]) for id, folded in threads.threads.items() if id in shown
        ]

    def _mark(self, id: str, thread: str, threads: ManyThreads) -> Fields | None:
        signal = threads.signal(id, thread)
        if signal is None:
            return None
        record = signal.record
        at = millis_of(record["at"])
        text, left = cut(record["message"])
        mark: Fields = {
            "id": id,
            "at": at,
            "from": self._lanes.of(record["sender_identity"], at, record.get("sender_name")),
            "to": self._lanes.all(record["recipients"][:OF_SIGNAL_MAX]),
            "broadcast": not record["recipients"],
            "intent": record["intent"],
            "text": text,
            "thread": thread,
            "ack": bool(record.get("requires_ack")),
            "receipts": self._receipts(signal, threads.cache.of(thread)),
        }
        if left:
            mark["cut"] = left
        if not record.get("writer"):
            mark["unsigned"] = True
        if reply := record.get("reply_to"):
            mark["reply"] = reply
        put(mark, "wu", record.get("wu_id"))
        if task := record.get("task_id"):
            mark["task"] = task
        return mark

    def _receipts(self, signal: ThreadSignal, found: FoldedThread | None) -> list[Receipt]:
        """Return the receipts of a signal by lane, with those of recipients that decided without one."""
        recorded: Recorded = self._recorded.get(signal.id, {})
        rows: dict[str, Receipt] = {}
        for reader in dict.fromkeys([*recorded, *signal.record["recipients"]]):
            first, last = recorded.get(reader, (None, None))
            state = thread_answers.delivery_state(reader, signal, found, last) if found is not None else last
            if state is None or self._receipts_left <= 0 or len(rows) >= OF_SIGNAL_MAX:
                continue
            if first is None and found is not None:
                decided = found.answer(reader, signal.id)
                first = decided.record["at"] if decided is not None else signal.record["at"]
            lane = self._lanes.of(reader)
            before = rows.get(lane)
            if before is None or (before[1] == "delivered" and state != "delivered"):
                rows[lane] = lane, state, millis_of(first or "")
                self._receipts_left -= before is None
        return list(rows.values())

    def _state(self, id: str, found: FoldedThread | None, shown: int) -> Fields:
        """Return a thread: its state, and where those who are asked stand."""
        if found is None or found.root is None:
            return {"id": id, "state": "large", "stands": [], "title": "", "signals": shown}
        root = found.root
        state: Fields = {
            "id": id,
            "root": root.id,
            "state": "notice",
            "stands": [],
            "title": title(root.record["message"]),
            "signals": len(found.signals),
        }
        if len(found.signals) > shown:
            state["more"] = len(found.signals) - shown
        put(state, "wu", root.record.get("wu_id"))
        parties = found.asked
        if found.ambiguous:
            state["state"] = "ambiguous"
        elif found.asks or any(map(found.position, parties)):
            stands = {self._lanes.of(each): found.stands(each)[0] for each in parties}
            state["stands"] = list(stands.items())[:OF_SIGNAL_MAX]
            state["verified"], writers = thread_answers.signers(found)
            state["writers"] = [(self._lanes.of(each), sorted(of)) for each, of in writers.items()][
                :OF_SIGNAL_MAX
            ]
            words = set(stands.values())
            state["state"] = (
                "converged"
                if found.agreed_on is not None
                else "rejected"
                if found.is_refused
                else "settled"
                if found.settled
                else "countered"
                if "counter" in words
                else "open"
            )
            if found.need:
                quorum = thread_answers.Quorum(found)
                state["quorum"] = quorum.count_text
                state["waits_for"] = [self._lanes.of(each) for each in quorum.waits_for][:OF_SIGNAL_MAX]
        if list(found.in_force) != [root.id]:
            state["in_force"] = [
                {
                    "signal": each.id,
                    "agent": self._lanes.of(
                        each.record["sender_identity"], None, each.record.get("sender_name")
                    ),
                    "text": title(each.record["message"]),
                }
                for each in found.in_force.values()
            ]
        return state


TASKS_MAX = 1_000
CLAIMS_MAX = 1_000
PATHS_MAX = 50  # of a claim
BLOCKERS_MAX = 50
RESULTS_MAX = 500  # tasks of which the result is read
CLAIM_BYTES_MAX = 4 * 1024 * 1024  # of the lines of all claims
OVER = ("released", "expired", "ended")
_TASK_ORDER = "t.decided_by IS NOT NULL, t.touched DESC, t.task_id"
_MORE = (
    "SELECT t.task_id, t.first_take, t.ended, l.body FROM json_each(?) j CROSS JOIN task t ON t.task_id = j.value"
    " JOIN line l ON l.id = t.line"
)
_CLAIMS = (
    "SELECT c.claim_id, c.until, s.ended, t.ended, (SELECT sum(length(l.body)) FROM entity_line e JOIN line l ON l.id = e.line"
    " WHERE e.kind = 'claim' AND e.id = c.claim_id) FROM path_claim c LEFT JOIN session s ON s.session_id = c.session"
    " LEFT JOIN task t ON t.task_id = c.task_id WHERE "
)

CONTESTS_MAX = 200
OVERLAPS_MAX = 10  # of one pair
STEPS_MAX = 100_000  # of all comparisons of paths


class TaskSpans:
    """The tasks of the page.

    Attributes:
        spans: The tasks, the oldest first.
        rows: The same as `gitmem task list` has them, those without an outcome first.
        open: The ids of those without an outcome, those with the highest priority first.
        mismatches: Those whose worker is something else than asked, those without an outcome first.
        omitted: How many are left out.
    """

    def __init__(self, db: sqlite3.Connection, only: Selection, lanes: Lanes) -> None:
        self._db = db
        self._lanes = lanes
        self._results_left = RESULTS_MAX
        where = ["(t.decided_by IS NULL OR t.touched >= :since)"] if only.since else []
        where += ["t.wu_id = :unit"] if only.unit else []
        if only.readers is not None:
            where.append(of_readers("t", "caller", "caller_session", "agent", "holder", "holder_session"))
        condition = " AND ".join(where) or "1"
        rows, self.omitted = task_list.select(db, condition, only.values, TASKS_MAX, _TASK_ORDER)
        self.rows = rows
        ids = json_list(str(each.task_id) for each in rows)
        more = {row[0]: row[1:] for row in db.execute(_MORE, (ids,)).fetchall()}
        self.mismatches: list[Fields] = []
        self.spans = sorted(
            (self._span(each, *more[each.task_id]) for each in rows), key=lambda span: span["at"]
        )
        waiting = [each for each in rows if _is_open(each)]
        waiting.sort(key=lambda each: (str(each.priority or "P2"), str(each.created_at)))
        self.open = [str(each.task_id) for each in waiting]

    def _span(self, row: TaskRow, taken: int | None, ended: int | None, body: str) -> Fields:
        record = records.read_kind("task", body.encode())
        at = millis_of(str(row.created_at))
        text, left = cut(record["message"] if record is not None else str(row.title or ""))
        span: Fields = {
            "id": str(row.task_id),
            "at": at,
            "from": self._lanes.of(str(row.caller), at),
            "state": short(str(row.state)),
            "state_text": short(row.state_text),
            "open": _is_open(row),
            "purpose": short(str(row.purpose)),
            "text": text,
            "blocked_by": row.blocked_by[:BLOCKERS_MAX],
            "waits_for": [],
            "notes": _notes(row, left),
        }
        if row.agent:
            span["to"] = self._lanes.of(str(row.agent))
        elif row.target_role:
            span["target"] = short(f"role:{row.target_role}")
        put(span, "priority", row.priority)
        put(span, "wu", row.wu_id)
        put(span, "thread", record["thread_id"] if record is not None else None)
        if row.holder:
            span["holder"] = self._lanes.of(str(row.holder))
        if taken is not None:
            span["taken"] = millis(taken)
        if row.until:
            span["until"] = millis_of(row.until)
        if ended is not None:
            span["ended"] = millis(ended)
            self._put_result(span)
        if row.mismatch:
            self._put_mismatch(span, row.mismatch)
        if record is not None:
            span["waits_for"] = list((record.get("blocked_by") or ())[:BLOCKERS_MAX])
            if record["purpose"] == HANDOFF:
                span["hands"] = _handed(record)
        return span

    def _put_mismatch(self, span: Fields, text: str) -> None:
        put(span, "mismatch", text)
        found: Fields = {"task": span["id"], "text": short(text)}
        if "holder" in span:
            found["agent"] = span["holder"]
        if not span["open"]:
            found["ended"] = span.get("ended", span["at"])
        self.mismatches.append(found)

    def _put_result(self, span: Fields) -> None:
        """Set the text of the outcome, of the newest tasks."""
        if self._results_left <= 0:
            return
        self._results_left -= 1
        task = task_state.load_task(self._db, span["id"])
        text = task.outcome.record.get("message") if task is not None and task.outcome is not None else None
        if text:
            shown, left = cut(text)
            span["result"] = f"{shown}…" if left else shown


def _handed(record: TaskRecord) -> Fields:
    """Return what a handoff hands over, of each kind the first that readers read."""
    found: Fields = {
        "tasks": list(task_state.handed_over(record)),
        "claims": list((record.get("handoff_claims") or ())[:HANDOFFS_MAX]),
        "threads": list((record.get("handoff_threads") or ())[:HANDOFFS_MAX]),
    }
    put(found, "checkpoint", record.get("checkpoint"))
    return found


def _is_open(row: TaskRow) -> bool:
    return row.state not in TERMINAL and not row.replaced


def _notes(row: TaskRow, left: int) -> list[str]:
    """Return sentences about a task for people."""
    late, asked = int(row.late or 0), short(row.asked)
    said = {
        "Several agents hold it without knowing of each other.": row.conflict,
        "Somebody wants to cancel it.": row.cancel_requested,
        "Another task replaces it.": row.replaced,
        f"{late} later result{'s' if late > 1 else ''} did not become the outcome.": late,
        f"Nobody begins it after {row.deadline}.": row.deadline and _is_open(row),
        f"Asked for: {asked}.": asked and not row.asked.startswith("until "),
        f"To be begun {asked}.": row.asked.startswith("until "),
        f"{left:,} characters of its text are left out.": left,
    }
    return [text for text, is_so in said.items() if is_so]


class ClaimSpans:
    """The claims of the page.

    Attributes:
        spans: The claims, the oldest first.
        contests: The pairs of them, and of claims beside them, that are in each other's way.
        omitted: How many are left out; `omitted_contests` of the pairs.
    """

    def __init__(self, store: Store, only: Selection, lanes: Lanes) -> None:
        db = store.db()
        self._now = store.now()
        self._lanes = lanes
        self._standing = {each.id: each for each in claims.standing(store)}
        where = ["c.until >= :since"] if only.since else []
        where += ["c.wu_id = :unit"] if only.unit else []
        where += [of_readers("c", "owner", "session")] if only.readers is not None else []
        condition = " AND ".join(where) or "1"
        rows, more = entities.select(
            db, _CLAIMS + condition, only.values, order="c.until DESC, c.claim_id", limit=CLAIMS_MAX
        )
        self.spans: list[Fields] = []
        left = CLAIM_BYTES_MAX
        for id, _, session_ended, task_ended, size in rows:
            left -= size
            claim = tables.folded_claim(db, id) if left >= 0 else None
            if claim is not None:
                self.spans.append(self._span(id, claim, session_ended, task_ended))
        self.omitted = len(rows) + more - len(self.spans)
        self.spans.sort(key=lambda span: (span["start"], span["id"]))
        shown = {span["id"] for span in self.spans}
        self.contests, self.omitted_contests = contests(self._standing.values(), shown, lanes)

    def _span(self, id: str, claim: FoldedClaim, session_ended: int | None, task_ended: int | None) -> Fields:
        record, standing = claim.record, self._standing.get(id)
        start = millis(claim.since)
        ends = [each for each in (session_ended, task_ended) if each is not None and each >= claim.since]
        span: Fields = {
            "id": id,
            "agent": self._lanes.of(claim.owner[0], start, record.get("sender_name")),
            "paths": [short(each) for each in record["paths"][:PATHS_MAX]],
            "mode": short(record["mode"]),
            "start": start,
            "until": millis(claim.until),
            "state": _state(claim, standing, ends, self._now),
            "against": [each.id for each in (*standing.against, *standing.before)]
            if standing is not None
            else [],
        }
        if claim.released is not None:
            span["ended"] = millis_of(claim.released["at"])
        elif ends and span["state"] == "ended":
            span["ended"] = millis(min(ends))
        put(span, "session", claim.owner[1])
        put(span, "reason", record.get("reason"))
        put(span, "wu", record.get("wu_id"))
        put(span, "task", record.get("task_id"))
        return span


def _state(claim: FoldedClaim, standing: StandingClaim | None, ends: list[int], now: int) -> str:
    if standing is not None:
        return standing.status
    if claim.released is not None:
        return OVER[0]
    return OVER[1] if claim.until <= now else OVER[2] if ends else claims.HELD


def contests(
    standing: Iterable[StandingClaim], shown: Collection[str], lanes: Lanes
) -> tuple[list[Fields], int]:
    """Return the pairs of claims in each other's way, of which the page shows one, the latest first, and how many are left out.

    Args:
        standing: All claims that stand.
        shown: The ids of those that are on the page.
        lanes: Who has claimed.
    """
    budget = claims.Budget(STEPS_MAX)
    pairs: dict[frozenset[str], tuple[StandingClaim, StandingClaim]] = {}
    for each in standing:
        for first in each.before:
            pairs[frozenset((first.id, each.id))] = first, each
        for other in each.against:
            by_clock = sorted((each, other), key=lambda one: (one.claim.since, one.id))
            pairs.setdefault(frozenset((each.id, other.id)), (by_clock[0], by_clock[1]))
    found = [pair for ids, pair in pairs.items() if not ids.isdisjoint(shown)]
    found.sort(key=lambda pair: (-pair[1].claim.since, pair[1].id, pair[0].id))
    rows: list[Fields] = []
    for first, second in found[:CONTESTS_MAX]:
        has_seen = first.claim.has_seen(second.claim)
        rows.append(
            {
                "sides": [_side(first, lanes), _side(second, lanes)],
                "overlaps": _overlaps(first, second, budget),
                "why": "behind" if first in second.before else "both" if has_seen else "unseen",
            }
        )
    return rows, len(found) - len(rows)


def _side(one: StandingClaim, lanes: Lanes) -> Fields:
    record = one.claim.record
    side: Fields = {
        "claim": one.id,
        "agent": lanes.of(one.claim.owner[0], None, record.get("sender_name")),
        "at": millis(one.claim.since),
    }
    put(side, "wu", record.get("wu_id"))
    return side


def _overlaps(first: StandingClaim, second: StandingClaim, budget: Budget) -> list[tuple[str, str]]:
    """Return the first patterns of the two that may cover the same path."""
    found: list[tuple[str, str]] = []
    for mine, ours in zip(first.claim.record["paths"], first.patterns, strict=False):
        for yours, theirs in zip(second.claim.record["paths"], second.patterns, strict=False):
            if len(found) == OVERLAPS_MAX:
                return found
            if claims.may_overlap([ours], [theirs], budget):
                found.append((short(mine), short(yours)))
    return found
