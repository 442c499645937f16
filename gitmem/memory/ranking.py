"""Find the nodes that match a query, with their relevance.

Nodes with all words come first. If they are too few, nodes with words of these prefixes follow, then nodes with some
of the words. Relevance is BM25. In the last tier it is multiplied by coverage: the share of the words that a node has,
each weighted by its rarity. A match also counts for the matches beside it in the same session: one conversation or one
piece of work often has the answer beside the words of the question.

Everything here depends only on the set of nodes, not on the order of their arrival.
"""

from __future__ import annotations

from math import log

from . import fts_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from .fts_query import FtsQuery
    from .listing import Filter

TIERS = ("all", "begin", "some")
SOME = TIERS.index("some")
BESIDE = (
    0.5,
    0.25,
)  # share of a match that counts for the next node of its session, and for the one after that
SPREAD_MAX = 50  # best matches that count for others
BESIDE_MICROS = 3600 * 1_000_000  # nodes of a session that are further apart are not beside each other
IDF_LEAST = 1e-6  # as in FTS5, for words that most nodes have
_RANKED = (
    f"SELECT rowid AS number, bm25({fts_index.TABLE}, {fts_index.WEIGHED}) AS rank FROM {fts_index.TABLE}"
)
_RANKED += f" WHERE {fts_index.TABLE} MATCH ?"
_JOINED = (
    f"SELECT r.row, rank, n.id, n.touched, n.priority, coalesce(a.count, 0), r.session, r.created FROM (%s)"
    f" CROSS JOIN {fts_index.ROWS} r ON r.row = number CROSS JOIN node n ON n.id = r.id LEFT JOIN access a ON a.id = n.id"
)
_NEXT = f"SELECT row, created FROM {fts_index.ROWS} WHERE session = ? AND (created, id) %s (?, ?) ORDER BY created %s, id %s LIMIT ?"
_BEFORE, _AFTER = _NEXT % ("<", "DESC", "DESC"), _NEXT % (">", "ASC", "ASC")


class Match:
    """A node that matches.

    Attributes:
        row: Its row in the full-text index.
        bm25: Of all its matching words; higher is better.
        relevance: BM25 with coverage and neighbours.
        decay, score: The decay score, and the sort key among matches of a tier; see `weigh`.
        priority, count: Its priority and the number of its accesses, for decay.
        session, created: Its session, and the time of its creation.
    """

    def __init__(
        self,
        tier: int,
        row: int,
        rank: float,
        id: str,
        touched: int,
        priority: str | None,
        count: int,
        session: str | None,
        created: int,
    ) -> None:
        self.tier = tier
        self.row = row
        self.bm25 = self.relevance = -rank
        self.id = id
        self.touched = touched
        self.priority = priority
        self.count = count
        self.session = session
        self.created = created
        self.weigh(1.0, 0.0)

    def weigh(self, decay: float, weight: float) -> None:
        """Set the decay score and the score; `weight` is the share of decay in it."""
        self.decay = decay
        self.score = self.relevance * (1 - weight + weight * decay)


def order(match: Match) -> tuple[object, ...]:
    """Return the sort key of a match: the best first."""
    return (match.tier, -match.score, -match.touched, match.id)


def find(db: sqlite3.Connection, question: FtsQuery, wanted: Filter, limit: int, most: int) -> list[Match]:
    """Return the most relevant matches; ask for a wider expression only if a narrower one finds too few.

    Args:
        limit: The number of matches that is enough.
        most: The maximum number of matches of each expression.
    """
    found: dict[int, Match] = {}
    reached = 0
    for tier, expression in enumerate((question.every, question.begun, question.some)):
        if expression is not None and len(found) < limit:
            reached = tier
            for row in _best(db, expression, wanted, most):
                found.setdefault(row[0], Match(tier, *row))
    best = sorted(found.values(), key=order)[:SPREAD_MAX]
    beside = {match.row: _beside(db, match) for match in best if match.session is not None}
    if reached == SOME and question.some is not None:
        further = {row for rows in beside.values() for row, _ in rows} - found.keys()
        for row in _among(db, question.some, wanted, further):
            found[row[0]] = Match(SOME, *row)
        _apply_coverage(db, question.words, [match for match in found.values() if match.tier == SOME])
    _spread(found, beside)
    return list(found.values())


def has_match(db: sqlite3.Connection, word: str, wanted: Filter) -> bool:
    """Return whether a node that passes the filter has a word."""
    rows = f"SELECT rowid AS number, NULL AS rank FROM {fts_index.TABLE} WHERE {fts_index.TABLE} MATCH ?"
    asked = f"{_JOINED % rows} {wanted.where} LIMIT 1"
    return db.execute(asked, (f'"{word}"', *wanted.values)).fetchone() is not None


def _best(db: sqlite3.Connection, expression: str, wanted: Filter, most: int) -> list[tuple[Any, ...]]:
    """Return the most relevant nodes; among equally relevant ones those with the lowest ids.

    Joining every match with other tables costs more than ranking it, so only the best are joined first. Every match
    is joined only if filters and hidden nodes remove too many of these, or if very many are equally relevant.
    """
    if not wanted.given:
        best = db.execute(f"{_RANKED} ORDER BY rank LIMIT ?", (expression, 2 * most)).fetchall()
        last = best[most - 1][1] if len(best) > most else None
        if last is None or len(best) < 2 * most or best[-1][1] > last:
            taken = best if last is None else [each for each in best if each[1] <= last]
            rows = _joined(db, taken, wanted)
            if last is None or len(rows) > most // 2:
                rows.sort(key=lambda row: (row[1], row[2]))
                return rows[:most]
    every = f"{_JOINED % _RANKED} {wanted.where} ORDER BY rank, n.id LIMIT ?"
    return db.execute(every, (expression, *wanted.values, most)).fetchall()


def _joined(
    db: sqlite3.Connection, ranked: Iterable[tuple[int, float]], wanted: Filter
) -> list[tuple[Any, ...]]:
    """Return the rows of nodes with these ranks that pass the filter."""
    ranks = dict(ranked)
    rows = f"SELECT value AS number, NULL AS rank FROM json_each('[{_listed(ranks)}]')"
    found = db.execute(f"{_JOINED % rows} {wanted.where}", wanted.values)
    return [(row, ranks[row], *rest) for row, _, *rest in found]


def _among(
    db: sqlite3.Connection, expression: str, wanted: Filter, rows: Collection[int]
) -> list[tuple[Any, ...]]:
    """Return those of these rows that match. `+rowid`: one pass over all matches is faster than a query for each row."""
    if not rows:
        return []
    among = f"{_RANKED} AND +rowid IN ({_listed(rows)})"
    return db.execute(f"{_JOINED % among} {wanted.where}", (expression, *wanted.values)).fetchall()


def _listed(rows: Collection[int]) -> str:
    return ", ".join(map(str, rows))


def _beside(db: sqlite3.Connection, match: Match) -> list[tuple[int, float]]:
    """Return the rows beside a match, each with the share of the match that counts for it."""
    found = []
    for statement in (_BEFORE, _AFTER):
        rows = db.execute(statement, (match.session, match.created, match.id, len(BESIDE)))
        for share, (row, created) in zip(BESIDE, rows, strict=False):
            if abs(created - match.created) <= BESIDE_MICROS:
                found.append((row, share))
    return found


def _apply_coverage(db: sqlite3.Connection, words: Sequence[str], matches: Sequence[Match]) -> None:
    """Multiply the relevance of matches by the share of the words that they have, weighted by the words' rarity."""
    (count,) = db.execute(f"SELECT count(*) FROM {fts_index.ROWS}").fetchone()
    total, covered = 0.0, dict.fromkeys((match.row for match in matches), 0.0)
    having = f"group_concat(CASE WHEN rowid IN ({_listed(covered)}) THEN rowid END)"
    for word in words:
        often, rows = db.execute(
            f"SELECT count(*), {having} FROM {fts_index.TABLE} WHERE {fts_index.TABLE} MATCH ?", (word,)
        ).fetchone()
        idf = max(IDF_LEAST, log((count - often + 0.5) / (often + 0.5)))
        total += idf
        for row in rows.split(",") if rows else ():
            covered[int(row)] += idf
    for match in matches:
        match.relevance *= covered[match.row] / total if total else 1.0


def _spread(found: dict[int, Match], beside: dict[int, list[tuple[int, float]]]) -> None:
    """Add to the relevance of each match a share of those beside it.

    Only matches get a share: where neighbours are unrelated, others would push out better matches.
    """
    own = {row: match.relevance for row, match in found.items()}
    for row in sorted(
        beside, key=lambda row: found[row].id
    ):  # the order of additions changes the last digits
        for other, share in beside[row]:
            if other in found:
                found[other].relevance += share * own[row]
