"""Nodes that a search found, as text."""

from __future__ import annotations

from gitmem.operations.memory import authors

from ..out import sanitize
from ..text import BAR, SEPARATOR
from .nodes import about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.memory.search import Found, Hit

OPEN, CLOSE = "«", "»"  # around a hit
WIDER = {
    "begin": "these have words that begin so:",
    "some": "these have some of the words:",
}


def found(answer: Found) -> list[str]:
    lines: list[str] = []
    matched = "all"
    for hit in answer.hits:
        if hit.matched != matched:
            matched = hit.matched
            lines.append(WIDER[matched])
        lines += _hit(hit)
    if not lines:
        return [f"nothing found for {sanitize(answer.query, keep='')}"]
    return [*lines, *(["more nodes match: --limit N shows more"] if answer.more else [])]


def _hit(hit: Hit) -> list[str]:
    node = hit.node
    id, _, rest = about(node).partition(SEPARATOR)
    facts = [
        id,
        node.created_at[:10],
        rest,
        sanitize(", ".join(node.paths[:3]), keep=""),
        sanitize(hit.stale or "", keep=""),
        sanitize(f"by {authors.byline(node)}", keep="") if authors.is_changed(node) else "",
    ]
    return [SEPARATOR.join(fact for fact in facts if fact), BAR + _marked(hit)]


def _marked(hit: Hit) -> str:
    """The snippet, its hits between marks. It is harmless already."""
    shown, at = "", 0
    for start, end in hit.marks:
        shown += hit.snippet[at:start] + OPEN + hit.snippet[start:end] + CLOSE
        at = end
    return shown + hit.snippet[at:]
