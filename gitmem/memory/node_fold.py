"""Fold a node: the line that created it, and for each field the causally last change.

A patch names in `after` the patches that its writer had seen. Concurrent changes of two clones are merged field by
field; if both changed one field, the greater `(at, bytes)` counts.
"""

from __future__ import annotations

from ..order.causal import by_id
from . import authors
from .versioned_node import FLAGS, LISTS, PatchChange, VersionedNode, WinningPatches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..order.causal import CausalOrder
    from ..records.record_types import NodeRecord, PatchRecord

KNOWN_MAX = 256  # sets of patches in the cache of one fold of many nodes


def fold(
    nodes: Iterable[tuple[NodeRecord, bytes]], patches: Iterable[tuple[PatchRecord, bytes]]
) -> VersionedNode:
    """Fold the lines of one id and the patches that name it, in any order, into a node."""
    return of_changes(nodes, [PatchChange(record, body) for record, body in patches], {})


def of_changes(
    nodes: Iterable[tuple[NodeRecord, bytes]],
    patches: Iterable[PatchChange],
    known: dict[tuple[bytes, ...], WinningPatches],
    order: CausalOrder[PatchChange] | None = None,
    *,
    whole: bool = True,
) -> VersionedNode:
    """Fold the lines of one id and parsed patches into a node.

    Args:
        known: A cache of the winners of sets of patches, by their lines: one patch may name thousands of nodes.
        order: The causal order of all patches, if many nodes share many of them.
        whole: Whether to fold the metadata and its writers, too.
    """
    made = list(nodes)
    base, line = min(made, key=lambda each: each[1])
    node = VersionedNode(base, line)
    if len(made) > 1 and len({content_digest_text(record) for record, _ in made}) > 1:
        node.conflicting = sorted({record["sender_identity"] for record, _ in made})
    changes = by_id(patches).values()
    if changes:
        lines = tuple(each.line for each in changes)
        if lines not in known:
            if len(known) >= KNOWN_MAX:
                known.clear()
            known[lines] = WinningPatches(changes, order)
        _apply(node, known[lines], whole=whole)
        authors.set_changed_by(node, known[lines], whole=whole)
        node.winners = known[lines]
    return node.settle()


def content_digest_text(record: NodeRecord) -> object:
    """Return the content of a line without its writer and time: clones that create a node independently agree on it.

    For an indexed source it is only the path of the file: the content changes with the file.
    """
    source = record.get("metadata", {}).get("source_path")
    if source is not None:
        return ("source", str(source))
    return (
        *(record["type"], record["lifecycle"], record["content"]),
        *(record.get("priority"), record.get("wu_id"), record.get("lane")),
        *(tuple(sorted(each)) for each in (record.get("tags", ()), record.get("paths", ()))),
    )


def _apply(node: VersionedNode, winners: WinningPatches, *, whole: bool) -> None:
    for field, last in winners.by_field.items():
        value: Any = last.record.get(field)
        if field in LISTS:
            value = list(value or ())
        elif field in FLAGS:
            value = value is True
        else:
            value = value or None
        setattr(node, field, value)
        if field == "head":
            node.branch = last.record.get("branch")
    if winners.clears_metadata:
        node.metadata = {}
    for key, last in sorted(winners.by_key.items()) if whole else ():
        value = last.record.get("metadata", {}).get(key)
        if value is None:
            node.metadata.pop(key, None)
        else:
            node.metadata[key] = value
    if winners.updated is not None:
        node.updated = max(winners.updated, node.updated or 0)
