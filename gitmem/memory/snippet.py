"""Snippets: the part of a text that best shows its hits, in one line."""

from __future__ import annotations

from ..text.sanitize import defuse_tags, sanitize
from . import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fts_query import FtsQuery

LONGEST = 160  # characters of the text
BEFORE = 40  # of these before the first hit, if the text continues after the last
READ_MAX = 16_384  # characters of a text that are searched

Hits = list[tuple[int, int, str]]
Marks = list[tuple[int, int]]


def snippet(text: str, question: FtsQuery) -> tuple[str, Marks]:
    """Return one sanitized line of a text, and the positions of its hits in that line."""
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFC", text)
    line = " ".join(text[:READ_MAX].split())
    hits = list(tokenize.find_words(line, question.marks, question.starts))
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
    first = _best(hits)
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


def _best(hits: Sequence[tuple[int, int, str]]) -> int:
    """Return the position of the hit that starts the part with the most different words."""
    best, most, last = 0, 0, 0
    inside: dict[str, int] = {}
    for start, _, word in hits:
        while last < len(hits) and hits[last][1] <= start + LONGEST - BEFORE:
            inside[hits[last][2]] = inside.get(hits[last][2], 0) + 1
            last += 1
        if len(inside) > most:
            best, most = start, len(inside)
        if word in inside:
            inside[word] -= 1
            if not inside[word]:
                del inside[word]
    return best
