"""Tasks and claims of the page, and what is open of them."""

from __future__ import annotations

from .. import records
from ..claims import claim_view, path_patterns, standing_claims
from ..order.task import HANDOFF, TERMINAL
from ..tasks import HANDOFFS_MAX, load, task_list
from .texts import millis, millis_of, put, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable

    from ..claims.path_patterns import Budget
    from ..claims.standing_claims import StandingClaim
    from ..order.claim import FoldedClaim
    from ..records.record_types import TaskRecord
    from ..signals.many_threads import Selection
    from ..store import Store
    from ..tasks.task_list import TaskRow
    from .board_contract import Contest, ContestSide, Mismatch, Overlap
    from .contract import ClaimSpan, HandedOver, TaskSpan
    from .lanes import Lanes
    from .texts import TextBudget

TASKS_MAX = 1_000
CLAIMS_MAX = 1_000
PATHS_MAX = 50  # of a claim
BLOCKERS_MAX = 50
RESULTS_MAX = 500  # tasks of which the result is read
CLAIM_BYTES_MAX = 4 * 1024 * 1024  # of the lines of all claims
OVER = ("released", "expired", "ended")
_TASK_ORDER = "t.decided_by IS NOT NULL, t.touched DESC, t.task_id"
_MORE = (
    "SELECT t.task_id, t.first_take, t.ended, l.body, t.caller_session FROM json_each(?) j CROSS JOIN task t ON t.task_id = j.value"
    " JOIN line l ON l.id = t.line"
)
_CLAIMS = (
    "SELECT c.claim_id, c.until, s.ended, t.ended, (SELECT sum(length(l.body)) FROM path_claim_event e JOIN line l ON l.id = e.line"
    " WHERE e.claim_id = c.claim_id) FROM path_claim c LEFT JOIN session s ON s.session_id = c.session"
    " LEFT JOIN task t ON t.task_id = c.task_id WHERE {where} ORDER BY c.until DESC, c.claim_id LIMIT :most"
)
_AMONG = "IN (SELECT value FROM json_each(:readers))"

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

    def __init__(self, db: sqlite3.Connection, only: Selection, lanes: Lanes, texts: TextBudget) -> None:
        self._db = db
        self._lanes = lanes
        self._texts = texts
        self._results_left = RESULTS_MAX
        where = ["(t.decided_by IS NULL OR t.touched >= :since)"] if only.since else []
        where += ["t.wu_id = :unit"] if only.unit else []
        if only.readers is not None:
            names = ("caller", "caller_session", "agent", "holder", "holder_session")
            where.append(f"({' OR '.join(f't.{each} {_AMONG}' for each in names)})")
        condition = " AND ".join(where) or "1"
        self.rows = rows = task_list.select(db, condition, only.values, TASKS_MAX, _TASK_ORDER)
        self.omitted = 0
        if len(rows) == TASKS_MAX:
            (total,) = db.execute(f"SELECT count(*) FROM task t WHERE {condition}", only.values).fetchone()
            self.omitted = total - TASKS_MAX
        ids = task_list.array(str(each.task_id) for each in rows)
        more = {row[0]: row[1:] for row in db.execute(_MORE, (ids,)).fetchall()}
        self.mismatches: list[Mismatch] = []
        self.spans = sorted(
            (self._span(each, *more[each.task_id]) for each in rows), key=lambda span: span["at"]
        )
        waiting = [each for each in rows if _is_open(each)]
        waiting.sort(key=lambda each: (str(each.priority or "P2"), str(each.created_at)))
        self.open = [str(each.task_id) for each in waiting]

    def _span(
        self, row: TaskRow, taken: int | None, ended: int | None, body: str, session: str | None
    ) -> TaskSpan:
        record = records.read_kind("task", body.encode())
        at = millis_of(str(row.created_at))
        text, cut = self._texts.cut(record["message"] if record is not None else str(row.title or ""))
        span: TaskSpan = {
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
            "notes": _notes(row, cut),
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

    def _put_mismatch(self, span: TaskSpan, text: str) -> None:
        put(span, "mismatch", text)
        found: Mismatch = {"task": span["id"], "text": short(text)}
        if "holder" in span:
            found["agent"] = span["holder"]
        if not span["open"]:
            found["ended"] = span.get("ended", span["at"])
        self.mismatches.append(found)

    def _put_result(self, span: TaskSpan) -> None:
        """Set the text of the outcome, of the newest tasks."""
        if self._results_left <= 0:
            return
        self._results_left -= 1
        task = load.load(self._db, span["id"])
        text = task.outcome.record.get("message") if task is not None and task.outcome is not None else None
        if text:
            shown, cut = self._texts.cut(text)
            span["result"] = f"{shown}…" if cut else shown


def _handed(record: TaskRecord) -> HandedOver:
    """Return what a handoff hands over, of each kind the first that readers read."""
    found: HandedOver = {
        "tasks": list(load.handed_over(record)),
        "claims": list((record.get("handoff_claims") or ())[:HANDOFFS_MAX]),
        "threads": list((record.get("handoff_threads") or ())[:HANDOFFS_MAX]),
    }
    put(found, "checkpoint", record.get("checkpoint"))
    return found


def _is_open(row: TaskRow) -> bool:
    return row.state not in TERMINAL and not row.replaced


def _notes(row: TaskRow, cut: int) -> list[str]:
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
        f"{cut:,} characters of its text are left out.": cut,
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
        self._standing = {each.id: each for each in standing_claims.standing(store)}
        where = ["c.until >= :since"] if only.since else []
        where += ["c.wu_id = :unit"] if only.unit else []
        where += [f"(c.owner {_AMONG} OR c.session {_AMONG})"] if only.readers is not None else []
        condition = " AND ".join(where) or "1"
        (total,) = db.execute(f"SELECT count(*) FROM path_claim c WHERE {condition}", only.values).fetchone()
        rows = db.execute(_CLAIMS.format(where=condition), {**only.values, "most": CLAIMS_MAX}).fetchall()
        self.spans: list[ClaimSpan] = []
        left = CLAIM_BYTES_MAX
        for id, _, session_ended, task_ended, size in rows:
            left -= size
            claim = claim_view.folded(db, id) if left >= 0 else None
            if claim is not None:
                self.spans.append(self._span(id, claim, session_ended, task_ended))
        self.omitted = total - len(self.spans)
        self.spans.sort(key=lambda span: (span["start"], span["id"]))
        shown = {span["id"] for span in self.spans}
        self.contests, self.omitted_contests = contests(self._standing.values(), shown, lanes)

    def _span(
        self, id: str, claim: FoldedClaim, session_ended: int | None, task_ended: int | None
    ) -> ClaimSpan:
        record, standing = claim.record, self._standing.get(id)
        start = millis(claim.since)
        ends = [each for each in (session_ended, task_ended) if each is not None and each >= claim.since]
        span: ClaimSpan = {
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
    return OVER[1] if claim.until <= now else OVER[2] if ends else standing_claims.HELD


def contests(
    standing: Iterable[StandingClaim], shown: Collection[str], lanes: Lanes
) -> tuple[list[Contest], int]:
    """Return the pairs of claims in each other's way, of which the page shows one, the latest first, and how many are left out.

    Args:
        standing: All claims that stand.
        shown: The ids of those that are on the page.
        lanes: Who has claimed.
    """
    budget = path_patterns.Budget(STEPS_MAX)
    pairs: dict[frozenset[str], tuple[StandingClaim, StandingClaim]] = {}
    for each in standing:
        for first in each.before:
            pairs[frozenset((first.id, each.id))] = first, each
        for other in each.against:
            by_clock = sorted((each, other), key=lambda one: (one.claim.since, one.id))
            pairs.setdefault(frozenset((each.id, other.id)), (by_clock[0], by_clock[1]))
    found = [pair for ids, pair in pairs.items() if not ids.isdisjoint(shown)]
    found.sort(key=lambda pair: (-pair[1].claim.since, pair[1].id, pair[0].id))
    shown_pairs = [_contest(*pair, lanes, budget) for pair in found[:CONTESTS_MAX]]
    return shown_pairs, len(found) - len(shown_pairs)


def _contest(first: StandingClaim, second: StandingClaim, lanes: Lanes, budget: Budget) -> Contest:
    return {
        "sides": [_side(first, lanes), _side(second, lanes)],
        "overlaps": _overlaps(first, second, budget),
        "why": "behind"
        if first in second.before
        else "both"
        if first.claim.has_seen(second.claim)
        else "unseen",
    }


def _side(one: StandingClaim, lanes: Lanes) -> ContestSide:
    record = one.claim.record
    side: ContestSide = {
        "claim": one.id,
        "agent": lanes.of(one.claim.owner[0], None, record.get("sender_name")),
        "at": millis(one.claim.since),
    }
    put(side, "wu", record.get("wu_id"))
    return side


def _overlaps(first: StandingClaim, second: StandingClaim, budget: Budget) -> list[Overlap]:
    """Return the first patterns of the two that may cover the same path."""
    found: list[Overlap] = []
    for mine, ours in zip(first.claim.record["paths"], first.patterns, strict=False):
        for yours, theirs in zip(second.claim.record["paths"], second.patterns, strict=False):
            if len(found) == OVERLAPS_MAX:
                return found
            if path_patterns.may_overlap([ours], [theirs], budget):
                found.append((short(mine), short(yours)))
    return found
