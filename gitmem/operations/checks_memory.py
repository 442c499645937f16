"""Doctor's look at the memory: what leads to nodes that are not here, ids that say two things, circles."""

from __future__ import annotations

from . import causality
from .memory.circles import circles
from .memory.fold import Change, Node, fold, meaning
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .checks_lines import Line
    from .findings import Findings


def check(lines: Sequence[Line], found: Findings) -> None:
    """Relations to and patches of nodes that are not here, ambiguous ids, nodes that block each other."""
    by_kind: dict[str, list[Line]] = {"node": [], "relation": [], "patch": []}
    for each in lines:
        if each.record is not None and each.record["kind"] in by_kind:
            by_kind[each.record["kind"]].append(each)
    nodes: dict[str, list[Line]] = {}
    for each in by_kind["node"]:
        nodes.setdefault(_text(each, "id"), []).append(each)
    _check_contents(nodes, found)
    patches = _patches(by_kind["patch"])
    _check_summaries(nodes, patches, found)
    _check_patches(by_kind["patch"], nodes, found)
    standing = _standing(by_kind["relation"])
    _check_relations(standing, nodes, found)
    blocks = {(from_id, to_id): each for (from_id, to_id, type), each in standing.items() if type == "blocks"}
    ends = {id for ids in blocks for id in ids if id in nodes}
    can_block = {id for id in ends if _can_block(nodes[id], patches.get(id, ()))}
    _check_circles({ids: each for ids, each in blocks.items() if can_block.issuperset(ids)}, found)


def _text(each: Line, field: str) -> str:
    return str((each.record or {})[field])


def _check_contents(nodes: Mapping[str, Sequence[Line]], found: Findings) -> None:
    for id, group in sorted(nodes.items()):
        contents = {meaning(each.record or {}) for each in group}
        if len(contents) > 1:
            found.problem(
                "two-contents",
                f"The node id {id} has {len(contents)} different contents: the lowest line counts.",
                min(group, key=lambda each: each.line).where,
                "Ask who wrote them what was meant, and write that as a new node.",
                command("gitmem", "mem", "show", id),
            )


def _patches(patches: Sequence[Line]) -> dict[str, list[Line]]:
    """Node id → the patches that name it."""
    found: dict[str, list[Line]] = {}
    for each in patches:
        for id in sorted(set((each.record or {})["node_ids"])):
            found.setdefault(id, []).append(each)
    return found


def _check_patches(patches: Sequence[Line], nodes: Mapping[str, object], found: Findings) -> None:
    for each in patches:
        missing = sorted(id for id in set(map(str, (each.record or {})["node_ids"])) if id not in nodes)
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            found.note(
                "unknown-id",
                f"This patch names {', '.join(missing[:3])}{more}, which this log does not have.",
                each.where,
                "They may come with the next sync; the patch counts then.",
                "gitmem sync",
            )


def _standing(relations: Sequence[Line]) -> dict[tuple[str, str, str], Line]:
    """The relations that were not taken back, each with the line that says so last."""
    events: dict[tuple[str, str, str], dict[str, tuple[Change, Line]]] = {}
    for each in sorted(relations, key=lambda each: each.line):
        triple = (_text(each, "from_id"), _text(each, "to_id"), _text(each, "type"))
        change = Change(each.record or {}, each.line)
        events.setdefault(triple, {}).setdefault(change.id, (change, each))
    found = {}
    for triple, said in events.items():
        changes = {id: change for id, (change, _) in said.items()}
        last = causality.latest(changes.values(), causality.earlier(changes))
        if last is not None and last.record.get("removed") is not True:
            found[triple] = said[last.id][1]
    return found


def _check_relations(
    standing: Mapping[tuple[str, str, str], Line], nodes: Mapping[str, object], found: Findings
) -> None:
    for (from_id, to_id, type), each in standing.items():
        missing = sorted(id for id in {from_id, to_id} if id not in nodes)
        if missing:
            found.note(
                "unknown-id",
                f"{from_id} {type} {to_id}, and this log does not have {' and '.join(missing)}.",
                each.where,
                "It may come with the next sync; until then it blocks nothing.",
                "gitmem sync",
            )


def _check_summaries(
    nodes: Mapping[str, Sequence[Line]], patches: Mapping[str, Sequence[Line]], found: Findings
) -> None:
    """Nodes that stand under each other all the way round: none of them hides anything."""
    leads: dict[str, set[str]] = {}
    for id, lines in nodes.items():
        every = [*lines, *patches.get(id, ())]
        if any((each.record or {}).get("summarized_into") for each in every):
            into = _folded(lines, patches.get(id, ())).summarized_into
            if into and into != id:
                leads[id] = {into}
    for circle in circles(leads):
        found.note(
            "summary-circle",
            f"Nodes are each under a summary that is under the next: {' → '.join([*circle, circle[0]])}.",
            nodes[circle[0]][0].where,
            "None of them hides anything. gitmem does not write such a thing; ask who did.",
            command("gitmem", "mem", "show", circle[0]),
        )


def _folded(lines: Sequence[Line], patches: Sequence[Line]) -> Node:
    return fold(
        [(each.record or {}, each.line) for each in lines],
        [(each.record or {}, each.line) for each in patches],
    )


def _can_block(lines: Sequence[Line], patches: Sequence[Line]) -> bool:
    """Whether a node is open, so that it can block others."""
    node = _folded(lines, patches)
    return node.rank == 0 and not node.summarized_into


def _check_circles(blocks: Mapping[tuple[str, str], Line], found: Findings) -> None:
    leads: dict[str, set[str]] = {}
    for from_id, to_id in blocks:
        leads.setdefault(from_id, set()).add(to_id)
    for circle in circles(leads):
        first, second = circle[0], [*circle, circle[0]][1]
        found.note(
            "circle",
            f"Nodes block each other all the way round, so that none is ever ready: {' → '.join([*circle, first])}.",
            blocks[first, second].where,
            "Take one of these relations back, or close one of the nodes.",
            command("gitmem", "mem", "relate", first, "blocks", second, "--remove"),
        )
