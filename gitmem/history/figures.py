"""Compute the figures of `gitmem view --stats` and of the page.

Times of lines are those of their writers' clocks: an answer that seems to be earlier than its question took no time.
"""

from __future__ import annotations

from ..agents import presence
from ..agents.mailbox import of_readers
from ..log.lines import format_at, parse_at
from ..order.content import ASKS
from ..outcome import Outcome
from ..signals.thread_list import ManyThreads, Selection
from ..text.strict_json import json_list
from .open_work import ANSWER, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, NotRequired, TypedDict

    from ..order.thread import FoldedThread, ThreadSignal
    from ..store import Store

    class DayFigures(TypedDict):
        """Counts of one day in UTC; `agents` is how many wrote."""

        day: str
        signals: int
        agents: int
        proposals: int
        answers: int

    class Spread(TypedDict):
        """How long something took: the middle, what nine of ten stay below, and how many there are; without any only `n`."""

        n: int
        median_ms: NotRequired[int]
        p90_ms: NotRequired[int]


DAY = 86_400_000_000  # microseconds
SIGNALS_MAX = 20_000  # of which threads are folded
DAYS_MAX = 400
OUTCOMES_MAX = 20
WAITS_MAX = 100_000


OPEN = "open"
_DAYS = (
    "SELECT substr(l.at, 1, 10) AS day, count(DISTINCT s.signal_id), count(DISTINCT s.sender),"
    " count(DISTINCT s.signal_id) FILTER (WHERE s.intent IN ('PROPOSE', 'COUNTER')),"
    " count(DISTINCT s.signal_id) FILTER (WHERE s.intent IN ('AGREE', 'REJECT'))"
    " FROM signal s JOIN line l ON l.id = s.line WHERE {where} AND l.at < :ahead GROUP BY day ORDER BY day DESC LIMIT :most"
)
_AHEAD = "SELECT count(DISTINCT s.signal_id) FROM signal s JOIN line l ON l.id = s.line WHERE {where} AND l.at >= :ahead"
_UNREAD = (
    # `mail` has a row for each content of an id.
    "SELECT m.reader, min(l.at) FROM"
    " (SELECT DISTINCT reader, signal_id FROM mail WHERE reader IN (SELECT value FROM json_each(:at_work))) m"
    " CROSS JOIN signal s ON s.signal_id = m.signal_id JOIN line l ON l.id = s.line"
    " WHERE {where} GROUP BY m.reader, m.signal_id"
)
_TASKS = (
    f"SELECT CASE WHEN t.decided_by IS NOT NULL THEN t.state WHEN t.replaced = 1 THEN 'replaced' ELSE '{OPEN}' END, count(*)"
    " FROM task t WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most"
)


class Statistics(Outcome, kw_only=True):
    """All figures.

    Attributes:
        ahead: How many signals have a date that is more than a day ahead; no day counts them.
        first_answer: From a signal that asks its recipients for a decision to the first answer to it.
        agreement: From the first signal of a thread to the last agreement of all of its recipients.
        unread_age: How long signals to agents at work have been unread, without broadcasts.
        unanswered: How many answers are owed, as the roster lists them.
        tasks: The number of tasks without an outcome (`open`), and of those with each outcome.
    """

    days: list[DayFigures]
    ahead: int
    first_answer: Spread
    agreement: Spread
    unread_age: Spread
    unanswered: int
    tasks: dict[str, int]


class Stats(Statistics, kw_only=True):
    """The figures of an answer.

    Attributes:
        older: The number of older signals, of which answers and agreements are not measured.
        remark: A sentence about a work unit of which there is nothing; "" otherwise.
    """

    older: int
    remark: str = ""
    next: list[str] = ["gitmem view --open", "gitmem task list --stats"]


def stats(
    store: Store,
    *,
    since: int | None = None,
    wu: str | None = None,
    agent: str | None = None,
    most: int = SIGNALS_MAX,
) -> Stats:
    """Return the figures.

    Args:
        store: The log.
        since: As for `Selection`; so `wu` and `agent`.
        most: How many signals are read for answers and agreements, the newest.

    Raises:
        UsageError: `unknown-agent`.
    """
    with store.one_look():
        db = store.db()
        only = Selection(store, since=since, wu=wu, agent=agent)
        threads = ManyThreads(db, only, most)
        found = statistics(store, only, threads)
        return Stats.taken_from(found, older=threads.more, remark=only.remark(db))


def statistics(store: Store, only: Selection, threads: ManyThreads) -> Statistics:
    """Return the figures about a selection.

    Args:
        store: The log.
        only: The selection.
        threads: Its newest signals.
    """
    db = store.db()
    answers: list[int] = []
    agreements: list[int] = []
    shown = {id for id, _ in threads.ids}
    for folded in threads.threads.values():
        if folded is not None:
            answers += _first_answers(folded, shown)
            agreements += _agreement(folded)
    days, ahead = _days(store, only)
    return Statistics(
        days=days,
        ahead=ahead,
        first_answer=spread(answers),
        agreement=spread(agreements),
        unread_age=spread(_unread_ages(store, only)),
        unanswered=sum(each.what == ANSWER for each in waits(store, only=only, limit=WAITS_MAX).rows),
        tasks=tasks_by_outcome(db, only),
    )


def spread(micros: Sequence[int]) -> Spread:
    """Return the median of times in microseconds, and what nine of ten of them stay below."""
    if not micros:
        return {"n": 0}
    ordered = sorted(max(0, each) for each in micros)
    middle, most = ordered[(len(ordered) - 1) // 2], ordered[(len(ordered) * 9 - 1) // 10]
    return {"n": len(ordered), "median_ms": middle // 1_000, "p90_ms": most // 1_000}


def tasks_by_outcome(db: sqlite3.Connection, only: Selection) -> dict[str, int]:
    """Return the number of tasks without an outcome, and of those with each outcome."""
    where = ["t.touched >= :since"] if only.since else []
    where += ["t.wu_id = :unit"] if only.unit else []
    if only.readers is not None:
        where.append(of_readers("t", "caller", "caller_session", "agent", "holder", "holder_session"))
    query = _TASKS.format(where=" AND ".join(where) or "1")
    return dict(db.execute(query, {**only.values, "most": OUTCOMES_MAX}).fetchall())


def _days(store: Store, only: Selection) -> tuple[list[DayFigures], int]:
    """Return the last days on which anything was said, the first of them first, and how many signals have a later date.

    With those a peer could take the places of all other days.
    """
    db, where = store.db(), only.of_threads()
    values = {**only.values, "ahead": format_at(store.now() + DAY), "most": DAYS_MAX}
    (ahead,) = db.execute(_AHEAD.format(where=where), values).fetchone()
    days: list[DayFigures] = [
        {"day": day, "signals": signals, "agents": agents, "proposals": proposals, "answers": answers}
        for day, signals, agents, proposals, answers in db.execute(_DAYS.format(where=where), values)
    ]
    return days[::-1], ahead


def _first_answers(found: FoldedThread, shown: set[str]) -> Iterable[int]:
    """Yield how long each question of a thread waited for its first answer by somebody else."""
    first: dict[str, int] = {}
    for signal in found.signals.values():
        asked = found.signals.get(signal.record.get("reply_to") or "")
        if (
            asked is None
            or asked.id not in shown
            or not _asks(asked)
            or not asked.writers.isdisjoint(signal.writers)
        ):
            continue
        took = max(0, _at(signal) - _at(asked))
        first[asked.id] = min(took, first.get(asked.id, took))
    yield from first.values()


def _asks(signal: ThreadSignal) -> bool:
    record = signal.record
    return bool(record["recipients"]) and (bool(record.get("requires_ack")) or record["intent"] in ASKS)


def _agreement(found: FoldedThread) -> Iterable[int]:
    """Yield how long it took until those agreed who do in a thread, if it has converged."""
    if found.root is not None and found.agreed_on is not None:
        agreeing = found.agreeing(found.agreed_on.id)
        agreed = [at.signal for each in agreeing if (at := found.position(each)) is not None]
        yield max(map(_at, agreed)) - _at(found.root)


def _unread_ages(store: Store, only: Selection) -> list[int]:
    now = store.now()
    at_work = {
        name
        for one in presence.shown(store).values()
        if one.is_current
        for name in (one.reader, one.session_id)
    }
    if only.readers is not None:
        at_work &= only.readers
    unread = times_of_unread(store.db(), only.of_threads(), only.values, at_work)
    return [now - _micros(at) for at in unread]


def times_of_unread(
    db: sqlite3.Connection, where: str, values: Mapping[str, Any], readers: Iterable[str]
) -> list[str]:
    """Return the times of the signals that some readers have not read, one for each of them; `where` is about a row `s` of `signal`."""
    rows = db.execute(_UNREAD.format(where=where), {**values, "at_work": json_list(sorted(readers))})
    return [at for _, at in rows.fetchall()]


def _at(signal: ThreadSignal) -> int:
    return _micros(signal.record["at"])


def _micros(at: str) -> int:
    """Return the time of a line; 0 for a date that does not exist, in a line written by hand."""
    try:
        return parse_at(at)
    except ValueError:
        return 0
