"""Nodes of the memory as text: one a line, the hits of a search, or one in full."""

from __future__ import annotations

from gitmem.memory import authors
from gitmem.signals import task_records

from .. import tasks
from ..as_json import encode
from ..output import paint, program, record_position, sanitize
from ..text import BAR, SEPARATOR, format_ago, plural, quote_lines
from .nodes import about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.memory.listing import Listing
    from gitmem.memory.ready import Blocker, Ready
    from gitmem.memory.search import Hit, SearchResult
    from gitmem.memory.show_node import NodeChange, NodeDetail, Relative
    from gitmem.memory.versioned_node import VersionedNode

COLUMNS = 80  # of a node's text in a list; `show` prints all of it
OPEN, CLOSE = "«", "»"  # around a hit
WIDER = {
    "begin": "partial matches, words with this beginning:",
    "some": "partial matches, some of the words:",
}


def listed(found: Listing) -> list[str]:
    """Return the nodes of a list, one a line."""
    lines = [line(node, found.stale.get(node.id), found.superseded.get(node.id)) for node in found.nodes]
    if not lines:
        return ["No nodes match."]
    return [*lines, *([f"{plural(found.more, 'more node')} not shown; use --limit N"] if found.more else [])]


def line(node: VersionedNode, stale: str | None = None, live: str | None = None) -> str:
    """Return `mem-… · 2026-10-26 · discovery · P1 · WU-7 · bug · src/parser.py +1 | The parser drops tabs`."""
    id, _, rest = about(node).partition(SEPARATOR)
    lifecycle = "" if node.lifecycle == "wu" else node.lifecycle  # the most frequent one
    facts = [id, _when(node.created_at), rest, lifecycle, _files(node.paths), _stale(stale)]
    facts.append(_superseded(live))
    if authors.is_changed(node):
        facts.append(sanitize(f"by {authors.byline(node)}", keep=""))
    return f"{SEPARATOR.join(fact for fact in facts if fact)} | {_beginning(node.content)}"


def _stale(said: str | None) -> str:
    return paint(sanitize(said or "", keep=""), "careful")


def _superseded(live: str | None) -> str:
    return paint(f"superseded by {live}", "quiet") if live else ""


def _when(at: str) -> str:
    """Return the age if it is given in hours or less, otherwise the day."""
    ago = format_ago(at)
    return at[:10] if ago.endswith(" days ago") else ago


def _files(paths: Sequence[str]) -> str:
    more = f" +{len(paths) - 1}" if len(paths) > 1 else ""
    return sanitize(paths[0], keep="") + more if paths else ""


def _beginning(content: str) -> str:
    first = sanitize(content.strip().split("\n", 1)[0].strip(), keep="")
    return first if len(first) <= COLUMNS else first[: COLUMNS - 1].rstrip() + "…"


def shown(found: NodeDetail) -> list[str]:
    """Return a node in full, with its relations and history."""
    node = found.node
    by = sanitize(authors.byline(node), keep="")
    lines = [
        f"[{about(node)}{SEPARATOR}{node.lifecycle}{SEPARATOR}{by}{SEPARATOR}{format_ago(node.created_at)}]",
        *quote_lines(node.content),
    ]
    if found.ambiguous:
        lines.append(f"ambiguous: more than one record with id {node.id}; the first in sort order is shown")
    facts = [
        ("about", ", ".join(node.paths)),
        ("written at", f"{node.head[:12]}{f' on {node.branch}' if node.branch else ''}" if node.head else ""),
        ("session", node.session_id),
        ("reason", node.reason),
        ("summarized in", node.summarized_into),
        ("superseded by", found.superseded_by),
        ("metadata", ", ".join(f"{key}={_plain(value)}" for key, value in sorted(node.metadata.items()))),
    ]
    end = {"about": f"  {_stale(found.stale)}" if found.stale else ""}
    lines += [_fact(name, str(value), end.get(name, "")) for name, value in facts if value]
    lines += task_records.lines(found.contradicts, program())
    lines += [_relation(node.id, each) for each in found.relations]
    lines += [_change(node, each) for each in found.history]
    last = f", last {format_ago(node.last_accessed_at)}" if node.last_accessed_at else ""
    return [
        *lines,
        f"score {found.score:.3g}{SEPARATOR}read {plural(node.accesses, 'time')}{last}{SEPARATOR}{record_position(found.commit)}",
    ]


def _fact(name: str, value: str, end: str) -> str:
    return f"{paint(name, 'head')}: {sanitize(value, keep='')}{end}"


def _relation(id: str, each: Relative) -> str:
    other = _beginning(each["other"]) if each["other"] is not None else "(missing from this log)"
    if each["from_id"] == id:
        return f"{each['type']} {each['to_id']} | {other}"
    return f"{each['from_id']} {each['type']} this | {other}"


def _change(node: VersionedNode, each: NodeChange) -> str:
    changes = []
    for name, value in each.fields.items():
        if name in ("head", "branch"):
            continue
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else _plain(value)
        word = "cleared:" if name == "clear" else name
        changes.append(name if value is True else f"{word} {_beginning(text)}")
    if "head" in each.fields:
        changes.append(_verified(each))
    by = authors.format_writer(node, each.sender, each.sender_identity)
    return sanitize(f"{each.at[:19]}Z {by}: {'; '.join(changes)}", keep="")


def _plain(value: object) -> str:
    """Return a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else encode(value)


def _verified(each: NodeChange) -> str:
    """Return `verified at 6830b317c2b3 (wu-7)`; without `verified` if the change has new files or a new text."""
    branch = f" ({each.fields['branch']})" if "branch" in each.fields else ""
    verb = "" if each.fields.keys() & {"content", "paths"} else "verified "
    return f"{verb}at {each.fields['head']!s:.12}{branch}"


def ready(found: Ready) -> list[str]:
    """Return the nodes that are ready, the blocked ones, and the cycles among them."""
    lines = [line(node) for node in found.nodes]
    where = f"in {sanitize(found.wu_id)}" if found.wu_id is not None else "of any work unit or without one"
    if not lines:
        lines.append(f"no ready nodes {where}")
    elif found.wu_id is None:
        lines.insert(0, f"ready nodes {where}:")
    lines += [f"{plural(found.more, 'more node')} not shown; use --limit N"] if found.more else []
    for each in found.blocked:
        lines.append(f"blocked: {line(each.node)}")
        lines += [_blocker(one) for one in each.blockers]
        lines += [f"  by {hidden} more"] if (hidden := len(each.blocked_by) - len(each.blockers)) else []
    lines += (
        [f"{plural(found.more_blocked, 'more blocked node')} not shown; use --limit N"]
        if found.more_blocked
        else []
    )
    return [
        *map(tasks.ready, found.tasks),
        *lines,
        *(f"note: cycle, each is blocked by the next: {' → '.join(circle)}" for circle in found.circles),
    ]


def _blocker(each: Blocker) -> str:
    facts = [each.id, each.priority, each.wu_id]
    return (
        f"  by {sanitize(SEPARATOR.join(fact for fact in facts if fact), keep='')} | {_beginning(each.title)}"
    )


def matching(answer: SearchResult) -> list[str]:
    """Return the hits of a search, with a heading before each group of weaker matches."""
    lines = [
        f"no matches for {sanitize(word, keep='')}; searched for {sanitize(similar, keep='')}"
        for word, similar in answer.similar.items()
    ]
    matched = "all"
    for hit in answer.hits:
        if hit.matched != matched and hit.superseded_by is None:
            matched = hit.matched
            lines.append(WIDER[matched])
        lines += _hit(hit)
    if not answer.hits:
        return [f"no matches for {sanitize(answer.query, keep='')}"]
    return [*lines, *(["more nodes match; use --limit N"] if answer.more else [])]


def _hit(hit: Hit) -> list[str]:
    node = hit.node
    id, _, rest = about(node).partition(SEPARATOR)
    facts = [
        id,
        node.created_at[:10],
        rest,
        sanitize(", ".join(node.paths[:3]), keep=""),
        _stale(hit.stale),
        _superseded(hit.superseded_by),
        sanitize(f"by {authors.byline(node)}", keep="") if authors.is_changed(node) else "",
    ]
    return [SEPARATOR.join(fact for fact in facts if fact), BAR + _marked(hit)]


def _marked(hit: Hit) -> str:
    """Return the snippet with its hits between marks. It is already sanitized."""
    shown, at = "", 0
    for start, end in hit.marks:
        shown += hit.snippet[at:start] + OPEN + hit.snippet[start:end] + CLOSE
        at = end
    return shown + hit.snippet[at:]
