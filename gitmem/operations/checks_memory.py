"""Doctor's look at the memory: what leads to nodes that are not here, ids that say two things, circles."""

from __future__ import annotations

from . import causality
from .memory import bulk_values, stored
from .memory.circles import circles
from .memory.fold import Change, Node, meaning, of_changes
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .checks_lines import Line
    from .findings import Findings
    from .memory.fold import Winners


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
    fold = _Fold(nodes, by_kind["patch"])
    _check_summaries(nodes, fold, found)
    _check_patches(by_kind["patch"], nodes, found)
    standing = _standing(by_kind["relation"])
    _check_relations(standing, nodes, found)
    blocks = {(from_id, to_id): each for (from_id, to_id, type), each in standing.items() if type == "blocks"}
    ends = {id for ids in blocks for id in ids if id in nodes}
    can_block = {id for id in ends if fold.can_block(id)}
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


class _Fold:
    """Nodes as they are now; each patch is read once, however many nodes it names."""

    def __init__(self, nodes: Mapping[str, Sequence[Line]], patches: Sequence[Line]) -> None:
        self._nodes = nodes
        self._patches: dict[str, list[Change]] = {}
        for each in patches:
            change = Change(each.record or {}, each.line)
            for id in sorted(set((each.record or {})["node_ids"])):
                self._patches.setdefault(id, []).append(change)
        self._order = stored.order_of(self._patches)
        self._sets: dict[tuple[bytes, ...], Winners] = {}

    def summarizing(self, id: str) -> bool:
        """Whether a line of a node says that a summary has what the node says."""
        lines = [each.record or {} for each in self._nodes[id]]
        every = [*lines, *(change.record for change in self._patches.get(id, ()))]
        return any(record.get("summarized_into") for record in every)

    def node(self, id: str) -> Node:
        """The node as it is now."""
        lines = [(each.record or {}, each.line) for each in self._nodes[id]]
        return of_changes(lines, self._patches.get(id, ()), self._sets, self._order, whole=False)

    def can_block(self, id: str) -> bool:
        """Whether a node is open, so that it can block others."""
        node = self.node(id)
        return node.rank == 0 and not node.summarized_into


def _check_patches(patches: Sequence[Line], nodes: Mapping[str, object], found: Findings) -> None:
    for each in patches:
        aside = bulk_values.left_aside(each.record or {})
        if aside:
            found.note(
                "left-aside",
                f"This patch names several nodes, and its {' and '.join(aside)} "
                f"{'are' if aside[1:] else 'is'} larger than the {bulk_values.SIZE_MAX} bytes that count there.",
                each.where,
                "Nobody's nodes take it over; the rest of the patch counts. Write it again, one node at a time.",
                "gitmem mem update --help",
            )
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


def _check_summaries(nodes: Mapping[str, Sequence[Line]], fold: _Fold, found: Findings) -> None:
    """Nodes that stand under each other all the way round: none of them hides anything."""
    leads: dict[str, set[str]] = {}
    for id in nodes:
        into = fold.node(id).summarized_into if fold.summarizing(id) else None
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
