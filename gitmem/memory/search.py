"""Search the memory, best match first.

`score = relevance × (3 + decay) / 4`. Relevance is BM25 over all words. If too few nodes have all words, nodes with
words of these prefixes follow, then nodes with some of the words. If decay (age, accesses, priority) counted in
full, old nodes would be unfindable: a node of three months would need twenty times the relevance of one of today.
"""

from __future__ import annotations

from ..errors import StoreError, UsageError
from ..index.engine import sqlite3
from ..outcome import Outcome
from ..text.shell_quote import command
from . import anchors, decay, fts_index, load
from .fts_query import FtsQuery
from .listing import Filter
from .snippet import snippet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, NotRequired, Unpack

    from ..agents.caller import Caller
    from ..store import Store
    from .listing import FilterOptions
    from .snippet import Marks
    from .versioned_node import VersionedNode

    Row = tuple[str, int, float, int, str | None, int]

    class RecallOptions(FilterOptions):
        """The options of a search, with those of `Filter`."""

        half_life: NotRequired[int]
        by_decay: NotRequired[bool]


LIMIT = 10
LIMIT_MAX = 1_000
# The most relevant matches, this many times the limit, are weighted by decay. A fresh P0 gets about twice the
# score of an old P3; if decay counts in full, it can outweigh any relevance.
CANDIDATES = 10
CANDIDATES_BY_DECAY = 100
WEIGHT = 0.25  # of decay; 1.0 if it counts in full
ATTEMPTS = 3


class Hit(Outcome):
    """A node that matches.

    Attributes:
        score: The sort key among hits with the same `matched`; higher is better.
        bm25: The relevance; higher is better. FTS5's own value is its negative.
        decay: The decay score now, halved if the node is stale.
        matched: `all` the words, words that `begin` with them, or `some` of them.
        snippet: One sanitized line of the text.
        stale: How its files changed since; None if they did not.
        marks: The positions of the hits in the snippet.
    """

    __slots__ = ("node", "score", "bm25", "decay", "matched", "snippet", "stale", "marks")

    def __init__(self, found: _Candidate, node: VersionedNode, text: str, marks: Marks) -> None:
        self.node = node
        self.bm25 = found.bm25
        self.decay = found.decay
        self.matched = TIERS[found.tier]
        self.snippet = text
        self.stale: str | None = None
        self.marks = marks
        self.score = found.score

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, without `marks`."""
        values = super().as_json()
        del values["marks"]
        return values


class SearchResult(Outcome):
    """The hits of a search; `more` is true if further nodes match."""

    __slots__ = ("query", "hits", "more", "next")

    def __init__(self, query: str, hits: Sequence[Hit], more: bool) -> None:
        self.query = query
        self.hits = list(hits)
        self.more = more
        self.next: list[str] = []


class _Candidate:
    """A matching node that is not loaded yet."""

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
    store: Store,
    query: str,
    *,
    reader: Caller | None = None,
    limit: int = LIMIT,
    **options: Unpack[RecallOptions],
) -> SearchResult:
    """Search the memory, and record the access of a reader.

    Args:
        query: Words; words in double quotes form a phrase. There is no other syntax.
        reader: The reader whose access to the hits is recorded; None records none.
        options: Those of `recall`.

    Raises:
        UsageError, StoreError: As in `recall`.
    """
    found, more = _recall(store, query, limit, **options)
    if reader is not None and found:
        from . import accesses

        accesses.record(store, reader, [hit.node.id for hit in found])
    answer = SearchResult(query, found, more)
    answer.next = _next(answer, limit, options)
    return answer


def recall(store: Store, query: str, *, limit: int = LIMIT, **options: Unpack[RecallOptions]) -> list[Hit]:
    """Return the matching nodes, best match first. Records nothing.

    Args:
        query: As for `search`.
        options: limit (1 to 1,000; default 10); half_life in microseconds; by_decay: decay counts in full,
            `score = relevance × decay`; those of `listing.Filter`: wu, type, lifecycle, tags, path,
            include_archived and others.

    Raises:
        UsageError: The query has no word, or a value is invalid.
        StoreError: `no-full-text`: SQLite was built without FTS5.
    """
    return _recall(store, query, limit, **options)[0]


def _recall(
    store: Store,
    query: str,
    limit: int,
    *,
    half_life: int = decay.HALF_LIFE_MICROS,
    by_decay: bool = False,
    **filters: Unpack[FilterOptions],
) -> tuple[list[Hit], bool]:
    from itertools import islice

    decay.validate(half_life)
    if not 0 < limit <= LIMIT_MAX:
        raise UsageError(f"The limit must be 1 to {LIMIT_MAX}, not {limit}.", code="bad-number")
    wanted = Filter(**filters)
    question = FtsQuery(query)
    if question.every is None:
        raise UsageError(
            "The query has no words to search for.",
            hint="Example: gitmem mem search parser tabs",
            code="no-words",
            next=["gitmem mem list"],
        )
    weight = 1.0 if by_decay else WEIGHT
    most = limit * (CANDIDATES_BY_DECAY if by_decay else CANDIDATES)
    now = store.now()
    candidates = []
    for id, tier, rank, touched, priority, count in _query(store, question, wanted, limit, most):
        score = decay.score_of(touched, count, priority, now=now, half_life=half_life)
        candidates.append(_Candidate(id, tier, -rank, touched, score, weight))
    candidates.sort(key=_Candidate.order)
    # Stale nodes rank lower, perhaps behind nodes beyond the limit.
    hits = _load(store, candidates[: 2 * limit], question, weight)
    return list(islice(hits, limit)), len(candidates) > limit


def _query(store: Store, question: FtsQuery, wanted: Filter, limit: int, most: int) -> list[Row]:
    """Return the most relevant nodes, after updating the full-text index."""
    for attempt in range(ATTEMPTS):
        db = store.db()
        try:
            for _ in range(ATTEMPTS):
                db.execute("BEGIN")  # prevents emptying the index between the check and the query
                try:
                    if fts_index.is_current(db):
                        return _matching(db, question, wanted, limit, most)
                finally:
                    if db.in_transaction:
                        db.execute("COMMIT")
                fts_index.catch_up(db, store.progress)
            return _matching(db, question, wanted, limit, most)  # other processes write continuously
        except sqlite3.DatabaseError as error:
            if fts_index.is_missing(error):
                raise StoreError(
                    "Cannot search: this Python's SQLite was built without FTS5.",
                    hint="All other commands work: `gitmem mem list` has filters, `gitmem mem context` ranks by age.",
                    code="no-full-text",
                    next=["gitmem mem list"],
                ) from error
            if attempt == ATTEMPTS - 1:
                raise
            store.replace_index(error)  # damaged or read-only: rebuild it, or use a copy in memory
    raise AssertionError("every attempt returns or raises")


def _matching(db: sqlite3.Connection, question: FtsQuery, wanted: Filter, limit: int, most: int) -> list[Row]:
    """Return the matching rows; try a wider expression only if a narrower one finds too few."""
    found: dict[str, Row] = {}
    for tier, expression in enumerate((question.every, question.begun, question.some)):
        if expression is not None and len(found) < limit:
            for id, *rest in _best(db, expression, wanted, most):
                found.setdefault(id, (id, tier, *rest))
    return list(found.values())


def _best(db: sqlite3.Connection, expression: str, wanted: Filter, most: int) -> list[tuple[Any, ...]]:
    """Return the most relevant nodes, in FTS5's order.

    Joining every match with other tables costs more than ranking it, so only the best are joined first. Every match
    is joined only if filters and hidden nodes remove too many of these.
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


def _load(store: Store, candidates: Iterable[_Candidate], question: FtsQuery, weight: float) -> Iterator[Hit]:
    """Yield hits from candidates in their order, except that stale ones rank lower."""
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


def _next(found: SearchResult, limit: int, options: RecallOptions) -> list[str]:
    """Return the commands that show the best hit, or a wider search."""
    ahead = found.query.startswith("-")  # it must follow `--` then, or it would be parsed as an option
    again, behind = ["gitmem", "mem", "search"], ["--", found.query] if ahead else []
    again += [] if ahead else [found.query]
    for name in ("wu", "type", "lifecycle", "path"):
        if value := options.get(name):
            again += [f"--{name}", str(value)]
    for tag in options.get("tags", ()):
        again += ["--tag", tag]
    if found.hits:
        first = command("gitmem", "mem", "show", found.hits[0].node.id)
        further = command(*again, "--limit", str(min(LIMIT_MAX, 5 * limit)), *behind)
        return [first, further] if found.more and limit < LIMIT_MAX else [first]
    if options.get("include_archived"):
        return ["gitmem mem list --include-archived"]
    return [command(*again, "--include-archived", *behind), "gitmem mem list"]
