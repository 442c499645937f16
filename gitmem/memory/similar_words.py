"""Find indexed words that differ by one edit from words of a query that match nothing.

One edit is a letter that is missing, added or replaced, or two adjacent letters that are swapped. Words are looked up by
their start, so the first letter must be right or swapped with the second.
"""

from __future__ import annotations

from . import fts_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

WORDS_MAX = 3  # of a query
TRIED_MAX = 5  # similar words of one word
COMPARED_MAX = 50_000  # indexed words of one first letter
AFTER_ALL = chr(0x10FFFF)


def find(db: sqlite3.Connection, words: Iterable[str], is_shown: Callable[[str], bool]) -> dict[str, str]:
    """Return a similar indexed word for each word that matches nothing, not even as a prefix.

    Args:
        is_shown: Tells whether a word matches a node that the search may show. Deleted nodes are indexed, too.
    """
    candidates = (
        word for word in dict.fromkeys(words) if len(word) >= fts_index.SIMILAR_LEAST and word.isalpha()
    )
    unknown = [word for word in candidates if not _is_known(db, word)]
    tried = ((word, filter(is_shown, _most_frequent(db, word))) for word in unknown[:WORDS_MAX])
    found = ((word, next(similar, None)) for word, similar in tried)
    return {word: similar for word, similar in found if similar is not None}


def _is_known(db: sqlite3.Connection, word: str) -> bool:
    known = f"SELECT 1 FROM {fts_index.TABLE} WHERE {fts_index.TABLE} MATCH ? LIMIT 1"
    return any(db.execute(known, (each,)).fetchone() for each in (f'"{word}"', f'"{word}" *'))


def _most_frequent(db: sqlite3.Connection, word: str) -> list[str]:
    """Return the similar words that most nodes have, up to `TRIED_MAX`; equally frequent ones in alphabetical order."""
    from rapidfuzz.distance import OSA

    found: list[tuple[int, str]] = []
    for start in dict.fromkeys(word[:2]):
        rows = db.execute(
            f"SELECT word, nodes FROM (SELECT * FROM {fts_index.VOCABULARY} WHERE word >= ? AND word < ? LIMIT ?)"
            " WHERE length(word) BETWEEN ? AND ?",
            (start, start + AFTER_ALL, COMPARED_MAX, len(word) - 1, len(word) + 1),
        )
        found += [(-nodes, each) for each, nodes in rows if OSA.distance(word, each, score_cutoff=1) <= 1]
    return [each for _, each in sorted(found)[:TRIED_MAX]]
