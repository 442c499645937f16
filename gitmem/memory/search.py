"""Search the memory, best match first.

`score = relevance × (7 + decay) / 8`. If decay (age, accesses, priority) counted in
full, old nodes would be unfindable: a node of three months would need twenty times the relevance of one of today.
"""

from __future__ import annotations

from itertools import islice

from ..errors import StoreError, UsageError, check_limit
from ..index.index_file import sqlite3
from ..outcome import Outcome, command
from ..text.sanitize import defuse_tags, sanitize
from . import anchors, decay, fts, reader_store, relations, stored_nodes
from .fts import FtsQuery, Match
from .listing import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import NotRequired, TypeVar, Unpack

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..store import Store
    from .listing import FilterOptions

    Answer = TypeVar("Answer")

    class RecallOptions(FilterOptions):
        """The options of a search, with those of `Filter`."""

        half_life: NotRequired[int]
        by_decay: NotRequired[bool]
        stale: NotRequired[bool]


LIMIT = 10
LIMIT_MAX = 1_000
# The most relevant matches, this many times the limit, are weighted by decay. A fresh P0 gets about twice the
# score of an old P3; if decay counts in full, it can outweigh any relevance.
CANDIDATES = 10
CANDIDATES_LEAST = 200
CANDIDATES_BY_DECAY = 100
WEIGHT = 0.125  # of decay; 1.0 if it counts in full
ATTEMPTS = 3

LONGEST = 160  # characters of the text
BEFORE = 40  # of these before the first hit, if the text continues after the last
READ_MAX = 16_384  # characters of a text that are searched
HITS_MAX = 100  # of a text that are marked
Hits = list[tuple[int, int, str]]
Marks = list[tuple[int, int]]


class Hit(Outcome):
    """A node that matches.

    Attributes:
        score: The sort key among hits with the same `matched`; higher is better.
        bm25: The relevance; higher is better. FTS5's own value is its negative.
        decay: The decay score now, halved if the node is stale.
        matched: `all` the words, words that `begin` with them, or `some` of them.
        snippet: One sanitized line of the text.
        stale: How its files changed since; None if they did not.
        question: What it matches.
        marks: The positions of the hits in the snippet.
        superseded_by: The live end of its chain, which is above it; that has the `matched` and the scores of the best
            hit that it supersedes, and need not match itself.
    """

    def __init__(self, found: Match, node: VersionedNode) -> None:
        self.node = node
        self.score = found.score
        self.bm25 = found.bm25
        self.decay = found.decay
        self.matched = fts.TIERS[found.tier]
        self.question = found.question
        self.snippet, self.marks = snippet(node.content, found.question)
        self.stale: str | None = None
        self.superseded_by: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, without `question` and `marks`."""
        values = super().as_json()
        del values["question"], values["marks"]
        return values


class SearchResult(Outcome):
    """The hits of a search.

    Attributes:
        more: Whether further nodes match.
        similar: For each word that nothing matches, the similar word that was searched for and matched.
    """

    query: str
    hits: list[Hit]
    more: bool
    similar: dict[str, str]
    next: list[str] = []


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
    answer = _recall(store, query, limit, **options)
    if reader is not None and answer.hits:
        decay.record_accesses(store, reader, [hit.node.id for hit in answer.hits])
    answer.next = _next(answer, limit, options)
    return answer


def recall(store: Store, query: str, *, limit: int = LIMIT, **options: Unpack[RecallOptions]) -> list[Hit]:
    """Return the matching nodes, best match first. Records nothing.

    Args:
        query: As for `search`.
        options: limit (1 to 1,000; default 10); half_life in microseconds; by_decay: decay counts in full,
            `score = relevance × decay`; stale (default true): nodes whose files have changed rank lower, which asks git; those of `listing.Filter`: wu, type, lifecycle, tags, path,
            include_archived and others.

    Raises:
        UsageError: The query has no word, or a value is invalid.
        StoreError: `no-full-text`: SQLite was built without FTS5.
    """
    return _recall(store, query, limit, **options).hits


def _recall(
    store: Store,
    query: str,
    limit: int,
    *,
    half_life: int = decay.HALF_LIFE_MICROS,
    by_decay: bool = False,
    stale: bool = True,
    **filters: Unpack[FilterOptions],
) -> SearchResult:
    decay.validate(half_life)
    check_limit(limit, LIMIT_MAX)
    wanted = Filter(**filters)
    question = FtsQuery(query)
    if question.every is None:
        raise UsageError(
            "The query has no words to search for.",
            hint="Example: `gitmem mem search parser tabs`",
            code="no-words",
            next=["gitmem mem list"],
        )
    weight = 1.0 if by_decay else WEIGHT
    most = limit * CANDIDATES_BY_DECAY if by_decay else max(limit * CANDIDATES, CANDIDATES_LEAST)

    def ask(db: sqlite3.Connection) -> tuple[FtsQuery, list[Match]]:
        matches = fts.find_matches(db, question, wanted, limit, most)
        if any(match.tier < fts.SOME for match in matches):
            return question, matches

        similar = fts.find_similar(db, question.parts, lambda word: fts.has_match(db, word, wanted))
        if not similar:
            return question, matches
        other = FtsQuery(query, similar)
        replaced = fts.find_matches(db, other, wanted, limit, most)
        return (other, replaced) if replaced else (question, matches)

    matches: list[Match] = []
    similar: dict[str, str] = {}
    for part in reader_store.parts(store):
        asked, some = _with_index(part, ask)
        similar |= asked.similar
        for match in some:
            match.question = asked
        matches += some
    now = store.now()
    for match in matches:
        age = decay.score_of(match.touched, match.count, match.priority, now=now, half_life=half_life)
        match.weigh(age, weight)
    matches.sort(key=fts.match_order)
    # Stale nodes rank lower, perhaps behind nodes beyond the limit.
    hits = _load(store, matches[: 2 * limit if stale else limit], weight, stale=stale)
    found = _arranged(store, list(islice(hits, limit)))[:limit]
    return SearchResult(query, found, len(matches) > limit, similar)


def _with_index(store: Store, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
    """Query the index after updating the full-text index."""
    for attempt in range(ATTEMPTS):
        db = store.db()
        try:
            for _ in range(ATTEMPTS):
                db.execute("BEGIN")  # prevents emptying the index between the check and the query
                try:
                    if fts.is_current(db):
                        return ask(db)
                finally:
                    if db.in_transaction:
                        db.execute("COMMIT")
                fts.catch_up(db, store.progress)
            return ask(db)  # other processes write continuously
        except sqlite3.DatabaseError as error:
            if fts.is_missing(error):
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


def _load(store: Store, matches: Iterable[Match], weight: float, *, stale: bool) -> Iterator[Hit]:
    """Yield hits from matches in their order, except that stale ones rank lower."""
    by_id = {each.id: each for each in matches}
    nodes = {node.id: node for node in stored_nodes.load(store.db(), by_id)}
    moved = anchors.stale(store, [node for node in nodes.values() if node.paths]) if stale else {}
    for id in moved:
        by_id[id].weigh(by_id[id].decay * decay.STALE, weight)
    for match in sorted(by_id.values(), key=fts.match_order):
        if match.id in nodes:
            hit = Hit(match, nodes[match.id])
            hit.stale = moved.get(match.id)
            yield hit


def _arranged(store: Store, hits: list[Hit]) -> list[Hit]:
    """Return hits, each superseded one directly below the live end of its chain, which need not match.

    Live end and superseded hits take the place of the best of them.
    """
    ends = relations.ends_of(store.db(), [hit.node.id for hit in hits])
    if not ends:
        return hits
    matched = {hit.node.id: hit for hit in hits}
    older: dict[str, list[Hit]] = {}
    for hit in hits:
        hit.superseded_by = ends.get(hit.node.id)
        older.setdefault(hit.superseded_by or hit.node.id, []).append(hit)
    found: list[Hit] = []
    for live, group in older.items():
        top = matched.get(live) or _successor(store, live, group[0])
        top.matched = group[0].matched  # the headings of an answer follow the groups
        found += [top, *(hit for hit in group if hit is not top)]
    return found


def _successor(store: Store, id: str, older: Hit) -> Hit:
    """Return the hit of a live node that did not match, with the scores of a hit that it supersedes."""
    from copy import copy

    hit, node = copy(older), stored_nodes.load_one(store.db(), id)
    hit.node, hit.superseded_by = node, None
    hit.snippet, hit.marks = snippet(node.content, hit.question)
    hit.stale = anchors.stale(store, [node]).get(id)
    return hit


def _next(found: SearchResult, limit: int, options: RecallOptions) -> list[str]:
    """Return the commands that show the best hit, or a wider search."""
    ahead = found.query.startswith("-")  # it must follow `--` then, or it would be parsed as an option
    again, behind = ["gitmem", "mem", "search"], ["--", found.query] if ahead else []
    again += [] if ahead else [found.query]
    for name in ("wu", "type", "lifecycle", "path"):
        if value := options.get(name):
            again += [f"--{name}", str(value)]
    for tag in options.get("tags") or ():
        again += ["--tag", tag]
    if found.hits:
        first = command("gitmem", "show", found.hits[0].node.id)
        further = command(*again, "--limit", str(min(LIMIT_MAX, 5 * limit)), *behind)
        return [first, further] if found.more and limit < LIMIT_MAX else [first]
    if options.get("include_archived"):
        return ["gitmem mem list --include-archived"]
    return [command(*again, "--include-archived", *behind), "gitmem mem list"]


def snippet(text: str, question: FtsQuery) -> tuple[str, Marks]:
    """Return one sanitized line of a text, and the positions of its hits in that line."""
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFC", text)
    line = " ".join(text[:READ_MAX].split())
    hits = list(islice(fts.find_words(line, question.marks), HITS_MAX))
    start, end = _piece(line, hits)
    line = defuse_tags(line)  # before splitting: parts divided by hits could form a tag again
    shown = "…" if start else ""
    marks: Marks = []
    at = start
    for first, last, _ in hits:
        if first >= at and last <= end:
            shown += sanitize(line[at:first])
            begin = len(shown)
            shown += sanitize(line[first:last])
            marks.append((begin, len(shown)))
            at = last
    shown += sanitize(line[at:end])
    goes_on = end < len(line) or len(text) > READ_MAX
    return shown + ("…" if goes_on else ""), marks


def _piece(line: str, hits: Hits) -> tuple[int, int]:
    """Return the start and end of the part with the most different words, the first one if several."""
    if len(line) <= LONGEST:
        return 0, len(line)
    # The start of the part with the most different words, the first one if several.
    first = max((hit[0] for hit in hits), key=lambda at: _count_words(hits, at), default=0)
    start = max(0, first - BEFORE)
    end = min(len(line), start + LONGEST)
    start = max(0, end - LONGEST)
    if start:  # do not start within a word, in scripts with spaces between words
        space = line.find(" ", start, first)
        start = space + 1 if 0 <= space < first else start
    if end < len(line):
        space = line.rfind(" ", start + LONGEST // 2, end + 1)
        end = space if space > 0 else end
    return start, end


def _count_words(hits: Hits, at: int) -> int:
    return len({word for start, end, word in hits if start >= at and end <= at + LONGEST - BEFORE})
