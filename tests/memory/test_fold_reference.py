"""What patches make of a node is what docs/format.md says, field by field, in any order of arrival."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from gitmem.log.lines import format_at
from gitmem.order import node as node_fold
from gitmem.order.causal import CausalOrder, by_id
from gitmem.order.node import FIELDS, PatchChange
from tests.signals import references

START = 1_795_000_000_000_000
Record = dict[str, Any]


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _naive(node: Record, patches: list[Record]) -> dict[str, object]:
    """The values of section 11, for each field and each entry of the metadata by itself."""
    changes: dict[str, Any] = {}
    for record in sorted(patches, key=_line):
        changes.setdefault(str(record["id"]), PatchChange(record, _line(record)))
    edges = references.earlier(changes)
    found: dict[str, object] = {field: node.get(field) or None for field in FIELDS}
    for field in FIELDS:
        last = references.latest((one for one in changes.values() if one.touches(field)), edges)
        if last is not None:
            found[field] = last.record.get(field) or None
    metadata = dict(node.get("metadata") or {})
    cleared = [one for one in changes.values() if "metadata" in one.clears]
    keys = {key for one in changes.values() for key in one.record.get("metadata", ())}
    for key in sorted(keys | (metadata.keys() if cleared else set())):
        own = [one for one in changes.values() if key in one.record.get("metadata", ())]
        last = references.latest({one.id: one for one in [*own, *cleared]}.values(), edges)
        value = last.record.get("metadata", {}).get(key) if last is not None else None
        metadata.pop(key, None)
        if value is not None:
            metadata[key] = value
    return {**found, "metadata": metadata}


def _random(seed: int) -> tuple[Record, list[Record]]:
    draw = random.Random(seed)
    by = "a:b:c"
    node: Record = {"at": format_at(START), "kind": "node", "id": "mem-0000", "type": "note", "lifecycle": "wu",
                    "content": "c", "sender_identity": by, "metadata": {"a": 0, "z": 1}, "tags": ["t"]}  # fmt: skip
    count = draw.randint(1, 14)
    ids = [f"patch-{draw.randrange(2 * count):04}" for _ in range(count)]
    patches = []
    for _ in range(count):
        record: Record = {"at": format_at(START + draw.randrange(5)), "kind": "patch", "id": draw.choice(ids),
                          "node_ids": ["mem-0000"], "sender_identity": by,
                          "after": [draw.choice([*ids, "patch-zzzz"]) for _ in range(draw.randint(0, 3))]}  # fmt: skip
        for field, values in (("priority", ("P1", "P2")), ("lane", ("x", "y")), ("content", ("d", "e")),
                              ("closed", (True,)), ("tags", (["u"], ["v", "w"]))):  # fmt: skip
            if draw.random() < 0.4:
                record[field] = draw.choice(values)
        if draw.random() < 0.5:
            record["metadata"] = {draw.choice("abc"): draw.choice((1, 2, None)) for _ in range(2)}
        if draw.random() < 0.4:
            record["clear"] = draw.sample(("metadata", "lane", "closed", "tags", "priority"), 2)
        patches.append(record)
    return node, patches


def _check(seed: int) -> None:
    node, patches = _random(seed)
    wanted = _naive(node, patches)
    random.Random(seed).shuffle(patches)
    found = node_fold.fold([(node, _line(node))], [(each, _line(each)) for each in patches])
    for field in FIELDS:
        assert (getattr(found, field) or None) == wanted[field], (seed, field)
    assert found.metadata == wanted["metadata"], seed
    others = [PatchChange(each, _line(each)) for each in _random(seed + 1)[1]]
    own = [PatchChange(each, _line(each)) for each in patches]
    changes = by_id(own)
    order = CausalOrder({each.line: each for each in [*others, *own]}.values())
    shared = node_fold.fold_changes([(node, _line(node))], own, {}, order)
    heads = CausalOrder(changes.values(), order).heads(changes.values())
    named = set().union(*references.earlier(changes).values())
    assert {each.id for each in heads} == changes.keys() - named
    assert shared.as_json() == found.as_json(), seed


def test_nodes_are_those_of_a_naive_reference() -> None:
    """With cycles, missing patches, ids that are there twice, and fields that are cleared."""
    for seed in range(400):
        _check(seed)


@pytest.mark.deep
def test_nodes_of_many_histories_are_those_of_a_naive_reference() -> None:
    """The same for more histories."""
    for seed in range(400, 6_000):
        _check(seed)
