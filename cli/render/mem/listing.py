"""Nodes of the memory as text: a line each, or one whole."""

from __future__ import annotations

from ..out import harmless
from ..text import SEPARATOR, ago, barred, plural
from .nodes import about, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.memory.fold import Node
    from gitmem.operations.memory.listing import Listing
    from gitmem.operations.memory.ready import Ready
    from gitmem.operations.memory.showing import Change, Shown

COLUMNS = 80  # of what a node says, in a list; `show` has all of it


def listed(found: Listing) -> list[str]:
    lines = [line(node, found.stale.get(node.id)) for node in found.nodes]
    if not lines:
        return ["no such node"]
    return [*lines, *([f"{plural(found.more, 'more node')}: --limit N shows more"] if found.more else [])]


def line(node: Node, stale: str | None = None) -> str:
    """`mem-… · 2026-10-26 · discovery · P1 · WU-7 · bug | The parser drops tabs`."""
    id, _, rest = about(node).partition(SEPARATOR)
    facts = [id, node.created_at[:10], rest, harmless(stale or "", keep="")]
    return f"{SEPARATOR.join(fact for fact in facts if fact)} | {_beginning(node.content)}"


def _beginning(content: str) -> str:
    first = harmless(content.strip().split("\n", 1)[0].strip(), keep="")
    return first if len(first) <= COLUMNS else first[: COLUMNS - 1].rstrip() + "…"


def shown(found: Shown) -> list[str]:
    node = found.node
    by = harmless(str(node.sender_name or node.sender_identity), keep="")
    end = found.stale or ""
    lines = [
        f"[{about(node)}{SEPARATOR}{node.lifecycle}{SEPARATOR}{by}{SEPARATOR}{ago(node.created_at)}]",
        *barred(node.content),
    ]
    if found.ambiguous:
        lines.append(f"ambiguous: lines with the id {node.id} say different things; the lowest is shown")
    facts = [
        ("about", ", ".join(node.paths) + (f"  {end}" if end else "")),
        ("written at", f"{node.head[:12]}{f' on {node.branch}' if node.branch else ''}" if node.head else ""),
        ("session", node.session_id),
        ("reason", node.reason),
        ("summarised in", node.summarized_into),
        ("metadata", ", ".join(f"{key}={value}" for key, value in sorted(node.metadata.items()))),
    ]
    lines += [f"{name}: {harmless(str(value), keep='')}" for name, value in facts if value]
    lines += [_relation(node.id, each) for each in found.relations]
    lines += [_change(each) for each in found.history]
    last = f", last {ago(node.last_accessed_at)}" if node.last_accessed_at else ""
    return [
        *lines,
        f"score {found.score:.3g}{SEPARATOR}read {plural(node.accesses, 'time')}{last}{SEPARATOR}{where(found.commit)}",
    ]


def _relation(id: str, each: dict[str, object]) -> str:
    other = _beginning(str(each["other"])) if each["other"] is not None else "(not here)"
    if each["from_id"] == id:
        return f"{each['type']} {each['to_id']} | {other}"
    return f"{each['from_id']} {each['type']} this | {other}"


def _change(each: Change) -> str:
    said = []
    for name, value in each.fields.items():
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        said.append(name if value is True else f"{name} {_beginning(text)}")
    return harmless(f"{each.at[:19]}Z {each.sender}: {'; '.join(said)}", keep="")


def ready(found: Ready) -> list[str]:
    lines = [line(node) for node in found.nodes]
    if not lines:
        lines.append(f"nothing is ready in {harmless(found.wu_id)}")
    lines += [f"waits for {', '.join(each.blocked_by)}: {line(each.node)}" for each in found.blocked]
    return [
        *lines,
        *(
            f"note: none of these can be ready, each waits for the next: {' → '.join(circle)}"
            for circle in found.circles
        ),
    ]
