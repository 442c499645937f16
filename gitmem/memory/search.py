"""Search: what was written down about something, the best match first.

`score = relevance × (3 + decay) / 4`. Relevance is BM25 of all words; where too few nodes have all of them, those
follow that have words which begin so, then those that have some. Decay (age, readings, priority) alone would
bury what is old: a node of three months would need twenty times the relevance of one of today.
"""

from __future__ import annotations

from ..errors import StoreError, UsageError
from ..index.engine import sqlite3
from ..outcome import Outcome
from ..text.shell_quote import command
from . import anchors, decay, fts_index, load
from .fts_query import Question
from .listing import Filter
from .snippet import snippet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store
    from .node import Node
    from .snippet import Marks

    Row = tuple[str, int, float, int, str | None, int]

LIMIT = 10
LIMIT_MAX = 1_000
# Of the nodes that match, so many times the limit are weighed by decay, the most relevant ones. A fresh P0 is raised
# to about twice what an old P3 has; where decay counts in full it can outweigh any relevance.
CANDIDATES = 10
CANDIDATES_BY_DECAY = 100
WEIGHT = 0.25  # of decay; 1.0 where it counts in full
ATTEMPTS = 3


class Hit(Outcome):
    """A node that was found.

    Attributes:
        score: What hits are ranked by, among those with the same `matched`.
        bm25: Its relevance; more is better. FTS5's own figure is the negative.
        decay: Its decay score now, halved where it is stale.
        matched: `all` the words, words that `begin` so, or `some` of them.
        snippet: One harmless line of its text.
        stale: In what way its files moved on; None where they did not.
        marks: Where in the snippet the hits are.
    """

    __slots__ = ("node", "score", "bm25", "decay", "matched", "snippet", "stale", "marks")

    def __init__(self, found: _Candidate, node: Node, text: str, marks: Marks) -> None:
        self.node = node
        self.bm25 = found.bm25
        self.decay = found.decay
        self.matched = TIERS[found.tier]
        self.snippet = text
        self.stale: str | None = None
        self.marks = marks
        self.score = found.score

    def as_json(self) -> dict[str, object]:
        values = super().as_json()
        del values["marks"]
        return values


class SearchResult(Outcome):
    """What a search found; `more` tells whether further nodes match as well."""

    __slots__ = ("query", "hits", "more", "next")

    def __init__(self, query: str, hits: Sequence[Hit], more: bool) -> None:
        self.query = query
        self.hits = list(hits)
        self.more = more
        self.next: list[str] = []


class _Candidate:
    """A node that matches, before it is loaded."""

    __slots__ = ("bm25", "decay", "id", "score", "tier", "touched")

    def __init__(self, id: str, tier: int, bm25: float, touched: int, decay: float, weight: float) -> None:
        self.id = id
        self.tier = tier
        self.bm25 = bm25
        self.touched = touched
        self.weigh(decay, weight)

    def weigh(self, decay: float, weight: float) -> None:
        self.decay = decay
        self.score = self.bm25 * (1 - weight + weight * decay)

    def order(self) -> tuple[object, ...]:
        return (self.tier, -self.score, -self.touched, self.id)


TIERS = ("all", "begin", "some")


def search(
    store: Store, query: str, *, reader: Caller | None = None, limit: int = LIMIT, **options: object
) -> SearchResult:
    """What was written down about something.

    Args:
        query: Words; those in double quotes must stand together. Nothing in it is syntax beside that.
        reader: Whose reading of the hits is recorded; None records none.
        options: Those of `recall`.

    Raises: as `recall`.
    """
    found, more = _recall(store, query, limit=limit, **options)  # type: ignore[arg-type]  # passed on as they came
    if reader is not None and found:
        from . import accesses

        accesses.record(store, reader, [hit.node.id for hit in found])
    answer = SearchResult(query, found, more)
    answer.next = _next(answer, limit, options)
    return answer


def recall(store: Store, query: str, **options: object) -> list[Hit]:
    """The nodes about something, the best match first. Records nothing.

    Args:
        query: As for `search`.
        options: limit (1 to 1,000; default 10); half_life in microseconds; by_decay: decay counts in full,
            `score = relevance × decay`; those of `listing.Filter`: wu, type, lifecycle, tags, path,
            include_archived and others.

    Raises: UsageError for a question without a word, and for bad values; StoreError `no-full-text` where SQLite was
        built without FTS5.
    """
    return _recall(store, query, **options)[0]  # type: ignore[arg-type]  # passed on as they came


def _recall(
    store: Store,
    query: str,
    *,
    limit: int = LIMIT,
    half_life: int = decay.HALF_LIFE_MICROS,
    by_decay: bool = False,
    **filters: object,
) -> tuple[list[Hit], bool]:
    from itertools import islice

    decay.checked(half_life)
    if not 0 < limit <= LIMIT_MAX:
        raise UsageError(f"The limit must be 1 to {LIMIT_MAX}, not {limit}.", code="bad-number")
    wanted = Filter(**filters)  # type: ignore[arg-type]  # they are checked there
    question = Question(query)
    if question.every is None:
        raise UsageError(
            "The question has no word to search for.",
            hint="Such as: gitmem mem search parser tabs",
            code="no-words",
            next=["gitmem mem list"],
        )
    weight = 1.0 if by_decay else WEIGHT
    most = limit * (CANDIDATES_BY_DECAY if by_decay else CANDIDATES)
    now = store.now()
    candidates = []
    for id, tier, rank, touched, priority, count in _ask(store, question, wanted, limit, most):
        score = decay.of(touched, count, priority, now=now, half_life=half_life)
        candidates.append(_Candidate(id, tier, -rank, touched, score, weight))
    candidates.sort(key=_Candidate.order)
    # What is stale steps back, perhaps behind some that follow.
    hits = _load(store, candidates[: 2 * limit], question, weight)
    return list(islice(hits, limit)), len(candidates) > limit


def _ask(store: Store, question: Question, wanted: Filter, limit: int, most: int) -> list[Row]:
    """The most relevant nodes, from an index of words that is up to date."""
    for attempt in range(ATTEMPTS):
        db = store.db()
        try:
            for _ in range(ATTEMPTS):
                db.execute("BEGIN")  # so that nobody empties the index between a look at it and the answer
                try:
                    if fts_index.is_current(db):
                        return _matching(db, question, wanted, limit, most)
                finally:
                    if db.in_transaction:
                        db.execute("COMMIT")
                fts_index.catch_up(db, store.progress)
            return _matching(db, question, wanted, limit, most)  # somebody writes all the time
        except sqlite3.DatabaseError as error:
            if fts_index.is_missing(error):
                raise StoreError(
                    "The SQLite of this Python was built without FTS5, so the memory can't be searched.",
                    hint="Everything else works: `gitmem mem list` has filters, `gitmem mem context` ranks by age.",
                    code="no-full-text",
                    next=["gitmem mem list"],
                ) from error
            if attempt == ATTEMPTS - 1:
                raise
            store.do_without(error)  # damaged, or not to be written: built anew, or a copy in memory
    raise AssertionError("every attempt returns or raises")


def _matching(db: sqlite3.Connection, question: Question, wanted: Filter, limit: int, most: int) -> list[Row]:
    """Id, tier, rank, time, priority and readings of what matches; a wider question only where one found too little."""
    found: dict[str, Row] = {}
    for tier, expression in enumerate((question.every, question.begun, question.some)):
        if expression is not None and len(found) < limit:
            for id, *rest in _best(db, expression, wanted, most):
                found.setdefault(id, (id, tier, *rest))
    return list(found.values())


def _best(db: sqlite3.Connection, expression: str, wanted: Filter, most: int) -> list[tuple[Any, ...]]:
    """The most relevant nodes, as FTS5 orders them.

    Looking up every match in other tables costs more than ranking it, so the best are taken first; only where
    what is hidden or not wanted takes too many of them away, every match is looked up.
    """
    matching = (
        f"SELECT rowid AS at, bm25({fts_index.TABLE}, {fts_index.WEIGHED}) AS rank FROM {fts_index.TABLE}"
    )
    matching += f" WHERE {fts_index.TABLE} MATCH ?"
    asked = (
        f"SELECT n.id, rank, n.touched, n.priority, coalesce(a.count, 0) FROM (%s) CROSS JOIN {fts_index.ROWS} r"
        f" ON r.row = at CROSS JOIN node n ON n.id = r.id LEFT JOIN access a ON a.id = n.id {wanted.where}"
        " ORDER BY rank LIMIT ?"
    )
    if not wanted.given:
        best = f"{matching} ORDER BY rank LIMIT ?"
        rows = db.execute(asked % best, (expression, most, *wanted.values, most)).fetchall()
        if len(rows) > most // 2:
            return rows
        (all_of_them,) = db.execute(f"SELECT count(*) FROM ({best})", (expression, most)).fetchone()
        if all_of_them < most:
            return rows
    return db.execute(asked % matching, (expression, *wanted.values, most)).fetchall()


def _load(store: Store, candidates: Iterable[_Candidate], question: Question, weight: float) -> Iterator[Hit]:
    """Hits from candidates, in their order but for the stale ones, which go down."""
    by_id = {each.id: each for each in candidates}
    nodes = {node.id: node for node in load.load(store.db(), by_id)}
    stale = anchors.stale(store, [node for node in nodes.values() if node.paths])
    for id in stale:
        by_id[id].weigh(by_id[id].decay * decay.STALE, weight)
    for candidate in sorted(by_id.values(), key=_Candidate.order):
        if candidate.id in nodes:
            hit = Hit(candidate, nodes[candidate.id], *snippet(nodes[candidate.id].content, question))
            hit.stale = stale.get(candidate.id)
            yield hit


def _next(found: SearchResult, limit: int, options: dict[str, object]) -> list[str]:
    """The best hit whole, or a wider question."""
    ahead = found.query.startswith("-")  # then it is no option only behind all of them
    again, behind = ["gitmem", "mem", "search"], ["--", found.query] if ahead else []
    again += [] if ahead else [found.query]
    for name in ("wu", "type", "lifecycle", "path"):
        if options.get(name):
            again += [f"--{name}", str(options[name])]
    for tag in options.get("tags") or ():  # type: ignore[attr-defined]  # `Filter` took them
        again += ["--tag", str(tag)]
    if found.hits:
        first = command("gitmem", "mem", "show", found.hits[0].node.id)
        further = command(*again, "--limit", str(min(LIMIT_MAX, 5 * limit)), *behind)
        return [first, further] if found.more and limit < LIMIT_MAX else [first]
    if options.get("include_archived"):
        return ["gitmem mem list --include-archived"]
    return [command(*again, "--include-archived", *behind), "gitmem mem list"]
