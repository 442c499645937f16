"""Whether a relation stands is what docs/format.md says, in any order of arrival."""

from __future__ import annotations

import random
from typing import Any

from gitmem import records
from gitmem.memory.relations import RelationEvent
from tests.signals import references

from ..sandbox import START
from .test_node_rows import IDS, index_of, relation


def _lines(draw: random.Random) -> list[bytes]:
    """Records of a relation that name each other at random: cycles, ids that are there twice, ids that are missing."""
    count = draw.randint(1, 12)
    names = [f"rel-{at:04}" for at in range(draw.randint(1, count))]
    return [
        relation(
            draw.choice(names),
            at=START + draw.randrange(4),
            from_id=IDS[0],
            to_id=IDS[draw.choice((1, 1, 1, 2))],
            type="blocks",
            removed=draw.random() < 0.5,
            after=[draw.choice([*names, "rel-zzzz"]) for _ in range(draw.randint(0, 3))],
        )
        for _ in range(count)
    ]


def _naive(lines: list[bytes]) -> set[tuple[str, str, str]]:
    """The relations whose last record, of the lowest line of each id, does not end them."""
    events: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in sorted(set(lines)):
        record = records.read(line)
        assert record is not None
        relation_key = (record["from_id"], record["to_id"], record["type"])
        events.setdefault(relation_key, {}).setdefault(record["id"], RelationEvent(record, line))
    found = set()
    for relation_key, said in events.items():
        last = references.latest(said.values(), references.earlier(said))
        if last is not None and not last.record.get("removed"):
            found.add(relation_key)
    return found


def test_relations_are_those_of_a_naive_reference_in_any_order() -> None:
    standing = 0
    for seed in range(250):
        draw = random.Random(seed)
        lines = _lines(draw)
        wanted = _naive(lines)
        standing += len(wanted)
        for _ in range(2):
            draw.shuffle(lines)
            index = index_of(lines, [draw.randint(0, len(lines))])

            assert set(index.db.execute("SELECT from_id, to_id, type FROM relation")) == wanted, seed
            index.close()
    assert 100 < standing < 400
